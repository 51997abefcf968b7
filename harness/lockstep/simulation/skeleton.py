"""The skeleton of a run: everything that decides what may happen, drawn from one seed before any row is made.

It is small whatever the number of operations, and exact about how many of them there will be: what readers, groups and
transactions do is counted here, and writers do the rest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep.errors import UsageError
from lockstep.history.schema import Role
from lockstep.simulation.groups import Tenure, draw_group
from lockstep.simulation.rows import Clients, OperationRow, ProcessRow
from lockstep.simulation.timeline import MS, SECOND, FaultEvent, Round, Story, Timeline, rounds
from lockstep.simulation.transactions import Transaction, draw_transactions

TOPIC, TOPIC_ID = "orders", "c2ltdWxhdGVkLW9yZGVycw"
FEWEST_OPS = 1_000
"""For each partition."""
PARTITIONS_MAX = 256
POLL_MAX = 500
"""max.poll.records"""
COMMIT_EVERY = 5
"""Polls of a group's member for each of its commits."""

_START_NS = SECOND
_SHORTEST_NS = 30 * SECOND
_SENDS_PER_S = 2_000
_OPS_PER_SLOT, _SLOTS_MIN = 100, 40
_OPS_PER_TRANSACTION, _TRANSACTIONS_MIN = 200, 20
_TRANSACTIONAL = 0.25
"""The part of all sends that belongs to a transaction."""
_REVOKING_NS = 60_000
"""What a member takes to commit one partition before it gives it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a simulated run."""

    seed: int
    ops: int
    partitions: int = 3
    bug: str | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError("--seed is 0 or more")
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise UsageError(f"--partitions is 1 to {PARTITIONS_MAX}")
        fewest = FEWEST_OPS * self.partitions
        if self.ops < fewest:
            of = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
            raise UsageError(f"--ops {self.ops} is too few for {of}: give {fewest} or more")

    @property
    def run(self) -> str:
        """The name of the run, which everything in it follows from."""
        planted = f"-{self.bug}" if self.bug else ""
        return f"simulated-{self.seed}-{self.ops}-{self.partitions}{planted}"


class Lattice(NamedTuple):
    """When readers poll which partition: each has one slot after another, so that no client does two things at once."""

    first_ns: int
    step_ns: int
    slots: int
    partitions: int

    def slot_ns(self, slot: int, partition: int) -> int:
        return self.first_ns + (slot * self.partitions + partition) * self.step_ns

    def slots_within(self, partition: int, start_ns: int, end_ns: int) -> range:
        """The slots that lie in this time."""
        period_ns = self.step_ns * self.partitions
        own_ns = self.first_ns + partition * self.step_ns
        first = max(-(-(start_ns - own_ns) // period_ns), 0)
        stop = min((end_ns - self.step_ns - own_ns) // period_ns + 1, self.slots)
        return range(first, max(stop, first))


class PlannedPart(NamedTuple):
    """The records of one transaction in one partition."""

    transaction: Transaction
    number: int
    """Of the transaction."""
    marker_ns: int
    stable_ns: int
    records: int


class PlannedTenure(NamedTuple):
    tenure: Tenure
    slots: range

    @property
    def commits(self) -> int:
        """How often it commits: now and then, and at its end."""
        if not self.slots:
            return 0
        return len(self.slots) // COMMIT_EVERY + self.tenure.commits_at_end + (self.tenure.late is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlan:
    """All that the rows of one partition follow from."""

    partition: int
    timeline: Timeline
    sends: int
    """Of plain writers."""
    parts: tuple[PlannedPart, ...]
    """In the order in which their transactions begin."""
    refused: tuple[Transaction, ...]
    """The transactions whose producer was refused a send to this partition."""
    tenures: tuple[PlannedTenure, ...]
    final_ns: int
    final_polls: int

    @property
    def ops(self) -> int:
        """Without those of the readers of everything and the final reader."""
        group = sum(len(one.slots) + one.commits for one in self.tenures)
        return self.sends + sum(part.records for part in self.parts) + len(self.refused) + group


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    settings: Settings
    start_ns: int
    end_ns: int
    """When the load ends."""
    drained_ns: int
    """When all consumers have read on for a while."""
    rounds: tuple[Round, ...]
    faults: tuple[FaultEvent, ...]
    processes: tuple[ProcessRow, ...]
    writers: tuple[int, ...]
    """The plain ones: all but the last are idempotent with acks=all, the last one has acks=1."""
    uncommitted_reader: int
    committed_reader: int
    final_reader: int
    operations: tuple[OperationRow, ...]
    """Those that belong to no partition."""
    transactions: tuple[Transaction, ...]
    lattice: Lattice
    partitions: tuple[PartitionPlan, ...]

    @property
    def final_poll_ns(self) -> int:
        """How long each poll of the final reader takes."""
        return 2 * MS


def draw(settings: Settings) -> Skeleton:
    """The same for the same settings, whatever bug is to be planted."""
    chance = random.Random(f"{settings.seed}-{settings.ops}-{settings.partitions}")  # noqa: S311
    number = settings.partitions
    end_ns = _START_NS + max(_SHORTEST_NS, settings.ops * SECOND // (number * _SENDS_PER_S))
    drained_ns = end_ns + (end_ns - _START_NS) // 20 + 2 * SECOND
    story = Story(chance, number)
    around = rounds(_START_NS, end_ns)
    for step, one in enumerate(around):
        story.tell(step, one)
    timelines = story.timelines()
    clients = Clients()
    retries, in_flight = 2**31 - 1, 5
    plain = {"acks": -1, "idempotent": True, "retries": retries, "in_flight": in_flight}
    writers = [clients.add(Role.WRITER, **plain) for _ in range(3)]
    writers.append(clients.add(Role.WRITER, acks=1, idempotent=False, retries=0, in_flight=in_flight))
    uncommitted = clients.add(Role.READER, isolation="read_uncommitted")
    committed = clients.add(Role.READER, isolation="read_committed")
    wanted = max(settings.ops // _OPS_PER_TRANSACTION, _TRANSACTIONS_MIN)
    transactions, operations = draw_transactions(chance, clients, timelines, _START_NS, end_ns, wanted=wanted)
    tenures, of_group = draw_group(chance, clients, number, _START_NS + 10 * MS, drained_ns)
    final = clients.add(Role.FINAL, isolation="read_uncommitted")
    slots = max(settings.ops // (number * _OPS_PER_SLOT), _SLOTS_MIN)
    lattice = Lattice(_START_NS + 2 * MS, (drained_ns - _START_NS - 2 * MS) // (slots * number), slots, number)
    assigned = [
        OperationRow(process, "assign", time_ns, time_ns + 40_000)
        for process, time_ns in ((uncommitted, _START_NS), (committed, _START_NS), (final, drained_ns))
    ]
    operations = [*operations, *of_group, *assigned]
    planned = [[_planned(lattice, one) for one in tenures if one.partition == index] for index in range(number)]
    return Skeleton(
        settings=settings,
        start_ns=_START_NS,
        end_ns=end_ns,
        drained_ns=drained_ns,
        rounds=around,
        faults=tuple(story.faults),
        processes=tuple(clients.rows),
        writers=tuple(writers),
        uncommitted_reader=uncommitted,
        committed_reader=committed,
        final_reader=final,
        operations=tuple(sorted(operations, key=lambda row: (row.invoke_ns, row.process))),
        transactions=tuple(transactions),
        lattice=lattice,
        partitions=_plans(settings, timelines, transactions, planned, lattice, len(operations), drained_ns),
    )


def _planned(lattice: Lattice, tenure: Tenure) -> PlannedTenure:
    end_ns = tenure.end_ns - lattice.partitions * _REVOKING_NS
    return PlannedTenure(tenure, lattice.slots_within(tenure.partition, tenure.start_ns, end_ns))


def _plans(
    settings: Settings,
    timelines: Sequence[Timeline],
    transactions: Sequence[Transaction],
    tenures: Sequence[Sequence[PlannedTenure]],
    lattice: Lattice,
    others: int,
    drained_ns: int,
) -> tuple[PartitionPlan, ...]:
    """Deal out the operations: all partitions get the same, and the last one what is left over."""
    number = settings.partitions
    share, rest = divmod(settings.ops - others, number)
    plans: list[PartitionPlan] = []
    final_ns = drained_ns + MS
    for index, timeline in enumerate(timelines):
        refused = [one for one in transactions if one.refused is not None and one.refused.partition == index]
        polls = 2 * lattice.slots + sum(len(one.slots) + one.commits for one in tenures[index])
        left = share + (rest if index == number - 1 else 0) - polls - len(refused)
        markers = sum(part.partition == index for one in transactions for part in one.parts)
        sends = (left - 1 - markers // POLL_MAX) * POLL_MAX // (POLL_MAX + 1)
        parts = _parts(transactions, index, int(sends * _TRANSACTIONAL))
        transactional = sum(part.records for part in parts)
        assert transactional < sends
        plans.append(
            PartitionPlan(
                partition=index,
                timeline=timeline,
                sends=sends - transactional,
                parts=parts,
                refused=tuple(refused),
                tenures=tuple(tenures[index]),
                final_ns=final_ns,
                final_polls=left - sends,
            )
        )
        final_ns += (left - sends) * 2 * MS
    return tuple(plans)


def _parts(transactions: Sequence[Transaction], partition: int, records: int) -> tuple[PlannedPart, ...]:
    """The number of records of each transaction here: by its weight, at least one, and together this many."""
    here = [
        (number, one, part)
        for number, one in enumerate(transactions)
        for part in one.parts
        if part.partition == partition
    ]
    whole = sum(part.weight for _, _, part in here)
    left = max(records - len(here), 0)
    planned = []
    for number, one, part in here:
        planned.append(PlannedPart(one, number, part.marker_ns, part.stable_ns, 1 + int(left * part.weight / whole)))
    return tuple(planned)
