"""Produce: the immediate response, and the delayed one for acks=all (ReplicaManager.appendRecords, DelayedProduce)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import OUTCOME_UNKNOWN, Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.log import Offset, Record
from lockstep_model.partition.producer_state import Batch, Duplicate, Verification, check
from lockstep_model.partition.replica import Replica, append, effective_min_isr, maximal_isr, not_hosted
from lockstep_model.replication import mutants


class Acks(IntEnum):
    """The acks setting of a producer: none, the leader, or all in-sync replicas."""

    ALL = -1
    NONE = 0
    LEADER = 1


class Produce(NamedTuple):
    """A Produce request with one batch for one partition."""

    acks: int
    """One of `Acks`; any other value is answered with INVALID_REQUIRED_ACKS."""
    values: tuple[int, ...]
    batch: Batch | None = None
    """Producer id, epoch and sequences, if the producer is idempotent or transactional."""
    guard: Offset | None = None
    """The VerificationGuard of a transactional batch that was verified with the coordinator (KIP-890)."""
    corrupt: bool = False
    """Whether the CRC of the batch does not match its bytes."""


class Produced(NamedTuple):
    """The Produce response."""

    error: Error
    offset: Offset | None = None
    """baseOffset: the offset of the first record."""


class DelayedProduce(NamedTuple):
    """A delayed acks=all response: sent when the high watermark has reached `until` (DelayedProduce)."""

    offset: Offset
    until: Offset


class Unanswered(NamedTuple):
    """acks=0 gets no response; after an error the broker closes the connection (KafkaApis.handleProduceRequest)."""

    closed: bool = False


Reply: TypeAlias = Produced | DelayedProduce | Unanswered


def produce(
    parameters: Parameters, replica: Replica, request: Produce, verification: Verification | None = None
) -> tuple[Replica, Reply]:
    """A broker handles a Produce request: validate, append, respond or delay (ReplicaManager.appendRecords)."""
    if request.acks not in frozenset(Acks):  # checked before the partition is looked up: isValidRequiredAcks
        return replica, Produced(Error.INVALID_REQUIRED_ACKS)
    error = refusal(parameters, replica, request)
    if error is not Error.NONE:
        return replica, _refused(request, error)
    if request.corrupt:  # the CRC is checked before producer state: UnifiedLog.analyzeAndValidateRecords
        return replica, _refused(request, Error.CORRUPT_MESSAGE)
    checked = _checked(parameters, replica, request, verification)
    if isinstance(checked, Error):
        return replica, _refused(request, checked)
    if checked is not None:  # a duplicate batch gets the response of the original
        return replica, _appended(parameters, replica, request, checked)
    offset = replica.log.end
    batches = (request.batch, *(None for _ in request.values))
    records = [
        Record(replica.leader_epoch, value, batch) for value, batch in zip(request.values, batches, strict=False)
    ]
    after = append(parameters, replica, records)
    return after, _appended(parameters, after, request, offset)


def refusal(parameters: Parameters, replica: Replica, request: Produce) -> Error:
    """Error before the append; acks=all counts the committed ISR, not the maximal (Partition.appendRecordsToLeader)."""
    leadership = replica.leadership
    if leadership is None:
        return not_hosted(replica) or Error.NOT_LEADER_OR_FOLLOWER
    if request.acks == Acks.ALL and len(leadership.isr) < effective_min_isr(parameters, leadership):
        return Error.NOT_ENOUGH_REPLICAS
    return Error.NONE


def _checked(
    parameters: Parameters, replica: Replica, request: Produce, verification: Verification | None
) -> Offset | Error | None:
    """Validation of an idempotent batch: an error, the offset of its duplicate, or None if it is to be appended.

    UnifiedLog.analyzeAndValidateProducerState.
    """
    if request.batch is None:
        return None
    entry = replica.log.known.entry(request.batch.producer_id)
    checked = check(entry, request.batch, parameters, verification=verification, guard=request.guard)
    if isinstance(checked, Duplicate):
        return checked.first_offset
    return checked if isinstance(checked, Error) else None


def _refused(request: Produce, error: Error) -> Reply:
    return Unanswered(closed=True) if request.acks == Acks.NONE else Produced(error)


def _appended(parameters: Parameters, replica: Replica, request: Produce, offset: Offset) -> Reply:
    if request.acks == Acks.NONE:
        return Unanswered()
    if request.acks == Acks.LEADER:
        return Produced(Error.NONE, offset)
    waiting = DelayedProduce(offset, until=offset + len(request.values))
    return complete(parameters, replica, waiting) or waiting


def complete(parameters: Parameters, replica: Replica, waiting: DelayedProduce) -> Produced | None:
    """The delayed acks=all response; None until the high watermark is there (Partition.checkEnoughReplicasReachOffset).

    From 3.7 on NOT_ENOUGH_REPLICAS_AFTER_APPEND is rare: below min.insync.replicas the high watermark does not advance
    (KIP-966), so the request ends with REQUEST_TIMED_OUT first.
    """
    leadership = replica.leadership
    if leadership is None:
        return Produced(not_hosted(replica) or Error.NOT_LEADER_OR_FOLLOWER)
    if replica.high_watermark < waiting.until and parameters.guards(mutants.ANSWER_WAITS):
        return None
    if len(maximal_isr(parameters, leadership)) < effective_min_isr(parameters, leadership):
        return Produced(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    return Produced(Error.NONE, waiting.offset)


EXPIRED = Produced(Error.REQUEST_TIMED_OUT)
"""The acks=all response after the request's timeout: the records stay in the log (DelayedProduce.onExpiration)."""


class ProduceOutcome(IntEnum):
    """What a Produce response tells the producer of its records."""

    APPENDED = 0
    REFUSED = 1
    UNKNOWN = 2


def outcome(request: Produce, reply: Produced | Unanswered) -> ProduceOutcome:
    """Whether the records were appended, as far as the Produce response tells.

    For acks=all NOT_LEADER_OR_FOLLOWER is ambiguous: a broker that does not lead sends it, and so does a leader that
    appended the batch and then lost leadership.
    """
    if isinstance(reply, Unanswered):  # a closed connection may also mean that the broker died after the append
        return ProduceOutcome.UNKNOWN
    if reply.error is Error.NONE:
        return ProduceOutcome.APPENDED
    waited = request.acks == Acks.ALL and reply.error is Error.NOT_LEADER_OR_FOLLOWER
    return ProduceOutcome.UNKNOWN if waited or reply.error in OUTCOME_UNKNOWN else ProduceOutcome.REFUSED
