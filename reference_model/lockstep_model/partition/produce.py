"""A client produces: what the leader answers at once, and what to who waits until the record is committed."""

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
    """Whose copies a producer waits for."""

    ALL = -1
    NONE = 0
    LEADER = 1


class Produce(NamedTuple):
    """One batch of records."""

    acks: int
    """One of `Acks`, or what no client should send."""
    values: tuple[int, ...]
    batch: Batch | None = None
    """What an idempotent or transactional producer says of it."""
    guard: Offset | None = None
    """Its verification, as far as it was verified (KIP-890)."""
    corrupt: bool = False
    """Whether its checksum is not that of its bytes."""


class Produced(NamedTuple):
    """The answer."""

    error: Error
    offset: Offset | None = None
    """Of the first record."""


class Waiting(NamedTuple):
    """Appended, and answered when the high watermark has reached `until` (DelayedProduce)."""

    offset: Offset
    until: Offset


class Unanswered(NamedTuple):
    """A producer with acks=0 is told nothing, but if its batch was refused the connection is closed (KafkaApis)."""

    closed: bool = False


Reply: TypeAlias = Produced | Waiting | Unanswered


def produce(
    parameters: Parameters, replica: Replica, request: Produce, verification: Verification | None = None
) -> tuple[Replica, Reply]:
    """A broker gets a batch (ReplicaManager.appendRecords)."""
    if request.acks not in frozenset(Acks):  # before anybody looks for the partition: isValidRequiredAcks
        return replica, Produced(Error.INVALID_REQUIRED_ACKS)
    error = refusal(parameters, replica, request)
    if error is not Error.NONE:
        return replica, _refused(request, error)
    if request.corrupt:  # before anybody looks at its producer: UnifiedLog.analyzeAndValidateRecords
        return replica, _refused(request, Error.CORRUPT_MESSAGE)
    checked = _checked(parameters, replica, request, verification)
    if isinstance(checked, Error):
        return replica, _refused(request, checked)
    if checked is not None:  # a duplicate, answered like the batch that it repeats
        return replica, _appended(parameters, replica, request, checked)
    offset = replica.log.end
    batches = (request.batch, *(None for _ in request.values))
    records = [
        Record(replica.leader_epoch, value, batch) for value, batch in zip(request.values, batches, strict=False)
    ]
    after = append(parameters, replica, records)
    return after, _appended(parameters, after, request, offset)


def refusal(parameters: Parameters, replica: Replica, request: Produce) -> Error:
    """Why nothing is appended: the ISR that counts is the committed one (Partition.appendRecordsToLeader)."""
    leadership = replica.leadership
    if leadership is None:
        return not_hosted(replica) or Error.NOT_LEADER_OR_FOLLOWER
    if request.acks == Acks.ALL and len(leadership.isr) < effective_min_isr(parameters, leadership):
        return Error.NOT_ENOUGH_REPLICAS
    return Error.NONE


def _checked(
    parameters: Parameters, replica: Replica, request: Produce, verification: Verification | None
) -> Offset | Error | None:
    """Why a producer's batch is refused, or where it is already; None if it is to be appended."""
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
    waiting = Waiting(offset, until=offset + len(request.values))
    return complete(parameters, replica, waiting) or waiting


def complete(parameters: Parameters, replica: Replica, waiting: Waiting) -> Produced | None:
    """What is answered to who waits, once there is something to say (Partition.checkEnoughReplicasReachOffset).

    Where the high watermark stays below min.insync.replicas the second error is rare: the time runs out first.
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
"""What is answered to who still waits after request.timeout.ms: the records stay where they are (DelayedProduce)."""


class Outcome(IntEnum):
    """What a producer knows after an answer."""

    APPENDED = 0
    REFUSED = 1
    UNKNOWN = 2


def outcome(request: Produce, reply: Produced | Unanswered) -> Outcome:
    """Whether the records are in the log, as far as the answer tells.

    A leader that was deposed answers the same to what it had appended as to what it did not take.
    """
    if isinstance(reply, Unanswered):  # a broker that closes the connection may as well have died after it appended
        return Outcome.UNKNOWN
    if reply.error is Error.NONE:
        return Outcome.APPENDED
    waited = request.acks == Acks.ALL and reply.error is Error.NOT_LEADER_OR_FOLLOWER
    return Outcome.UNKNOWN if waited or reply.error in OUTCOME_UNKNOWN else Outcome.REFUSED
