"""The batches of one partition's log, in slices of time: the producer of each, when it is appended, and its fate.

A batch has a nominal time, when its producer sends it, and an append time, which is later if the partition had no
leader. The second follows from the first by a monotone map, so the batches of a producer keep their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from lockstep.simulation.skeleton import PartitionPlan, Skeleton
from lockstep.simulation.timeline import MS, Gap, Ints

SLICE_SENDS = 100_000
_SLICES_MIN = 3
_MEAN, _MOST = 8, 32  # records in a batch
_RARE = 2_000
"""Without any fault, one batch in so many loses its response, one never arrives, and one is refused."""


class Kind(IntEnum):
    PLAIN = 0
    TRANSACTIONAL = 1
    MARKER = 2


class Fate(IntEnum):
    """Whether a batch is in the log, and the response that its producer gets."""

    ACKED = 0
    SILENT = 1
    """In the log, but its producer gets no response."""
    GONE = 2
    """Not in the log, and its producer gets no response."""
    REFUSED = 3
    """Not in the log, and its producer gets an error."""
    LOST = 4
    """Acknowledged with acks=1, and not in the log of the next leader."""


IN_LOG = (Fate.ACKED, Fate.SILENT)


@dataclass(slots=True)
class Batches:
    """Columns, a row for each batch or marker."""

    nominal: Ints
    actual: Ints
    kind: Ints
    process: Ints
    size: Ints
    part: Ints
    """Of the plan's parts; -1 for what is in no transaction."""
    first: Ints
    """Whether its transaction begins with this batch."""
    fate: Ints

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> Batches:
        return Batches(*(getattr(self, field.name)[rows] for field in fields(self)))

    def __len__(self) -> int:
        return len(self.nominal)

    @classmethod
    def concat(cls, *several: Batches) -> Batches:
        return cls(*(np.concatenate([getattr(one, field.name) for one in several]) for field in fields(cls)))

    @classmethod
    def of(cls, nominal: Ints, actual: Ints, **columns: Ints | int) -> Batches:
        given = {"kind": 0, "process": 0, "size": 1, "part": -1, "first": 0, "fate": Fate.ACKED} | columns
        shape = len(nominal)
        return cls(nominal, actual, *(np.broadcast_to(np.asarray(one, np.int64), shape) for one in given.values()))


@dataclass(slots=True, kw_only=True)
class Slice:
    """The batches of a slice of time, in the order in which they are appended."""

    batches: Batches
    chance: np.random.Generator
    until_ns: int
    """Everything that is appended before is in this slice or in an earlier one."""


def edges(skeleton: Skeleton, plan: PartitionPlan) -> Ints:
    """Where slices begin and end, in nominal time; the last one takes what comes later too."""
    sends = plan.sends + sum(part.records for part in plan.parts)
    number = max(-(-sends // SLICE_SENDS), _SLICES_MIN)
    return np.linspace(skeleton.start_ns + 5 * MS, skeleton.end_ns, number + 1).astype(np.int64)


def slices(skeleton: Skeleton, plan: PartitionPlan) -> Iterator[Slice]:
    """One after another; each draws from its own stream of chance."""
    cuts = edges(skeleton, plan)
    number = len(cuts) - 1
    shares = np.diff(np.linspace(0, plan.sends, number + 1).astype(np.int64))
    waiting = Batches.concat(_markers(plan), _refused(plan))
    for index in range(number):
        chance = np.random.default_rng([skeleton.settings.seed, plan.partition, index])
        last = index == number - 1
        span = (int(cuts[index]), int(cuts[index + 1]))
        begun = (0 if index == 0 else span[0], 1 << 52 if last else span[1])
        plain = _plain(chance, skeleton, plan, int(shares[index]), span)
        pool = Batches.concat(waiting, plain, _transactional(chance, plan, begun))
        until_ns = 1 << 52 if last else plan.timeline.appends.one(span[1])
        now = pool.actual < until_ns
        waiting = pool.take(~now)
        batches = pool.take(now)
        yield Slice(
            batches=batches.take(np.lexsort((batches.nominal, batches.actual))), chance=chance, until_ns=until_ns
        )


def _plain(
    chance: np.random.Generator, skeleton: Skeleton, plan: PartitionPlan, sends: int, span: tuple[int, int]
) -> Batches:
    sizes = np.minimum(chance.geometric(1 / _MEAN, sends // 2 + 16), _MOST)
    ends = np.cumsum(sizes)
    number = int(np.searchsorted(ends, sends)) + 1
    sizes = sizes[:number]
    sizes[-1] -= ends[number - 1] - sends
    nominal = np.sort(chance.integers(*span, number))
    writers = np.array(skeleton.writers)
    process = writers[chance.integers(0, len(writers), number)]
    acks_one = process == skeleton.writers[-1]
    fate = _fates(chance, plan, nominal, acks_one)
    actual = np.where(fate == Fate.LOST, nominal, plan.timeline.appends(nominal))
    return Batches.of(nominal, actual, process=process, size=sizes, fate=fate)


def _fates(chance: np.random.Generator, plan: PartitionPlan, nominal: Ints, acks_one: npt.NDArray[np.bool_]) -> Ints:
    fate = np.full(len(nominal), Fate.ACKED, dtype=np.int64)
    luck = chance.random(len(nominal))
    for outage in plan.timeline.outages:
        _fates_around(fate, luck, nominal, acks_one, outage)
    calm = (fate == Fate.ACKED) & ~acks_one & calm_in(plan, nominal)
    rare = chance.permutation(np.flatnonzero(calm))
    each = max(len(nominal) // _RARE, 1)
    for place, one in enumerate((Fate.SILENT, Fate.GONE, Fate.REFUSED)):
        fate[rare[place * each : (place + 1) * each]] = one
    return fate


def _fates_around(
    fate: Ints, luck: npt.NDArray[np.float64], nominal: Ints, acks_one: npt.NDArray[np.bool_], outage: Gap
) -> None:
    """In an outage some batches expire or find no buffer space; some sent just before it get no response."""
    dead = (nominal >= outage.start_ns) & (nominal < outage.end_ns)
    fate[dead & (luck < 0.15)] = Fate.GONE
    fate[dead & (luck > 0.95)] = Fate.REFUSED
    unanswered = (nominal >= outage.start_ns - 30 * MS) & (nominal < outage.lost_from_ns)
    fate[unanswered & ~acks_one & (luck < 0.3)] = Fate.SILENT
    fate[(nominal >= outage.lost_from_ns) & (nominal < outage.start_ns) & acks_one] = Fate.LOST


def calm_in(plan: PartitionPlan, time_ns: Ints) -> npt.NDArray[np.bool_]:
    """Whether nothing is wrong with the partition at these times, nor a moment before or after."""
    calm = np.ones(len(time_ns), dtype=np.bool_)
    for gap in (*plan.timeline.outages, *plan.timeline.stalls):
        calm &= (time_ns < gap.start_ns - 100 * MS) | (time_ns > gap.settled_ns + 100 * MS)
    return calm


def _transactional(chance: np.random.Generator, plan: PartitionPlan, begun: tuple[int, int]) -> Batches:
    """The batches of all transactions that begin in this span."""
    chosen = [
        (number, part) for number, part in enumerate(plan.parts) if begun[0] <= part.transaction.begin_ns < begun[1]
    ]
    numbers = np.array([number for number, _ in chosen], dtype=np.int64)
    records = np.array([part.records for _, part in chosen], dtype=np.int64)
    begin = np.array([part.transaction.begin_ns for _, part in chosen], dtype=np.int64)
    sent = np.array([part.transaction.sent_ns for _, part in chosen], dtype=np.int64)
    process = np.array([part.transaction.process for _, part in chosen], dtype=np.int64)
    batches = -(-records // _MEAN)
    row = np.repeat(np.arange(len(chosen)), batches)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(batches) - batches, batches)
    start = begin + 3 * MS // 10
    place = (rank + chance.random(len(row))) / batches[row]
    nominal = (start[row] + place * (sent - start)[row]).astype(np.int64)
    size = np.minimum(records[row] - rank * _MEAN, _MEAN)
    return Batches.of(
        nominal,
        plan.timeline.appends(nominal),
        kind=Kind.TRANSACTIONAL,
        process=process[row],
        size=size,
        part=numbers[row],
        first=(rank == 0).astype(np.int64),
    )


def _markers(plan: PartitionPlan) -> Batches:
    times = np.array([part.marker_ns for part in plan.parts], dtype=np.int64)
    process = np.array([part.transaction.process for part in plan.parts], dtype=np.int64)
    return Batches.of(times, times, kind=Kind.MARKER, process=process, part=np.arange(len(times)))


def _refused(plan: PartitionPlan) -> Batches:
    """Sends of producers that have been fenced."""
    refusals = [one.refused for one in plan.refused if one.refused is not None]
    times = np.array([one.time_ns for one in refusals], dtype=np.int64)
    process = np.array([one.process for one in plan.refused], dtype=np.int64)
    return Batches.of(times, times, kind=Kind.TRANSACTIONAL, process=process, fate=Fate.REFUSED)
