"""Counterexamples: shortest traces by which a broken variant of the protocol, or a mutant of it, violates an invariant.

They are searched for on demand, so that they always match the current model.
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
from lockstep_model.replication.state import ReplicationLayout
from lockstep_model.search import Search, Violation
from lockstep_model.state_machine import Machine, Part, State

BROKEN = ("truncate-to-hw", "kip101", "kip279", "kip320-first-try", "kip320-unfenced")
"""Variants of the published specification that lose committed records."""
PUBLISHED = (*BROKEN, *(f"kip320:{mutant}" for mutant in published.MUTANTS))
"""These, and the correct variant (KIP-320) without one of its guards."""
NEAREST = {
    **dict.fromkeys(("kip101", "kip279", "kip320-first-try"), mutants.FETCH_LEADER_EPOCH),
    **dict.fromkeys(("kip320:fetch-epoch", "kip320:hw-epoch"), mutants.FETCH_LEADER_EPOCH),
    "kip320:hw-reached-epoch": mutants.EXPAND_REACHES_EPOCH_START,
}
"""The guard of our model that is nearest to the one that a published variant lacks, if there is one."""


class Trace(NamedTuple):
    """A counterexample: its actions, and the states of the broken protocol between them."""

    name: str
    breaks: str
    """The invariant that its last state violates."""
    actions: tuple[str, ...]
    states: tuple[State, ...]
    """The initial state, and the state after each action."""
    brokers: int
    in_sync: int
    """Size of the initial ISR, which has the brokers with the lowest numbers."""
    min_isr: int
    lacks: str | None
    """The guard that our model must lack to permit this trace, or the nearest one; None if there is none."""

    def log(self, broker: int, position: int) -> tuple[Part, ...]:
        """A replica's records after this number of actions."""
        replica = self._replica(broker, position)
        return tuple(replica.log if self.is_published else replica.log.records)

    def high_watermark(self, broker: int, position: int) -> int:
        """A replica's high watermark after this number of actions."""
        replica = self._replica(broker, position)
        return int(replica.hw if self.is_published else replica.high_watermark)

    def decided(self, position: int) -> int | None:
        """The version of the partition that the controller decides by an action, None if it decides nothing.

        It is a leader epoch in the published specification, a partition epoch in our model.
        """
        was, now = self.states[position : position + 2]
        if self.is_published:
            begun = now[published.QUORUM].leader_epoch
            return int(begun) if begun != was[published.QUORUM].leader_epoch else None
        changed = was[ReplicationLayout.METADATA].controller != now[ReplicationLayout.METADATA].controller
        return int(now[ReplicationLayout.METADATA].controller.partition.partition_epoch) if changed else None

    def learned(self, broker: int, position: int) -> int:
        """The version of the partition that a broker has applied after an action."""
        replica = self._replica(broker, position + 1)
        return int(replica.leader_epoch if self.is_published else replica.partition_epoch)

    @property
    def is_published(self) -> bool:
        """Whether the trace is one of the published specification, not of our model."""
        return self.name in PUBLISHED

    def _replica(self, broker: int, position: int) -> Part:
        state = self.states[position]
        if self.is_published:
            return state[published.REPLICAS + broker]
        return state[ReplicationLayout(self.brokers).broker(broker)].replica


def names() -> tuple[str, ...]:
    """Names of all counterexamples."""
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
    """Search breadth-first for the first violation, of this invariant if one is given. Returns its name and trace."""
    chosen = None if invariant is None else [invariant]
    search = Search(machine, symmetric=machine.symmetry is not None, invariants=chosen)
    with without_collection():
        while search.frontier and not search.broken:
            search.advance()
    name, (depth, steps) = next(iter(search.broken.items()))
    return name, search.expansion.violation(depth, [*search.path_to(steps[0]), *steps[1:]])
