"""The transaction coordinator of one transactional id: responses, and metadata in the transaction log.

TransactionCoordinator and TransactionMetadata. Each request takes the metadata and returns the next one with the
response. The log record is replicated before the response is sent, so the next coordinator loads it. For requests the
protocol version is the request's (`versions`); for actions of the coordinator itself it is
`Parameters.transaction_version`. A broker that is not the coordinator answers as in `coordinators`.
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
"""Highest epoch a producer may have; the one above is kept for fencing (TransactionMetadata.isEpochExhausted)."""
MAX_TIMEOUT_MS = 900_000
"""Default of transaction.max.timeout.ms."""


class TransactionState(StrEnum):
    """State in the transaction log of one transactional id; PrepareEpochFence and Dead are never in the log."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The transaction is decided and its markers are in flight; other requests get CONCURRENT_TRANSACTIONS."""
COMPLETED = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})


class Producer(NamedTuple):
    """A producer id with an epoch."""

    id: ProducerId
    epoch: int


NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_EPOCH)
"""Producer id and epoch in the InitProducerId of a producer that has none yet."""


class TransactionMetadata(NamedTuple):
    """Transaction metadata of the current coordinator for one transactional id (TransactionMetadata)."""

    producer: Producer
    state: TransactionState = TransactionState.EMPTY
    partitions: Partitions = frozenset()
    last_epoch: int = NO_EPOCH
    """lastProducerEpoch: the epoch before a bump by the producer itself, so that a retry of InitProducerId is
    recognized (KIP-360)."""
    previous_id: ProducerId = NO_PRODUCER_ID
    """previousProducerId: the producer id before the present one."""
    next_id: ProducerId = NO_PRODUCER_ID
    """nextProducerId: the id after this transaction completes, when the epochs of the present id are exhausted
    (KIP-890)."""
    version: int = 0
    """clientTransactionVersion: the protocol version in which the last transaction was ended."""
    unmarked: Partitions = frozenset()
    """Partitions whose marker is not acknowledged yet. Not in the log: the next coordinator sends all markers again."""


class InitProducerId(NamedTuple):
    """InitProducerId: a producer starts, or with its id and epoch recovers after an error (KIP-360)."""

    timeout_ms: int = 60_000
    expected: Producer | None = None
    """Producer id and epoch of a producer that recovers."""
    version: int | None = None
    """Request version, as in all requests here; None is the newest version that clients of this cluster use."""


class AddPartitionsToTxn(NamedTuple):
    """AddPartitionsToTxn; also AddOffsetsToTxn, for the group's partition of __consumer_offsets."""

    producer: Producer
    partitions: Partitions
    version: int | None = None


class EndTxn(NamedTuple):
    """EndTxn: commit or abort."""

    producer: Producer
    commit: bool
    version: int | None = None


class Answer(NamedTuple):
    """A response: an error, or success with the producer id and epoch where the response carries them."""

    error: Error = Error.NONE
    producer: Producer | None = None


CoordinatorResult: TypeAlias = tuple[TransactionMetadata | None, Answer]


def init_producer_id(
    transactional: TransactionMetadata | None,
    request: InitProducerId,
    parameters: Parameters,
    *,
    fresh: ProducerId,
    max_timeout_ms: int = MAX_TIMEOUT_MS,
) -> CoordinatorResult:
    """InitProducerId: fences the previous producer and aborts its open transaction.

    TransactionCoordinator.handleInitProducerId. `fresh` is the next unused producer id.
    """
    expected = None if request.expected == NO_PRODUCER else request.expected
    if expected is not None and NO_EPOCH in expected:  # only one of producer id and epoch is set
        return transactional, Answer(Error.INVALID_REQUEST)
    if not 0 < request.timeout_ms <= max_timeout_ms:
        return transactional, Answer(Error.INVALID_TRANSACTION_TIMEOUT)
    known = transactional or TransactionMetadata(Producer(fresh, NO_EPOCH))
    if known.state in PREPARED:
        return known, Answer(Error.CONCURRENT_TRANSACTIONS)
    if expected is not None and not _may_be(known, expected):
        return known, _fenced_answer(request.version, fenced_from=4)
    if known.state is TransactionState.ONGOING and parameters.guards(mutants.ABORT_ON_INIT):
        # The producer of the open transaction is fenced; the sender retries
        return _fenced(known, parameters, fresh), Answer(Error.CONCURRENT_TRANSACTIONS)
    after, answer = _initialized(known, expected, parameters, fresh)
    return after, answer._replace(error=versions.told(answer.error, request.version, fenced_from=4))


def init_idempotent_producer_id(*, fresh: ProducerId) -> Answer:
    """InitProducerId without a transactional id: any broker returns a new producer id with epoch 0."""
    return Answer(producer=Producer(fresh, 0))


def _fenced_answer(version: int | None, *, fenced_from: int) -> Answer:
    """PRODUCER_FENCED, or for older request versions INVALID_PRODUCER_EPOCH."""
    return Answer(versions.told(Error.PRODUCER_FENCED, version, fenced_from=fenced_from))


def _may_be(known: TransactionMetadata, expected: Producer) -> bool:
    """Whether the expected producer id is valid: the current or the previous one.

    TransactionCoordinator.prepareInitProducerIdTransit, isValidProducerId.
    """
    if known.producer.epoch == NO_EPOCH or expected.id == known.producer.id:
        return True
    return expected.id == known.previous_id and expected.epoch >= LAST_EPOCH  # it missed the rotation of its id


def _initialized(
    known: TransactionMetadata, expected: Producer | None, parameters: Parameters, fresh: ProducerId
) -> CoordinatorResult:
    """The next epoch, or a new producer id when the epochs are exhausted.

    TransactionMetadata.prepareIncrementProducerEpoch, TransactionMetadata.prepareProducerIdRotation.
    """
    identifier, epoch = known.producer
    if epoch >= LAST_EPOCH:
        if expected is not None and expected.epoch != epoch:
            return known, Answer(Error.UNKNOWN_SERVER_ERROR)
        producer, last_epoch = Producer(fresh, 0), epoch if expected else NO_EPOCH
    elif expected is None or epoch == NO_EPOCH or expected.epoch == epoch:
        raised = epoch + 1 if epoch == NO_EPOCH or parameters.guards(mutants.EPOCH_BUMP_ON_INIT) else epoch
        producer, last_epoch = Producer(identifier, raised), epoch if expected else NO_EPOCH
    elif expected.epoch == known.last_epoch:  # a retry: the response was lost
        producer, last_epoch = known.producer, known.last_epoch
    else:
        return known, Answer(Error.PRODUCER_FENCED)
    after = TransactionMetadata(producer, last_epoch=last_epoch, previous_id=identifier)
    return after, Answer(producer=producer)


def add_partitions(
    transactional: TransactionMetadata | None, request: AddPartitionsToTxn, parameters: Parameters
) -> CoordinatorResult:
    """AddPartitionsToTxn: adds partitions to the open transaction, or opens one (handleAddPartitionsToTransaction).

    In transaction version 2 the partition leader sends this for the producer (KIP-890).
    """
    if transactional is None:
        return transactional, Answer(Error.INVALID_PRODUCER_ID_MAPPING)
    waits = transactional.state in PREPARED and parameters.guards(mutants.ADD_WAITS_FOR_MARKERS)
    # Before the id and epoch check: in version 2 the producer may already have its next id or epoch (KAFKA-18660)
    if waits and parameters.transactions_of_4 and parameters.guards(mutants.ADD_WAITS_BEFORE_IDENTITY):
        return transactional, Answer(Error.CONCURRENT_TRANSACTIONS)
    error = _mismatch(transactional, request.producer, checked=parameters.guards(mutants.ADD_EPOCH_CHECK))
    if error is not Error.NONE:
        return transactional, Answer(versions.told(error, request.version, fenced_from=2))
    if waits:
        return transactional, Answer(Error.CONCURRENT_TRANSACTIONS)
    partitions = transactional.partitions | request.partitions
    return transactional._replace(state=TransactionState.ONGOING, partitions=partitions, unmarked=frozenset()), Answer()


def verify_partition(transactional: TransactionMetadata | None, producer: Producer, partition: Partition) -> Error:
    """AddPartitionsToTxn with verifyOnly: whether the partition is in the producer's open transaction (KIP-890).

    TransactionCoordinator.handleVerifyPartitionsInTransaction.
    """
    if transactional is None:
        return Error.INVALID_PRODUCER_ID_MAPPING
    error = _mismatch(transactional, producer, checked=True)
    if error is not Error.NONE:
        return error
    if transactional.state in PREPARED:
        return Error.CONCURRENT_TRANSACTIONS
    return Error.NONE if partition in transactional.partitions else Error.TRANSACTION_ABORTABLE


def end_transaction(
    transactional: TransactionMetadata | None, request: EndTxn, parameters: Parameters, *, fresh: ProducerId
) -> CoordinatorResult:
    """EndTxn: the response follows the Prepare record and does not wait for markers.

    TransactionCoordinator.handleEndTransaction.
    """
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


def _answer_without_transaction(transactional: TransactionMetadata, request: EndTxn, parameters: Parameters) -> Answer:
    """EndTxn without an open transaction: a retry in the same direction succeeds, in Prepare* it has to wait.

    Prepare* gives CONCURRENT_TRANSACTIONS; the other direction, or no transaction before, INVALID_TXN_STATE.
    """
    if transactional.state in PREPARED:
        return Answer(Error.CONCURRENT_TRANSACTIONS)
    same = TransactionState.COMPLETE_COMMIT if request.commit else TransactionState.COMPLETE_ABORT
    opposite = transactional.state in COMPLETED and not parameters.guards(mutants.END_DIRECTION_CHECK)
    if transactional.state is same or opposite:
        return Answer(producer=transactional.producer)
    return Answer(Error.INVALID_TXN_STATE)


def _end_in_version_2(
    transactional: TransactionMetadata, request: EndTxn, parameters: Parameters, fresh: ProducerId
) -> CoordinatorResult:
    """EndTxn v5+: bumps the epoch, so a request with the previous epoch is a retry (KIP-890 part 2).

    In Prepare* every request gets CONCURRENT_TRANSACTIONS, before its producer id and epoch are checked.
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
    empty = not repeated  # no open transaction: an abort bumps the epoch, a commit is an error
    if state is TransactionState.ONGOING or (empty and not request.commit):
        after = _bumped(_prepared(transactional, commit=request.commit), parameters, fresh)
        return after, Answer(producer=Producer(after.next_id, 0) if _rotates(after) else after.producer)
    if empty:
        return transactional, Answer(Error.INVALID_TXN_STATE)
    return transactional, _answer_without_transaction(transactional, request, parameters)


def abort_timed_out(
    transactional: TransactionMetadata, parameters: Parameters, *, fresh: ProducerId
) -> TransactionMetadata | None:
    """Aborts an open transaction after its timeout; None without one.

    TransactionCoordinator.abortTimedOutTransactions.
    """
    return _fenced(transactional, parameters, fresh) if transactional.state is TransactionState.ONGOING else None


def _fenced(transactional: TransactionMetadata, parameters: Parameters, fresh: ProducerId) -> TransactionMetadata:
    """The transaction aborted with a bumped epoch, which fences its producer.

    TransactionMetadata.prepareFenceProducerEpoch. The version is the cluster's transaction.version, whatever the
    producer's.
    """
    version = parameters.transaction_version
    aborting = _prepared(transactional, commit=False)._replace(version=version)
    if not parameters.guards(mutants.EPOCH_BUMP_ON_FENCE):
        return aborting
    if version >= 2:  # one bump for fencing and ending together: KAFKA-19367
        return _bumped(aborting, parameters, fresh)
    return aborting._replace(producer=_raised(aborting.producer), last_epoch=NO_EPOCH)


def _prepared(transactional: TransactionMetadata, *, commit: bool) -> TransactionMetadata:
    """PrepareCommit or PrepareAbort in transaction version 0 or 1; `_bumped` makes it version 2.

    TransactionMetadata.prepareAbortOrCommit.
    """
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    return transactional._replace(state=state, unmarked=transactional.partitions, version=0)


def _bumped(transactional: TransactionMetadata, parameters: Parameters, fresh: ProducerId) -> TransactionMetadata:
    """The transaction with the next epoch, and a next producer id if the epochs are exhausted.

    KIP-890, KAFKA-20090.
    """
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
    """The producer with the next epoch."""
    return producer._replace(epoch=producer.epoch + 1)


def _rotates(transactional: TransactionMetadata) -> bool:
    """Whether the producer id changes when this transaction completes."""
    return transactional.next_id != NO_PRODUCER_ID


def _mismatch(transactional: TransactionMetadata, producer: Producer, *, checked: bool) -> Error:
    """The error if the request's producer id or epoch is not the current one of this transactional id."""
    if producer.id != transactional.producer.id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if producer.epoch != transactional.producer.epoch and checked:
        return Error.PRODUCER_FENCED
    return Error.NONE


def marker(transactional: TransactionMetadata, coordinator_epoch: int) -> Marker:
    """The marker for each partition of a decided transaction (TransactionMarkerChannelManager)."""
    commit = transactional.state is TransactionState.PREPARE_COMMIT
    return Marker(*transactional.producer, commit, coordinator_epoch, transactional.version)


def marked(transactional: TransactionMetadata, partition: Partition) -> TransactionMetadata:
    """The metadata after one partition acknowledged its marker."""
    return transactional._replace(unmarked=transactional.unmarked - {partition})


def complete(transactional: TransactionMetadata, parameters: Parameters) -> TransactionMetadata | None:
    """CompleteCommit or CompleteAbort once all markers are acknowledged; None before.

    TransactionMetadata.prepareComplete.
    """
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


def loaded(transactional: TransactionMetadata, parameters: Parameters) -> TransactionMetadata:
    """The metadata as the next coordinator loads it; all markers of a decided transaction are sent again (onElection).

    lastProducerEpoch is not in the log, and in transaction.version 0 neither are the fields of version 2
    (TransactionLogValue). A producer that retries after its coordinator moved is therefore fenced.
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
"""Errors after which a broker may retry, perhaps with another coordinator; NETWORK_EXCEPTION is its own, for a closed
connection."""


def verification_error(error: Error, support: Support) -> Error:
    """The coordinator's error for a partition, translated for the producer's protocol version.

    AddPartitionsToTxnManager.
    """
    if error is Error.PRODUCER_FENCED:
        return Error.INVALID_PRODUCER_EPOCH
    if error is Error.TRANSACTION_ABORTABLE and support < Support.ABORTABLE_ERROR:
        return Error.INVALID_TXN_STATE
    return error


def produce_error(error: Error, support: Support) -> Error:
    """The error in the Produce response when verification failed (ReplicaManager.handleProduceAppend).

    For TxnOffsetCommit it is `coordinators.write_error`.
    """
    waits = error is Error.CONCURRENT_TRANSACTIONS and support < Support.ADD_PARTITION
    if waits or error in UNANSWERED:
        return Error.NOT_ENOUGH_REPLICAS  # older producers retry it without a metadata refresh
    return verification_error(error, support)
