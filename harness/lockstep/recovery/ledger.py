"""The ledger: what a run has made and broken, written down before it happens.

Every process, container, network and fault is one *entry*. Its `intent` line is on disk before anything is done, so
that after a crash `lockstep heal` knows what may exist; `effect` records what was made, `proof` that a fault was real,
`healed` that it is gone. The process that owns a run holds an exclusive lock on its ledger for as long as it lives. The
kernel drops that lock when the process dies, however it dies, so a ledger that can be locked has no owner.
"""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from lockstep.closeable import Closeable
from lockstep.errors import LockstepError
from lockstep.host.disk import AppendOnly, explained

LEDGER = "ledger.jsonl"

CLOSED = frozenset({"healed", "failed"})


class LedgerBusy(LockstepError):
    """The ledger's owner is alive: its run is not ours to touch."""


@dataclass(kw_only=True)
class Entry:
    """One thing that was made or broken, and the phases it has been through."""

    number: int
    kind: str
    lines: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ledger: Ledger | None = field(default=None, repr=False, compare=False)

    @property
    def open(self) -> bool:
        """Whether something of it may still be there."""
        return not any(phase in CLOSED for phase, _ in self.lines)

    @property
    def fields(self) -> dict[str, Any]:
        """The newest value of every field."""
        return {name: value for _, fields in self.lines for name, value in fields.items()}

    def phase(self, wanted: str) -> dict[str, Any] | None:
        """What was written in one phase, or None if it never came to that."""
        return next((fields for phase, fields in self.lines if phase == wanted), None)

    def effect(self, **fields: Any) -> None:
        self._advance("effect", fields)

    def proof(self, **fields: Any) -> None:
        self._advance("proof", fields)

    def healed(self, **fields: Any) -> None:
        self._advance("healed", fields)

    def failed(self, **fields: Any) -> None:
        self._advance("failed", fields)

    def _advance(self, phase: str, fields: dict[str, Any]) -> None:
        assert self.ledger is not None, "an entry that was only read cannot be written"
        self.lines.append((phase, fields))
        self.ledger.append(self.number, self.kind, phase, fields)


class Ledger(Closeable):
    """The ledger of one run directory, opened for writing by its one owner."""

    def __init__(self, directory: Path) -> None:
        with explained(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / LEDGER
        self._numbers = threading.Lock()
        self._file = AppendOnly(self.path)
        try:
            fcntl.flock(self._file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise LedgerBusy(f"{directory} belongs to a run that is still going on") from None
        self._file.drop_torn_line()
        self._entries = {entry.number: entry for entry in read_ledger(self.path)}
        for entry in self._entries.values():
            entry.ledger = self

    def intent(self, kind: str, **fields: Any) -> Entry:
        """Write down what is about to be made or broken, before it is."""
        with self._numbers:
            number = len(self._entries) + 1
            entry = Entry(number=number, kind=kind, lines=[("intent", fields)], ledger=self)
            self._entries[number] = entry
        self.append(number, kind, "intent", fields)
        return entry

    def open_entries(self) -> Iterator[Entry]:
        """What may still be there, newest first: the order in which to undo it."""
        return (entry for entry in reversed(list(self._entries.values())) if entry.open)

    def append(self, number: int, kind: str, phase: str, fields: dict[str, Any]) -> None:
        line = {"entry": number, "time_ns": time.monotonic_ns(), "kind": kind, "phase": phase, **fields}
        self._file.append(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Give up ownership; the file stays."""
        self._file.close()


def read_ledger(path: Path) -> list[Entry]:
    """All entries of a ledger, each with its newest fields; a torn last line (the owner died writing it) is dropped."""
    entries: dict[int, Entry] = {}
    *lines, _torn = path.read_bytes().split(b"\n")
    for raw in lines:
        line: dict[str, Any] = msgspec.json.decode(raw)
        number, kind, phase = line.pop("entry"), line.pop("kind"), line.pop("phase")
        line.pop("time_ns")
        entries.setdefault(number, Entry(number=number, kind=kind)).lines.append((phase, line))
    return list(entries.values())
