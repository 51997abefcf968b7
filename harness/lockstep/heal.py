"""Healing: remove everything a ledger names, and nothing else.

A run sweeps its own ledger when it ends, however it ends; `lockstep heal` does the same for runs whose harness died.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockstep.errors import ClusterError, LockstepError
from lockstep.recovery import os_process
from lockstep.recovery.ledger import Entry, Ledger, LedgerBusy
from lockstep.recovery.undo import FAULT, undo
from lockstep.rundir import registered, registered_directories, unregister


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed:
    """What was done to one run: what was removed, what could not be (and was given up), or that its owner is alive."""

    directory: Path
    removed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    busy: bool = False


def heal_all(*, forget: bool = False) -> list[Healed]:
    """Heal every registered run whose owner is gone. Safe at any time: a run that is going on is left alone."""
    return [heal(directory, forget=forget) for directory in registered_directories()]


def heal(directory: Path, *, forget: bool = False) -> Healed:
    """Heal one run directory (or kept cluster); with `forget`, what cannot be removed is never tried again."""
    try:
        ledger = Ledger(directory)
    except LedgerBusy:
        return Healed(directory=directory, busy=True)
    with ledger:
        healed = _sweep(directory, ledger, forget=forget)
    if not healed.failed:
        unregister(directory)
    return healed


@contextmanager
def owning(directory: Path, *, keep: bool = False) -> Iterator[Ledger]:
    """Own a directory's ledger; when the block ends, nothing of what it names is left.

    With `keep` that holds only when the block ends badly: what it made well stays, and is no longer registered.
    """
    with Ledger(directory) as ledger, registered(directory):
        try:
            yield ledger
            if keep:
                unregister(directory)
                return
        except BaseException as error:
            with _undisturbed():
                healed = _sweep(directory, ledger)
            if healed.failed:
                error.add_note(_left(healed))
            raise
        with _undisturbed():
            healed = _sweep(directory, ledger)
    if healed.failed:
        raise ClusterError(_left(healed))


def _left(healed: Healed) -> str:
    return f"could not remove {'; '.join(healed.failed)}: try lockstep heal"


def _sweep(directory: Path, ledger: Ledger, *, forget: bool = False) -> Healed:
    """Undo what is open, newest first; what cannot be undone stays open and does not keep the rest alive."""
    removed: list[str] = []
    failed: list[str] = []
    # Files that a fault changed are restored only when no broker uses them, so faults come after processes.
    for entry in sorted(ledger.open_entries(), key=lambda entry: entry.kind == FAULT):
        try:
            removed += _HEALERS[entry.kind](entry)
        except Exception as error:  # also one that we did not think of: the rest must go
            name = entry.fields.get("name") or entry.fields.get("fault", entry.kind)
            failed.append(f"{name} ({_reason(error)})")
            if forget:
                entry.healed(forgotten=_reason(error))
    if forget:
        return Healed(directory=directory, removed=tuple(removed), forgotten=tuple(failed))
    return Healed(directory=directory, removed=tuple(removed), failed=tuple(failed))


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, LockstepError | OSError) else f"unexpected {error!r}"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not interrupt the clean-up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heal_process(entry: Entry) -> list[str]:
    processes = os_process.processes_of(entry)
    for process in processes:
        process.kill()
    if not processes:
        entry.healed(found=False)
    return [f"{process.name} ({process.identity})" for process in processes]


def _heal_container(entry: Entry) -> list[str]:
    from lockstep.cluster.docker import heal_container

    return heal_container(entry)


def _heal_network(entry: Entry) -> list[str]:
    from lockstep.cluster.docker import heal_network

    return heal_network(entry)


def _heal_secrets(entry: Entry) -> list[str]:
    from lockstep.cluster.security import heal_secrets

    return heal_secrets(entry)


def _heal_topic(entry: Entry) -> list[str]:
    from lockstep.cluster.external import heal_topic

    return heal_topic(entry)


def _heal_fault(entry: Entry) -> list[str]:
    """A killed node needs no mending once the node itself is removed; files do, and the ledger says how they were."""
    undone = undo(entry)
    entry.healed(detail={"by": "heal", "undone": undone})
    return undone


_HEALERS: dict[str, Callable[[Entry], list[str]]] = {
    os_process.KIND: _heal_process,
    "container": _heal_container,
    "network": _heal_network,
    "secrets": _heal_secrets,
    "topic": _heal_topic,
    FAULT: _heal_fault,
}
