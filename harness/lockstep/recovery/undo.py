"""Changes of files by a fault, recorded in the ledger beforehand, so that `lockstep heal` can undo them after a crash.

Both are data in the fault's intent line. Paths are relative to the ledger, so that a run directory may be moved.
Undoing is harmless at any time and twice: it touches a file only when that still is as the fault left it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lockstep.recovery.ledger import Entry, Ledger

FAULT = "fault"
"""The kind of ledger entry that a fault has."""


class RemoveDirectory(msgspec.Struct, frozen=True, kw_only=True, tag_field="undo", tag="remove-directory"):
    """An empty directory that is in the way of a file."""

    path: str

    def apply(self, root: Path) -> str | None:
        try:
            (root / self.path).rmdir()
        except FileNotFoundError:
            return None
        return f"removed {self.path}"


class RestoreByte(msgspec.Struct, frozen=True, kw_only=True, tag_field="undo", tag="restore-byte"):
    """One byte that was changed."""

    path: str
    position: int
    original: int
    changed: int

    def apply(self, root: Path) -> str | None:
        try:
            with (root / self.path).open("r+b") as file:
                file.seek(self.position)
                if file.read(1) != bytes([self.changed]):
                    return None
                file.seek(self.position)
                file.write(bytes([self.original]))
        except FileNotFoundError:
            return None
        return f"restored byte {self.position} of {self.path}"


Undo = RemoveDirectory | RestoreByte


def relative(path: Path, ledger: Ledger) -> str:
    """A path as an undo names it."""
    return str(path.relative_to(ledger.path.absolute().parent))


def undo(entry: Entry) -> list[str]:
    """Undo what a fault's entry says was done to files; tells what there was to do."""
    assert entry.ledger is not None, "an entry that was only read has no directory"
    steps = msgspec.convert(entry.fields.get("undo", []), list[Undo])
    done = [step.apply(entry.ledger.path.parent) for step in steps]
    return [words for words in done if words is not None]
