"""Producer state of one producer id on one replica, and the leader's validation of batches and markers by it.

The leader validates every client batch (`check`) and every marker of a transaction coordinator (`check_marker`) before
the append. Leader and followers update the state with `appended` and `marked`; a follower never validates
(ProducerAppendInfo). `known_producers` has the state of all producer ids, with its snapshots.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.transactions import mutants

ProducerId: TypeAlias = int
Offset: TypeAlias = int

BATCHES_RETAINED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN; also the most in-flight requests that an idempotent producer may have."""
NO_EPOCH = -1
NO_SEQUENCE = -1
LAST_SEQUENCE = 2**31 - 1


class Batch(NamedTuple):
    """The header fields of a record batch with a producer id that validation reads (RecordBatch)."""

    producer_id: ProducerId
    epoch: int
    first_sequence: int = NO_SEQUENCE
    """baseSequence; a group coordinator's transactional offset commit has none, so only its epoch is validated."""
    records: int = 1
    transactional: bool = False

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record; sequences wrap to 0 (DefaultRecordBatch.incrementSequence)."""
        return (self.first_sequence + self.records - 1) % (LAST_SEQUENCE + 1) if self.sequenced else NO_SEQUENCE

    @property
    def sequenced(self) -> bool:
        """Whether the batch has a sequence, which every batch of a client has."""
        return self.first_sequence != NO_SEQUENCE


class Marker(NamedTuple):
    """A control batch that ends a transaction on one partition (EndTransactionMarker)."""

    producer_id: ProducerId
    epoch: int
    commit: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0
    """Version of the transaction that it ends: in version 2 the marker's epoch is above the records' (KIP-890)."""


class BatchMetadata(NamedTuple):
    """Sequences and base offset of an appended batch, by which a duplicate is detected (BatchMetadata)."""

    first_sequence: int
    last_sequence: int
    first_offset: Offset


class ProducerEntry(NamedTuple):
    """The state of one producer id (ProducerStateEntry)."""

    epoch: int = NO_EPOCH
    batches: tuple[BatchMetadata, ...] = ()
    """The last five batches of this producer epoch, oldest first."""
    transaction_first_offset: Offset | None = None
    """currentTxnFirstOffset: the first offset of the ongoing transaction on this partition."""
    coordinator_epoch: int = -1
    """The coordinator epoch of the last marker."""

    @property
    def last_sequence(self) -> int:
        """The last sequence of this producer epoch (ProducerStateEntry.lastSeq)."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


NO_PRODUCER_ENTRY = ProducerEntry()
"""No state for a producer id: new, or expired (producer.id.expiration.ms, one day)."""


class Verification(NamedTuple):
    """The leader verifies with the coordinator that a partition is in the producer's transaction (KIP-890 part 1).

    It is kept until the producer's next transactional batch or marker is appended (VerificationStateEntry). A batch
    carries the guard that it got before verification; if that guard is gone, its transaction has ended meanwhile.
    """

    guard: Offset
    """VerificationGuard; here the log end offset at its start, which is unique because only an append removes it."""
    epoch: int
    lowest_sequence: int
    """A batch with a higher sequence is out of order until this one is appended (VerificationStateEntry)."""
    adds: bool = False
    """The coordinator adds the partition to the transaction, not only verifies it (supportsEpochBump; version 2)."""


class Acceptance(NamedTuple):
    """The batch or marker passed validation and is to be appended."""


class Duplicate(NamedTuple):
    """A duplicate batch: not appended, answered with success and the original base offset."""

    first_offset: Offset


ACCEPTED = Acceptance()


def check(
    entry: ProducerEntry,
    batch: Batch,
    parameters: Parameters,
    *,
    verification: Verification | None = None,
    guard: Offset | None = None,
) -> Acceptance | Duplicate | Error:
    """The leader validates a client batch, in the order of UnifiedLog.analyzeAndValidateProducerState.

    `verification` is the producer id's VerificationStateEntry, `guard` the one that this batch got from
    `start_verification`. Before 4.0 the verification guard is validated before the producer epoch.
    """
    duplicate = _duplicate_of(entry, batch) if parameters.guards(mutants.DUPLICATE_WINDOW) else None
    if duplicate is not None:
        return Duplicate(duplicate.first_offset)
    unverified = _begins(entry, batch, parameters) and not _verified(verification, guard, parameters)
    if unverified and not parameters.transactions_of_4:
        return Error.INVALID_TXN_STATE
    if batch.epoch < entry.epoch and parameters.guards(mutants.PRODUCER_EPOCH_CHECK):
        return Error.INVALID_PRODUCER_EPOCH  # ProducerAppendInfo.checkProducerEpoch
    if unverified:
        return Error.INVALID_TXN_STATE
    if batch.sequenced and not _in_sequence(entry, batch, parameters, verification):
        return Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    if entry.transaction_first_offset is not None and not batch.transactional:
        return Error.INVALID_TXN_STATE  # ProducerAppendInfo.appendDataBatch
    return ACCEPTED


def check_marker(entry: ProducerEntry, marker: Marker, parameters: Parameters) -> Acceptance | Error:
    """The leader validates a transaction marker: producer epoch, coordinator epoch.

    ProducerAppendInfo.appendEndTxnMarker.
    """
    if not _current(entry, marker, parameters) and parameters.guards(mutants.PRODUCER_EPOCH_CHECK):
        return Error.INVALID_PRODUCER_EPOCH
    if marker.coordinator_epoch < entry.coordinator_epoch and parameters.guards(mutants.COORDINATOR_EPOCH_CHECK):
        return Error.TRANSACTION_COORDINATOR_FENCED  # checkCoordinatorEpoch
    return ACCEPTED


def start_verification(
    entry: ProducerEntry,
    batch: Batch,
    log_end: Offset,
    standing: Verification | None,
    parameters: Parameters,
    *,
    adds: bool,
) -> Verification | Error | None:
    """Start or continue verification of a transactional batch; None if the batch needs none.

    In transaction version 2 (`adds`) the coordinator adds the partition, so transaction.partition.verification.enable
    does not matter. UnifiedLog.maybeStartTransactionVerification,
    VerificationStateEntry.maybeUpdateLowestSequenceAndEpoch.
    """
    if not _begins(entry, batch, parameters) or not (adds or parameters.transaction_verification):
        return None
    if batch.epoch < entry.epoch and adds:
        return Error.INVALID_PRODUCER_EPOCH
    if standing is None:
        return Verification(log_end, batch.epoch, batch.first_sequence, adds)
    if batch.epoch > standing.epoch:
        return standing._replace(epoch=batch.epoch, lowest_sequence=batch.first_sequence)
    if batch.epoch == standing.epoch and batch.first_sequence < standing.lowest_sequence:
        return standing._replace(lowest_sequence=batch.first_sequence)
    return standing


def appended(entry: ProducerEntry, batch: Batch, offset: Offset) -> ProducerEntry:
    """Producer state after a batch is appended at this base offset (ProducerStateEntry.addBatch)."""
    retained = BatchMetadata(batch.first_sequence, batch.last_sequence, offset)
    earlier = entry.batches if batch.epoch == entry.epoch else ()
    begun = offset if entry.transaction_first_offset is None else entry.transaction_first_offset
    return ProducerEntry(
        epoch=batch.epoch,
        batches=(*earlier, retained)[-BATCHES_RETAINED:],
        transaction_first_offset=begun if batch.transactional else entry.transaction_first_offset,
        coordinator_epoch=entry.coordinator_epoch,
    )


def marked(entry: ProducerEntry, marker: Marker) -> ProducerEntry:
    """Producer state after a marker is appended; a new producer epoch drops the retained batches.

    ProducerAppendInfo.appendEndTxnMarker, ProducerStateEntry.maybeUpdateProducerEpoch.
    """
    return ProducerEntry(
        epoch=marker.epoch,
        batches=entry.batches if marker.epoch == entry.epoch else (),
        transaction_first_offset=None,
        coordinator_epoch=marker.coordinator_epoch,
    )


def followed(entry: ProducerEntry, logged: Batch | Marker, offset: Offset) -> ProducerEntry:
    """Producer state after a batch or marker is appended, by leader or follower (ProducerAppendInfo.append)."""
    return marked(entry, logged) if isinstance(logged, Marker) else appended(entry, logged, offset)


def _duplicate_of(entry: ProducerEntry, batch: Batch) -> BatchMetadata | None:
    """The retained batch with the same producer epoch and sequences (ProducerStateEntry.findDuplicateBatch)."""
    if batch.epoch != entry.epoch or not batch.sequenced:
        return None
    sequences = (batch.first_sequence, batch.last_sequence)
    return next((retained for retained in entry.batches if retained[:2] == sequences), None)


def _in_sequence(entry: ProducerEntry, batch: Batch, parameters: Parameters, verification: Verification | None) -> bool:
    """The batch's first sequence follows the last one; a new epoch begins at 0 (ProducerAppendInfo.checkSequence)."""
    if not parameters.guards(mutants.SEQUENCE_CHECK):
        return True
    if verification is not None and batch.first_sequence > verification.lowest_sequence:
        return False
    if entry.epoch == NO_EPOCH:  # without state any sequence is accepted, except in version 2, where the epoch is new
        known_to_be_new = parameters.first_sequence and verification is not None and verification.adds
        return batch.first_sequence == 0 or not known_to_be_new
    if batch.epoch != entry.epoch:
        return batch.first_sequence == 0
    return batch.first_sequence == (entry.last_sequence + 1) % (LAST_SEQUENCE + 1)


def _begins(entry: ProducerEntry, batch: Batch, parameters: Parameters) -> bool:
    """Whether the batch begins a transaction on this partition: none is ongoing (UnifiedLog.hasOngoingTransaction)."""
    if not batch.transactional:
        return False
    if entry.transaction_first_offset is None:
        return True
    newer = batch.epoch != entry.epoch and parameters.guards(mutants.OPEN_FOR_ITS_EPOCH)
    return parameters.transactions_of_4 and newer  # the transaction of the old epoch may have ended


def _verified(verification: Verification | None, guard: Offset | None, parameters: Parameters) -> bool:
    """The producer id has a verification guard, and the batch carries the same (VerificationGuard.verify)."""
    if not parameters.transaction_verification:
        return True
    if not parameters.guards(mutants.VERIFICATION_GUARD):
        return guard is not None
    return verification is not None and verification.guard == guard


def _current(entry: ProducerEntry, marker: Marker, parameters: Parameters) -> bool:
    """The marker's producer epoch is not too old; with `strict_markers` one of version 2 has a higher one (KIP-1228).

    An equal epoch is then a marker sent again after its response was lost: it is appended once more if no transaction
    is ongoing (KAFKA-19999).
    """
    strict = parameters.strict_markers and parameters.guards(mutants.MARKER_EPOCH_RISES)
    if strict and marker.transaction_version >= 2 and marker.epoch == entry.epoch:
        return entry.transaction_first_offset is None
    return marker.epoch >= entry.epoch
