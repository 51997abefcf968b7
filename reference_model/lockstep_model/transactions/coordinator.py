"""What the coordinator of one transactional id answers, and what it has written of it in its log.

A request is given what stands in the log, and answered with what stands there afterwards: the record is replicated
before the answer, so whoever coordinates next knows it (TransactionCoordinator, TransactionMetadata). Where versions of
the protocol differ, what a client asks for goes by its request (`versions`), and what the coordinator does by itself by
`Parameters.transaction_version`. A broker that does not coordinate the id answers as in `coordinators`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import NO_EPOCH, Marker, ProducerId
from lockstep_model.transactions import mutants, versions
from lockstep_model.transactions.versions import Support

Partition: TypeAlias = int
Partitions: TypeAlias = frozenset[Partition]

NO_PRODUCER_ID: ProducerId = -1
LAST_EPOCH = 32766
"""The last that a client may have: one more is left to fence it with (TransactionMetadata.isEpochExhausted)."""
MAX_TIMEOUT_MS = 900_000
"""transaction.max.timeout.ms, by default"""


class TransactionState(StrEnum):
    """What stands in the log of one transactional id. PrepareEpochFence and Dead never do."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""Decided, with markers under way: the completion is pending, and whatever comes meanwhile has to wait."""
COMPLETED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


class Producer(NamedTuple):
    """A producer id with an epoch."""

    id: ProducerId
    epoch: int


NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_EPOCH)
"""Whom a client names that does not know who it is."""


class Transactional(NamedTuple):
    """One transactional id (TransactionMetadata)."""

    producer: Producer
    state: TransactionState = TransactionState.EMPTY
    partitions: Partitions = frozenset()
    last_epoch: int = NO_EPOCH
    """The epoch before this one, if its owner raised it himself: he may have to ask again (KIP-360)."""
    previous_id: ProducerId = NO_PRODUCER_ID
    next_id: ProducerId = NO_PRODUCER_ID
    """With which it goes on after this transaction, as the epochs of the present id are used up."""
    version: int = 0
    """In which version of the protocol the last transaction was ended (clientTransactionVersion)."""
    unmarked: Partitions = frozenset()
    """Which partitions have not taken their marker yet. Not in the log: the next coordinator sends all of them."""


class InitProducerId(NamedTuple):
    """A client starts or, if it says who it is, goes on after an error (KIP-360)."""

    timeout_ms: int = 60_000
    expected: Producer | None = None
    version: int | None = None
    """Of the request, as in all of them: None is the newest that clients of this cluster use."""


class AddPartitionsToTxn(NamedTuple):
    """These partitions are about to be written. AddOffsetsToTxn is the same for the group's partition of offsets."""

    producer: Producer
    partitions: Partitions
    version: int | None = None


class EndTxn(NamedTuple):
    """Commit or abort."""

    producer: Producer
    commit: bool
    version: int | None = None


class Answer(NamedTuple):
    """An error, or success with who the client is from now on, where it is told."""

    error: Error = Error.NONE
    producer: Producer | None = None


Answered: TypeAlias = tuple[Transactional | None, Answer]


def init_producer_id(
    transactional: Transactional | None,
    request: InitProducerId,
    parameters: Parameters,
    *,
    fresh: ProducerId,
    max_timeout_ms: int = MAX_TIMEOUT_MS,
) -> Answered:
    """TransactionCoordinator.handleInitProducerId; `fresh` is the next producer id that nobody has."""
    expected = None if request.expected == NO_PRODUCER else request.expected
    if expected is not None and NO_EPOCH in expected:  # an id without an epoch, or an epoch without an id
        return transactional, Answer(Error.INVALID_REQUEST)
    if not 0 < request.timeout_ms <= max_timeout_ms:
        return transactional, Answer(Error.INVALID_TRANSACTION_TIMEOUT)
    known = transactional or Transactional(Producer(fresh, NO_EPOCH))
    if known.state in PREPARED:
        return known, Answer(Error.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_be(known, expected):
        return known, _fenced_answer(request.version, fenced_from=4)
    if known.state is TransactionState.ONGOING and parameters.guards(mutants.ABORT_ON_INIT):
        # Whoever has it open is fenced, and the client has to ask again
        return _fenced(known, parameters, fresh), Answer(Error.CONCURRENT_TRANSACTIONS)
    after, answer = _initialized(known, expected, parameters, fresh)
    return after, answer._replace(error=versions.told(answer.error, request.version, fenced_from=4))


def init_idempotent_producer_id(*, fresh: ProducerId) -> Answer:
    """InitProducerId without a transactional id: any broker gives a new producer id, whatever else is asked for."""
    return Answer(producer=Producer(fresh, 0))


def _fenced_answer(version: int | None, *, fenced_from: int) -> Answer:
    return Answer(versions.told(Error.PRODUCER_FENCED, version, fenced_from=fenced_from))


def _may_be(known: Transactional, expected: Producer) -> bool:
    """Whether the client can be who it says (prepareInitProducerIdTransit.isValidProducerId)."""
    if known.producer.epoch == NO_EPOCH or expected.id == known.producer.id:
        return True
    return expected.id == known.previous_id and expected.epoch >= LAST_EPOCH  # it did not learn of its new id


def _initialized(
    known: Transactional, expected: Producer | None, parameters: Parameters, fresh: ProducerId
) -> Answered:
    """Another epoch (prepareIncrementProducerEpoch), or another id if they are used up (prepareProducerIdRotation)."""
    identifier, epoch = known.producer
    if epoch >= LAST_EPOCH:
        if expected is not None and expected.epoch != epoch:
            return known, Answer(Error.UNKNOWN_SERVER_ERROR)
        producer, last_epoch = Producer(fresh, 0), epoch if expected else NO_EPOCH
    elif expected is None or epoch == NO_EPOCH or expected.epoch == epoch:
        raised = epoch + 1 if epoch == NO_EPOCH or parameters.guards(mutants.EPOCH_BUMP_ON_INIT) else epoch
        producer, last_epoch = Producer(identifier, raised), epoch if expected else NO_EPOCH
    elif expected.epoch == known.last_epoch:  # asked again, as the answer was lost
        producer, last_epoch = known.producer, known.last_epoch
    else:
        return known, Answer(Error.PRODUCER_FENCED)
    after = Transactional(producer, last_epoch=last_epoch, previous_id=identifier)
    return after, Answer(producer=producer)


def add_partitions(
    transactional: Transactional | None, request: AddPartitionsToTxn, parameters: Parameters
) -> Answered:
    """TransactionCoordinator.handleAddPartitionsToTransaction. In version 2 brokers ask it for what a client writes."""
    if transactional is None:
        return transactional, Answer(Error.INVALID_PRODUCER_ID_MAPPING)
    waits = transactional.state in PREPARED and parameters.guards(mutants.ADD_WAITS_FOR_MARKERS)
    # First, for in version 2 the client may already have its next id or epoch: KAFKA-18660
    if waits and parameters.transactions_of_4 and parameters.guards(mutants.ADD_WAITS_BEFORE_IDENTITY):
        return transactional, Answer(Error.CONCURRENT_TRANSACTIONS)
    error = _mismatch(transactional, request.producer, checked=parameters.guards(mutants.ADD_EPOCH_CHECK))
    if error is not Error.NONE:
        return transactional, Answer(versions.told(error, request.version, fenced_from=2))
    if waits:
        return transactional, Answer(Error.CONCURRENT_TRANSACTIONS)
    partitions = transactional.partitions | request.partitions
    return transactional._replace(state=TransactionState.ONGOING, partitions=partitions, unmarked=frozenset()), Answer()


def verify_partition(transactional: Transactional | None, producer: Producer, partition: Partition) -> Error:
    """Whether this partition is in this producer's transaction (handleVerifyPartitionsInTransaction)."""
    if transactional is None:
        return Error.INVALID_PRODUCER_ID_MAPPING
    error = _mismatch(transactional, producer, checked=True)
    if error is not Error.NONE:
        return error
    if transactional.state in PREPARED:
        return Error.CONCURRENT_TRANSACTIONS
    return Error.NONE if partition in transactional.partitions else Error.TRANSACTION_ABORTABLE


def end_transaction(
    transactional: Transactional | None, request: EndTxn, parameters: Parameters, *, fresh: ProducerId
) -> Answered:
    """TransactionCoordinator.handleEndTransaction: the answer does not wait for the markers."""
    if transactional is None:
        return transactional, Answer(Error.INVALID_PRODUCER_ID_MAPPING)
    if versions.raises_epoch(request.version, parameters):
        return _end_in_version_2(transactional, request, parameters, fresh)
    checked = parameters.guards(mutants.END_EPOCH_CHECK)
    error = _mismatch(transactional, request.producer, checked=checked)
    if error is not Error.NONE:
        return transactional, Answer(versions.told(error, request.version, fenced_from=2))
    if transactional.state is TransactionState.ONGOING:
        after = _prepared(transactional, commit=request.commit)
        return after, Answer(producer=after.producer)
    return transactional, _answer_without_transaction(transactional, request, parameters)


def _answer_without_transaction(transactional: Transactional, request: EndTxn, parameters: Parameters) -> Answer:
    """An end that was asked for before is answered as it was then, or has to wait for its markers."""
    if transactional.state in PREPARED:
        return Answer(Error.CONCURRENT_TRANSACTIONS)
    same = TransactionState.COMPLETE_COMMIT if request.commit else TransactionState.COMPLETE_ABORT
    opposite = transactional.state in COMPLETED and not parameters.guards(mutants.END_DIRECTION_CHECK)
    if transactional.state is same or opposite:
        return Answer(producer=transactional.producer)
    return Answer(Error.INVALID_TXN_STATE)


def _end_in_version_2(
    transactional: Transactional, request: EndTxn, parameters: Parameters, fresh: ProducerId
) -> Answered:
    """Each end raises the epoch, so a request with the epoch before this one is a repeated one (KIP-890 part 2).

    While markers are written everybody has to wait, before anybody looks who he is.
    """
    state, producer = transactional.state, request.producer
    if state in PREPARED and parameters.guards(mutants.END_WAITS_FOR_MARKERS):
        return transactional, Answer(Error.CONCURRENT_TRANSACTIONS)
    rotated = producer == (transactional.previous_id, LAST_EPOCH) and transactional.producer.epoch == 0
    repeated = rotated or transactional.producer.epoch == producer.epoch + 1
    if producer.id != transactional.producer.id and not rotated:
        return transactional, Answer(Error.INVALID_PRODUCER_ID_MAPPING)
    current = producer.epoch == transactional.producer.epoch
    accepted = current or (repeated and state in COMPLETED and parameters.guards(mutants.END_MAY_BE_REPEATED))
    if not accepted and parameters.guards(mutants.END_EPOCH_CHECK):
        return transactional, Answer(Error.PRODUCER_FENCED)
    empty = not repeated  # nothing is open: an abort raises the epoch, a commit is an error
    if state is TransactionState.ONGOING or (empty and not request.commit):
        after = _bumped(_prepared(transactional, commit=request.commit), parameters, fresh)
        return after, Answer(producer=Producer(after.next_id, 0) if _rotates(after) else after.producer)
    if empty:
        return transactional, Answer(Error.INVALID_TXN_STATE)
    return transactional, _answer_without_transaction(transactional, request, parameters)


def abort_timed_out(transactional: Transactional, parameters: Parameters, *, fresh: ProducerId) -> Transactional | None:
    """The transaction was open for too long; None where none is (abortTimedOutTransactions)."""
    return _fenced(transactional, parameters, fresh) if transactional.state is TransactionState.ONGOING else None


def _fenced(transactional: Transactional, parameters: Parameters, fresh: ProducerId) -> Transactional:
    """Aborted with an epoch that no client has, so that its owner can do nothing more (prepareFenceProducerEpoch).

    The coordinator does it in the version of the cluster, whatever the client's.
    """
    version = parameters.transaction_version
    aborting = _prepared(transactional, commit=False)._replace(version=version)
    if not parameters.guards(mutants.EPOCH_BUMP_ON_FENCE):
        return aborting
    if version >= 2:  # raised once, though it is fenced and ended: KAFKA-19367
        return _bumped(aborting, parameters, fresh)
    return aborting._replace(producer=_raised(aborting.producer), last_epoch=NO_EPOCH)


def _prepared(transactional: Transactional, *, commit: bool) -> Transactional:
    """In the old version; `_bumped` makes it one of version 2."""
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    return transactional._replace(state=state, unmarked=transactional.partitions, version=0)


def _bumped(transactional: Transactional, parameters: Parameters, fresh: ProducerId) -> Transactional:
    """With the next epoch, and with another id for later if that is one too many for a client (KAFKA-20090)."""
    if not parameters.guards(mutants.EPOCH_BUMP_ON_END):
        return transactional._replace(version=2)
    epoch = transactional.producer.epoch
    return transactional._replace(
        producer=_raised(transactional.producer),
        last_epoch=epoch,
        next_id=fresh if epoch >= LAST_EPOCH else NO_PRODUCER_ID,
        version=2,
    )


def _raised(producer: Producer) -> Producer:
    return producer._replace(epoch=producer.epoch + 1)


def _rotates(transactional: Transactional) -> bool:
    return transactional.next_id != NO_PRODUCER_ID


def _mismatch(transactional: Transactional, producer: Producer, *, checked: bool) -> Error:
    """Whether the client is the one that has this transactional id now."""
    if producer.id != transactional.producer.id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != transactional.producer.epoch and checked:
        return Error.PRODUCER_FENCED
    return Error.NONE


def marker(transactional: Transactional, coordinator_epoch: int) -> Marker:
    """What is sent to every partition of a decided transaction (TransactionMarkerChannelManager)."""
    commit = transactional.state is TransactionState.PREPARE_COMMIT
    return Marker(*transactional.producer, commit, coordinator_epoch, transactional.version)


def marked(transactional: Transactional, partition: Partition) -> Transactional:
    """This partition has taken its marker."""
    return transactional._replace(unmarked=transactional.unmarked - {partition})


def complete(transactional: Transactional, parameters: Parameters) -> Transactional | None:
    """All markers are written; None before that (maybeWriteTxnCompletion, TransactionMetadata.prepareComplete)."""
    if transactional.state not in PREPARED:
        return None
    if transactional.unmarked and parameters.guards(mutants.COMPLETE_WAITS_FOR_MARKERS):
        return None
    committed = transactional.state is TransactionState.PREPARE_COMMIT
    rotates = _rotates(transactional)
    return transactional._replace(
        producer=Producer(transactional.next_id, 0) if rotates else transactional.producer,
        previous_id=transactional.producer.id if transactional.version >= 2 else transactional.previous_id,
        next_id=NO_PRODUCER_ID,
        state=TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        unmarked=frozenset(),
    )


def loaded(transactional: Transactional, parameters: Parameters) -> Transactional:
    """As the next coordinator finds it in the log: it sends all markers of a decided transaction (onElection).

    The epoch before is never there, and in transaction.version 0 nor is what version 2 needs (TransactionLogValue): who
    asks again after its coordinator moved is fenced.
    """
    kept = transactional._replace(
        last_epoch=NO_EPOCH,
        unmarked=transactional.partitions if transactional.state in PREPARED else frozenset(),
    )
    if parameters.transaction_version >= 1:
        return kept
    return kept._replace(previous_id=NO_PRODUCER_ID, next_id=NO_PRODUCER_ID, version=0)


UNANSWERED = frozenset(
    {
        Error.NETWORK_EXCEPTION,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
    }
)
"""After which a broker may ask again, perhaps somebody else: the first is its own, when the connection ended."""


def verification_error(error: Error, support: Support) -> Error:
    """How a broker takes the coordinator's answer about a partition of this client (AddPartitionsToTxnManager)."""
    if error is Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error is Error.TRANSACTION_ABORTABLE and support < Support.ABORTABLE_ERROR:
        return Error.INVALID_TXN_STATE
    return error


def produce_error(error: Error, support: Support) -> Error:
    """What a producer is told when the coordinator refuses its partition (ReplicaManager.handleProduceAppend).

    Who commits offsets in a transaction is told as in `coordinators.write_error`.
    """
    waits = error is Error.CONCURRENT_TRANSACTIONS and support < Support.ADD_PARTITION
    if waits or error in UNANSWERED:
        return Error.NOT_ENOUGH_REPLICAS  # which older clients retry without asking for metadata
    return verification_error(error, support)
