"""One idempotent producer and one partition leader as a state machine: retries never duplicate or reorder (I12).

The producer has several batches of one record in flight and retries each until it is acknowledged. A batch that was
sent may reach the leader at any time and any number of times. TCP would keep the order, so this network allows more
than a real one.
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
from lockstep_model.partition.producer_state import Acceptance, Batch, Duplicate
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule

PRODUCER_ID = 0

ONCE_IN_ORDER = "sequences-contiguous"
KEPT = "acknowledged-kept"
NOT_REFUSED = "in-order-not-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotenceBounds:
    """Bounds of the search."""

    batches: int = 3
    in_flight: int = 1
    """max.in.flight.requests.per.connection"""
    known: bool = True
    """Whether batch 0 is acknowledged at the start: a leader without state for a producer id accepts any sequence."""
    elections: int = 0
    restarts: int = 0


class Sender(NamedTuple):
    """The idempotent producer: how many batches it sent, and which of them are acknowledged."""

    sent: int
    acknowledged: frozenset[int]
    misled: bool = False
    """Whether its oldest unacknowledged batch was answered with OUT_OF_ORDER_SEQUENCE_NUMBER."""

    @property
    def oldest(self) -> int:
        """The lowest sequence that is not acknowledged."""
        return next(number for number in range(self.sent + 1) if number not in self.acknowledged)


class Receiver(NamedTuple):
    """The partition leader; the value of each record in its log is its sequence."""

    log: Log = Log()
    high_watermark: Offset = 0
    elections: int = 0
    restarts: int = 0


def machine(parameters: Parameters, bounds: IdempotenceBounds) -> Machine:
    """The state machine of two parts: the producer, and the partition leader."""
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
    """The producer sends its next batch while fewer than `in_flight` are unacknowledged.

    RecordAccumulator.shouldStopDrainBatchesForPartition.
    """
    if sender.sent < bounds.batches and sender.sent - sender.oldest < bounds.in_flight and not sender.misled:
        yield (sender._replace(sent=sender.sent + 1),)


def arrive(parameters: Parameters, number: int, sender: Sender, leader: Receiver) -> Outcomes:
    """A batch reaches the leader, first or as a retry; the Produce response reaches the producer or is lost.

    UnifiedLog.analyzeAndValidateProducerState. A duplicate is answered with the offset of the original batch.
    """
    if number >= sender.sent or sender.misled:
        return
    checked = producer_state.check(leader.log.known.entry(PRODUCER_ID), Batch(PRODUCER_ID, 0, number), parameters)
    if isinstance(checked, Error):
        refused = checked is Error.OUT_OF_ORDER_SEQUENCE_NUMBER and number == sender.oldest
        yield sender._replace(misled=refused), leader
        return
    offset = checked.first_offset if isinstance(checked, Duplicate) else leader.log.end
    if isinstance(checked, Acceptance):
        leader = leader._replace(log=leader.log.append([_record(number)]))
    yield sender, leader
    if offset < leader.high_watermark:
        yield sender._replace(acknowledged=sender.acknowledged | {number}), leader


def replicate(leader: Receiver) -> Outcomes:
    """All followers fetch to the log end offset; the high watermark reaches it (Partition.maybeIncrementLeaderHW)."""
    yield (leader._replace(high_watermark=leader.log.end),)


def elect(leader: Receiver) -> Outcomes:
    """A follower from the ISR becomes leader: its log ends between the old leader's high watermark and log end.

    Its producer state comes from replicated batches only (ProducerAppendInfo, AppendOrigin.REPLICATION).
    """
    if leader.elections:
        for end in range(leader.high_watermark, leader.log.end + 1):
            log = Log().append(leader.log.read(0, end))
            yield (leader._replace(log=log, elections=leader.elections - 1),)


def restart(leader: Receiver) -> Outcomes:
    """The leader restarts with its log, and with producer state of a snapshot: one batch per producer id."""
    if leader.restarts:
        yield (leader._replace(log=leader.log.restart(leader.log.end), restarts=leader.restarts - 1),)


def once_in_order(leader: Receiver) -> bool:
    """I12: sequences of one producer id and epoch are contiguous in the log, without a duplicate."""
    sequences = [record.value for record in leader.log.records]
    return all(after == before + 1 for before, after in pairwise(sequences))


def kept(sender: Sender, leader: Receiver) -> bool:
    """Every acknowledged record is in the leader's log below the high watermark."""
    return sender.acknowledged <= {record.value for record in leader.log.read(0, leader.high_watermark)}
