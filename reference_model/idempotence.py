"""One idempotent producer and the leader that it writes to: batches in any order, repeated, late, and never twice.

The producer has several batches under way, one record each, and sends each again until it is acknowledged. Whatever
it sent may arrive at any time and any number of times. That is more than a connection does, which keeps the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from reference_model import producer_state
from reference_model.errors import Error
from reference_model.machine import Invariant, Machine, Outcomes, Rule
from reference_model.parameters import Parameters
from reference_model.producer_state import NOBODY, Accepted, Batch, Duplicate, Offset, ProducerEntry

PRODUCER_ID = 0

ONCE_IN_ORDER = "sequences-contiguous"
KEPT = "acknowledged-kept"
NOT_REFUSED = "in-order-not-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much can happen."""

    batches: int = 3
    in_flight: int = 1
    """max.in.flight.requests.per.connection"""
    known: bool = True
    """Whether the producer's first batch has been acknowledged before: to an unknown producer any sequence is right."""
    elections: int = 0
    restarts: int = 0


class Sender(NamedTuple):
    """The producer."""

    sent: int
    acknowledged: frozenset[int]
    misled: bool = False
    """Told that its oldest batch is out of order."""

    @property
    def oldest(self) -> int:
        """The first batch that is not acknowledged."""
        return next(number for number in range(self.sent + 1) if number not in self.acknowledged)


class Leader(NamedTuple):
    """The partition's log as sequences, and what is known of the producer."""

    log: tuple[int, ...]
    high_watermark: Offset
    entry: ProducerEntry
    elections: int = 0
    restarts: int = 0


def machine(parameters: Parameters, bounds: Bounds) -> Machine:
    """The machine: the producer is its first part, the leader its second."""
    first = producer_state.appended(NOBODY, _batch(0), 0)
    sender = Sender(sent=1, acknowledged=frozenset({0})) if bounds.known else Sender(0, frozenset())
    leader = Leader((0,), 1, first) if bounds.known else Leader((), 0, NOBODY)
    return Machine(
        initial=(sender, leader._replace(elections=bounds.elections, restarts=bounds.restarts)),
        rules=(
            Rule(name="the producer sends its next batch", reads=(0,), effect=partial(send, bounds)),
            *(
                Rule(name=f"batch {number} arrives", reads=(0, 1), effect=partial(arrive, parameters, number))
                for number in range(bounds.batches)
            ),
            Rule(name="the followers fetch", reads=(1,), effect=replicate),
            Rule(name="another replica leads", reads=(1,), effect=elect),
            Rule(name="the leader restarts", reads=(1,), effect=restart),
        ),
        invariants=(
            Invariant(name=ONCE_IN_ORDER, reads=(1,), holds=once_in_order),
            Invariant(name=KEPT, reads=(0, 1), holds=kept),
            Invariant(name=NOT_REFUSED, reads=(0,), holds=lambda sender: not sender.misled),
        ),
    )


def _batch(number: int) -> Batch:
    return Batch(PRODUCER_ID, 0, number)


def send(bounds: Bounds, sender: Sender) -> Outcomes:
    """The next batch leaves while few enough are under way (RecordAccumulator.shouldStopDrainBatchesForPartition)."""
    if sender.sent < bounds.batches and sender.sent - sender.oldest < bounds.in_flight and not sender.misled:
        yield (sender._replace(sent=sender.sent + 1),)


def arrive(parameters: Parameters, number: int, sender: Sender, leader: Leader) -> Outcomes:
    """A batch arrives for the first time, again or late; the answer arrives or does not."""
    if number >= sender.sent or sender.misled:
        return
    checked = producer_state.check(leader.entry, _batch(number), parameters)
    if isinstance(checked, Error):
        refused = checked is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and number == sender.oldest
        yield sender._replace(misled=refused), leader
        return
    offset = checked.first_offset if isinstance(checked, Duplicate) else len(leader.log)
    if isinstance(checked, Accepted):
        entry = producer_state.appended(leader.entry, _batch(number), offset)
        leader = leader._replace(log=(*leader.log, number), entry=entry)
    yield sender, leader
    if offset < leader.high_watermark:
        yield sender._replace(acknowledged=sender.acknowledged | {number}), leader


def replicate(leader: Leader) -> Outcomes:
    """The followers have everything."""
    yield (leader._replace(high_watermark=len(leader.log)),)


def elect(leader: Leader) -> Outcomes:
    """A follower leads, with everything that is committed and perhaps more, and knows what its log says."""
    if leader.elections:
        for end in range(leader.high_watermark, len(leader.log) + 1):
            log = leader.log[:end]
            producers = producer_state.replay((offset, _batch(number)) for offset, number in enumerate(log))
            entry = producers.get(PRODUCER_ID, NOBODY)
            yield (leader._replace(log=log, entry=entry, elections=leader.elections - 1),)


def restart(leader: Leader) -> Outcomes:
    """The leader stops cleanly and comes back: it has its log, but only its snapshot of the producer."""
    if leader.restarts and leader.entry is not NOBODY:
        entry = producer_state.snapshot({PRODUCER_ID: leader.entry})[PRODUCER_ID]
        yield (leader._replace(entry=entry, restarts=leader.restarts - 1),)


def once_in_order(leader: Leader) -> bool:
    """Each sequence in the log comes after the one before it (I12)."""
    return all(after == before + 1 for before, after in zip(leader.log, leader.log[1:], strict=False))


def kept(sender: Sender, leader: Leader) -> bool:
    """Acknowledged records are below the high watermark."""
    return sender.acknowledged <= set(leader.log[: leader.high_watermark])
