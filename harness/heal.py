"""`lockstep heal`: after a harness died, remove everything its ledger names, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import os_process
from harness.ledger import Entry, Ledger, LedgerBusy
from harness.rundir import registered_directories, unregister


@dataclass(frozen=True, slots=True, kw_only=True)
class Healed:
    """What was done to one run: the names of what was removed, or that its owner is still alive."""

    directory: Path
    removed: tuple[str, ...] = ()
    busy: bool = False


def heal_all() -> list[Healed]:
    """Heal every registered run whose owner is gone. Safe at any time: a run that is going on is left alone."""
    return [heal(directory) for directory in registered_directories()]


def heal(directory: Path) -> Healed:
    """Heal one run directory (or kept cluster)."""
    try:
        ledger = Ledger(directory)
    except LedgerBusy:
        return Healed(directory=directory, busy=True)
    with ledger:
        removed = tuple(name for entry in ledger.open_entries() for name in _HEALERS[entry.kind](entry))
    unregister(directory)
    return Healed(directory=directory, removed=removed)


def _heal_process(entry: Entry) -> list[str]:
    processes = os_process.processes_of(entry)
    for process in processes:
        process.kill()
    if not processes:
        entry.healed(found=False)
    return [f"{process.name} ({process.identity})" for process in processes]


def _heal_container(entry: Entry) -> list[str]:
    from harness.cluster.docker import heal_container

    return heal_container(entry)


def _heal_network(entry: Entry) -> list[str]:
    from harness.cluster.docker import heal_network

    return heal_network(entry)


def _heal_fault(entry: Entry) -> list[str]:
    """A killed node needs no mending once the node itself is removed."""
    entry.healed(detail={"by": "heal"})
    return []


_HEALERS: dict[str, Callable[[Entry], list[str]]] = {
    os_process.KIND: _heal_process,
    "container": _heal_container,
    "network": _heal_network,
    "fault": _heal_fault,
}
