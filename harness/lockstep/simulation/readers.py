"""The polls of one partition's consumers, and the offset commits of its consumer group."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from lockstep.history.schema import Outcome
from lockstep.simulation.log import Filled, Log, Steps
from lockstep.simulation.skeleton import COMMIT_EVERY, POLL_MAX, PartitionPlan, PlannedTenure, Skeleton
from lockstep.simulation.timeline import Ints

_COMMITTING_NS = 60_000


class View(IntEnum):
    """Which records a consumer can see."""

    UNCOMMITTED = 0
    COMMITTED = 1
    FINAL = 2


@dataclass(slots=True)
class Polls:
    """The polls of one reader in a slice: a row for each, and a row for each record."""

    process: int
    view: View
    generation: int
    """-1 for a consumer without a group."""
    start: int
    """The position before the first."""
    invoke_ns: Ints
    return_ns: Ints
    end: Ints
    """The position after each poll."""
    poll: Ints
    """Of each record, its poll's row here."""
    offset: Ints
    position: Ints
    value: Ints
    epoch: Ints
    timestamp_ms: Ints


@dataclass(slots=True)
class Commit:
    """An offset commit of a group's member."""

    process: int
    generation: int
    offset: int
    invoke_ns: int
    return_ns: int
    outcome: Outcome = Outcome.OK
    error: str | None = None


def taken(log: Log, view: View, bounds: Ints) -> dict[str, Ints]:
    """The records between these offsets that this view shows: poll n has those from bounds[n] to bounds[n + 1]."""
    first, last = int(bounds[0]) - log.base, int(bounds[-1]) - log.base
    shown = log.committed[first:last] if view is View.COMMITTED else log.data[first:last]
    rows = np.flatnonzero(shown) + first
    offset = rows + log.base
    poll = np.searchsorted(bounds[1:], offset, side="right")
    return {
        "poll": poll,
        "offset": offset,
        "position": ranks(poll),
        "value": log.value[rows],
        "epoch": log.epoch[rows],
        "timestamp_ms": log.timestamp_ms[rows],
    }


def ranks(sorted_groups: Ints) -> Ints:
    """The place of each row among those of its group."""
    if not len(sorted_groups):
        return sorted_groups
    new = np.ones(len(sorted_groups), dtype=np.bool_)
    new[1:] = sorted_groups[1:] != sorted_groups[:-1]
    rows = np.arange(len(sorted_groups))
    return rows - np.maximum.accumulate(np.where(new, rows, 0))


@dataclass(slots=True, kw_only=True)
class _Reader:
    process: int
    view: View
    slot: int = 0
    position: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionReaders:
    """All consumers of one partition while it is written."""

    skeleton: Skeleton
    plan: PartitionPlan
    log: Log | None = None
    steps: Steps | None = None
    everything: list[_Reader] = field(init=False)
    tenure: int = 0
    """The first that has not ended."""
    tenure_slot: int = 0
    position: int = 0
    committed: int = 0

    def __post_init__(self) -> None:
        self.everything = [
            _Reader(process=self.skeleton.uncommitted_reader, view=View.UNCOMMITTED),
            _Reader(process=self.skeleton.committed_reader, view=View.COMMITTED),
        ]

    def read(
        self, filled: Filled, chance: np.random.Generator, before_ns: int, until_ns: int
    ) -> tuple[list[Polls], list[Commit]]:
        """All polls that fetch before `until_ns`; everything before `before_ns` has been read."""
        lowest = min(self.committed, self.position, *(reader.position for reader in self.everything))
        self.log = filled.log if self.log is None else self.log.after(lowest, filled.log)
        self.steps = filled.steps if self.steps is None else self.steps.after(before_ns, filled.steps)
        lattice = self.skeleton.lattice
        polls = []
        for reader in self.everything:
            slots = self._due(range(reader.slot, lattice.slots), until_ns)
            polls.append(self._polled(chance, reader.process, reader.view, -1, slots, reader.position))
            reader.slot += len(slots)
            reader.position = int(polls[-1].end[-1]) if len(slots) else reader.position
        of_group, commits = self._group(chance, until_ns)
        return polls + of_group, commits

    def _due(self, slots: range, until_ns: int) -> range:
        """Those that fetch before this time."""
        lattice = self.skeleton.lattice
        middle_ns = lattice.slot_ns(slots.start, self.plan.partition) + lattice.step_ns // 2
        period_ns = lattice.step_ns * lattice.partitions
        return range(slots.start, min(slots.stop, slots.start + max(-(-(until_ns - middle_ns) // period_ns), 0)))

    def _polled(
        self, chance: np.random.Generator, process: int, view: View, generation: int, slots: range, position: int
    ) -> Polls:
        """Each poll gives what can be seen when it fetches, at most so many offsets."""
        assert self.log is not None
        assert self.steps is not None
        lattice = self.skeleton.lattice
        begin = lattice.slot_ns(0, self.plan.partition) + np.arange(slots.start, slots.stop) * (
            lattice.step_ns * lattice.partitions
        )
        seen = self.steps.committed_ns if view is View.UNCOMMITTED else self.steps.stable_ns
        limit = self.steps.end_by(seen, begin + lattice.step_ns // 2)
        number = np.arange(1, len(slots) + 1)
        room = np.minimum.accumulate(limit - POLL_MAX * number) if len(slots) else limit
        end = POLL_MAX * number + np.minimum(position, room)
        end = np.maximum(end, position)
        early, late = chance.random(len(slots)), chance.random(len(slots))
        return Polls(
            process=process,
            view=view,
            generation=generation,
            start=position,
            invoke_ns=begin + (early * 0.2 * lattice.step_ns).astype(np.int64),
            return_ns=begin + ((0.5 + 0.2 * late) * lattice.step_ns).astype(np.int64),
            end=end,
            **taken(self.log, view, np.concatenate([[position], end])),
        )

    def _group(self, chance: np.random.Generator, until_ns: int) -> tuple[list[Polls], list[Commit]]:
        """The member that owns the partition reads it from the group's committed offset on."""
        polls: list[Polls] = []
        commits: list[Commit] = []
        while self.tenure < len(self.plan.tenures):
            planned = self.plan.tenures[self.tenure]
            slots = planned.slots[self.tenure_slot :]
            due = self._due(slots, until_ns) if slots else slots
            if self.tenure_slot == 0:
                self.position = self.committed
            if due:
                owner = planned.tenure
                polls.append(self._polled(chance, owner.process, View.COMMITTED, owner.generation, due, self.position))
                commits += self._committed(planned, polls[-1], due)
                self.position = int(polls[-1].end[-1])
                self.tenure_slot += len(due)
            if len(due) < len(slots):
                break
            commits += self._ended(planned)
            self.tenure, self.tenure_slot = self.tenure + 1, 0
        return polls, commits

    def _committed(self, planned: PlannedTenure, polls: Polls, due: range) -> list[Commit]:
        lattice = self.skeleton.lattice
        found = []
        for row, slot in enumerate(due):
            if (slot - planned.slots.start + 1) % COMMIT_EVERY == 0:
                begin_ns = lattice.slot_ns(slot, self.plan.partition)
                self.committed = int(polls.end[row])
                invoke_ns, return_ns = begin_ns + lattice.step_ns * 3 // 4, begin_ns + lattice.step_ns * 9 // 10
                found.append(
                    Commit(planned.tenure.process, planned.tenure.generation, self.committed, invoke_ns, return_ns)
                )
        return found

    def _ended(self, planned: PlannedTenure) -> list[Commit]:
        """A member that gives the partition up commits first; one that the group has forgotten tries in vain."""
        tenure, found = planned.tenure, []
        if not planned.slots:
            return []
        if tenure.commits_at_end:
            self.committed = self.position
            begin_ns = tenure.end_ns - (self.skeleton.lattice.partitions - tenure.partition) * _COMMITTING_NS
            found.append(
                Commit(tenure.process, tenure.generation, self.position, begin_ns, begin_ns + _COMMITTING_NS // 2)
            )
        if tenure.late is not None:
            begin_ns = tenure.late.time_ns
            found.append(
                Commit(
                    tenure.process,
                    tenure.generation,
                    self.position,
                    begin_ns,
                    begin_ns + _COMMITTING_NS,
                    Outcome.FAIL,
                    tenure.late.error,
                )
            )
        return found
