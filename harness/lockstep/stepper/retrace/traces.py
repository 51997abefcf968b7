"""Counterexamples: the shortest way by which a broken variant, or a mutant, comes to what must not be.

They are searched for when they are wanted, so that they are always those of the model as it is.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep.errors import UsageError
from lockstep.exploration.ours import REPLICATION, PartitionBounds
from lockstep.exploration.specifications import get_specification
from lockstep.exploration.workers import without_collection
from lockstep.names import suggestion
from lockstep_model.published import replication as published
from lockstep_model.replication import mutants
from lockstep_model.replication.state import Places
from lockstep_model.search import Search, Violation
from lockstep_model.state_machine import Machine, Part, State

BROKEN = ("truncate-to-hw", "kip101", "kip279", "kip320-first-try", "kip320-unfenced")
"""The published variants that lose what was committed."""
PUBLISHED = (*BROKEN, *(f"kip320:{mutant}" for mutant in published.MUTANTS))
"""These, and the one that is right without one of its guards."""
NEAREST = {
    **dict.fromkeys(("kip101", "kip279", "kip320-first-try"), mutants.FETCH_LEADER_EPOCH),
    **dict.fromkeys(("kip320:fetch-epoch", "kip320:hw-epoch"), mutants.FETCH_LEADER_EPOCH),
    "kip320:hw-reached-epoch": mutants.EXPAND_REACHES_EPOCH_START,
}
"""The guard of our model that comes nearest to what a published variant lacks, where there is one."""


class Trace(NamedTuple):
    """A counterexample: what happens, and where each action leads in the broken machine."""

    name: str
    breaks: str
    """The invariant that is not true of its last state."""
    actions: tuple[str, ...]
    states: tuple[State, ...]
    """One more than there are actions."""
    brokers: int
    in_sync: int
    """How many are in the ISR at first, those with the lowest numbers."""
    min_isr: int
    lacks: str | None
    """The guard of our model that is missing, if it is one that a model can do without."""

    def log(self, broker: int, position: int) -> tuple[Part, ...]:
        """The records of a replica after so many actions."""
        replica = self._replica(broker, position)
        return tuple(replica.log if self.is_published else replica.log.records)

    def high_watermark(self, broker: int, position: int) -> int:
        """The high watermark of a replica after so many actions."""
        replica = self._replica(broker, position)
        return int(replica.hw if self.is_published else replica.high_watermark)

    def decided(self, position: int) -> int | None:
        """Which version of the partition the controller decides on by an action: a leader or a partition epoch."""
        was, now = self.states[position : position + 2]
        if self.is_published:
            begun = now[published.QUORUM].leader_epoch
            return int(begun) if begun != was[published.QUORUM].leader_epoch else None
        changed = was[Places.METADATA].controller != now[Places.METADATA].controller
        return int(now[Places.METADATA].controller.partition.partition_epoch) if changed else None

    def learned(self, broker: int, position: int) -> int:
        """Which version of the partition a broker knows after an action."""
        replica = self._replica(broker, position + 1)
        return int(replica.leader_epoch if self.is_published else replica.partition_epoch)

    @property
    def is_published(self) -> bool:
        """Whether it is of a machine that others specified."""
        return self.name in PUBLISHED

    def _replica(self, broker: int, position: int) -> Part:
        state = self.states[position]
        if self.is_published:
            return state[published.REPLICAS + broker]
        return state[Places(self.brokers).broker(broker)].replica


def names() -> tuple[str, ...]:
    """All counterexamples there are, as they are asked for."""
    ours = (f"{specification.name}:{mutant}" for specification in REPLICATION for mutant in specification.mutants)
    return *PUBLISHED, *ours


def find(name: str) -> Trace:
    """The counterexample of a variant, or of `variant:mutant`."""
    variant, _, mutant = name.partition(":")
    specification = get_specification(variant, mutant or None)
    if name not in names():
        raise UsageError(f"{name} has no counterexample about replication{suggestion(name, names())}")
    if name in PUBLISHED:
        breaks, violation = _first_broken(specification.make(specification.bounds, mutant or None))
        brokers = specification.bounds.replicas
        return Trace(name, breaks, *violation[1:], brokers, brokers, 1, NEAREST.get(name))
    shown = specification.mutants[mutant]
    bounds: PartitionBounds = shown.bounds
    breaks, violation = _first_broken(specification.make(bounds, mutant), shown.breaks)
    in_sync = min(bounds.in_sync, bounds.brokers)
    return Trace(name, breaks, *violation[1:], bounds.brokers, in_sync, bounds.min_isr, mutant)


def _first_broken(machine: Machine, invariant: str | None = None) -> tuple[str, Violation]:
    """Which invariant is broken first, or how this one is; nothing is searched beyond that."""
    chosen = None if invariant is None else [invariant]
    search = Search(machine, symmetric=machine.symmetry is not None, invariants=chosen)
    with without_collection():
        while search.frontier and not search.broken:
            search.advance()
    name, (depth, steps) = next(iter(search.broken.items()))
    return name, search.expansion.violation(depth, [*search.path_to(steps[0]), *steps[1:]])
