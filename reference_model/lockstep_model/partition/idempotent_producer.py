"""One idempotent producer and the leader that it writes to: batches in any order, repeated, late, and never twice.

The producer has several batches under way, one record each, and sends each again until it is acknowledged. Whatever
it sent may arrive at any time and any number of times. That is more than a connection does, which keeps the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition import producer_state
from lockstep_model.partition.log import Log, Offset, Record
from lockstep_model.partition.producer_state import Accepted, Batch, Duplicate
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule

PRODUCER_ID = 0

ONCE_IN_ORDER = "sequences-contiguous"
KEPT = "acknowledged-kept"
NOT_REFUSED = "in-order-not-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotenceBounds:
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


class Receiver(NamedTuple):
    """The partition's leader: the values in its log are sequences."""

    log: Log = Log()
    high_watermark: Offset = 0
    elections: int = 0
    restarts: int = 0


def machine(parameters: Parameters, bounds: IdempotenceBounds) -> Machine:
    """The machine: the producer is its first part, the leader its second."""
    sender = Sender(sent=1, acknowledged=frozenset({0})) if bounds.known else Sender(0, frozenset())
    leader = Receiver(Log().append([_record(0)]), 1) if bounds.known else Receiver()
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


def _record(number: int) -> Record:
    return Record(0, number, Batch(PRODUCER_ID, 0, number))


def send(bounds: IdempotenceBounds, sender: Sender) -> Outcomes:
    """The next batch leaves while few enough are under way (RecordAccumulator.shouldStopDrainBatchesForPartition)."""
    if sender.sent < bounds.batches and sender.sent - sender.oldest < bounds.in_flight and not sender.misled:
        yield (sender._replace(sent=sender.sent + 1),)


def arrive(parameters: Parameters, number: int, sender: Sender, leader: Receiver) -> Outcomes:
    """A batch arrives for the first time, again or late; the answer arrives or does not."""
    if number >= sender.sent or sender.misled:
        return
    checked = producer_state.check(leader.log.known.entry(PRODUCER_ID), Batch(PRODUCER_ID, 0, number), parameters)
    if isinstance(checked, Error):
        refused = checked is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and number == sender.oldest
        yield sender._replace(misled=refused), leader
        return
    offset = checked.first_offset if isinstance(checked, Duplicate) else leader.log.end
    if isinstance(checked, Accepted):
        leader = leader._replace(log=leader.log.append([_record(number)]))
    yield sender, leader
    if offset < leader.high_watermark:
        yield sender._replace(acknowledged=sender.acknowledged | {number}), leader


def replicate(leader: Receiver) -> Outcomes:
    """The followers have everything."""
    yield (leader._replace(high_watermark=leader.log.end),)


def elect(leader: Receiver) -> Outcomes:
    """A follower leads, with everything that is committed and perhaps more, and knows what its log says."""
    if leader.elections:
        for end in range(leader.high_watermark, leader.log.end + 1):
            log = Log().append(leader.log.read(0, end))
            yield (leader._replace(log=log, elections=leader.elections - 1),)


def restart(leader: Receiver) -> Outcomes:
    """The leader stops and comes back: it has its log, but only its snapshot of the producer."""
    if leader.restarts:
        yield (leader._replace(log=leader.log.restart(leader.log.end), restarts=leader.restarts - 1),)


def once_in_order(leader: Receiver) -> bool:
    """Each sequence in the log comes after the one before it (I12)."""
    sequences = [record.value for record in leader.log.records]
    return all(after == before + 1 for before, after in pairwise(sequences))


def kept(sender: Sender, leader: Receiver) -> bool:
    """Acknowledged records are below the high watermark."""
    return sender.acknowledged <= {record.value for record in leader.log.read(0, leader.high_watermark)}
