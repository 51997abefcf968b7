"""What one replica knows of each producer id, and what a leader answers to a producer's batches by it.

A leader checks every batch of a client (`check`) and every marker of a transaction coordinator (`check_marker`), then
appends. All replicas follow their logs with `appended` and `marked`; a follower never checks (ProducerAppendInfo). What
a replica keeps of all its producers, and for how long, is in `known_producers`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.transactions import mutants

ProducerId: TypeAlias = int
Offset: TypeAlias = int

BATCHES_RETAINED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN; also the most requests that an idempotent producer has in flight."""
NO_EPOCH = -1
NO_SEQUENCE = -1
LAST_SEQUENCE = 2**31 - 1


class Batch(NamedTuple):
    """What the rules look at in a batch of records with a producer id."""

    producer_id: ProducerId
    epoch: int
    first_sequence: int = NO_SEQUENCE
    """A group coordinator's commit of a transaction's offsets has none, and only its epoch is checked."""
    records: int = 1
    transactional: bool = False

    @property
    def last_sequence(self) -> int:
        """That of its last record; sequences start again at 0 after the last one (DefaultRecordBatch)."""
        return (self.first_sequence + self.records - 1) % (LAST_SEQUENCE + 1) if self.sequenced else NO_SEQUENCE

    @property
    def sequenced(self) -> bool:
        """Whether it comes from a client."""
        return self.first_sequence != NO_SEQUENCE


class Marker(NamedTuple):
    """A control batch that ends a transaction on one partition (EndTransactionMarker)."""

    producer_id: ProducerId
    epoch: int
    commit: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0
    """Of the transaction that it ends: in version 2 its epoch is higher than that of the records."""


class Retained(NamedTuple):
    """A batch in the log, as far as a duplicate is told by it (BatchMetadata)."""

    first_sequence: int
    last_sequence: int
    first_offset: Offset


class ProducerEntry(NamedTuple):
    """One producer id (ProducerStateEntry)."""

    epoch: int = NO_EPOCH
    batches: tuple[Retained, ...] = ()
    """The last of this epoch, oldest first."""
    transaction_first_offset: Offset | None = None
    """Where the transaction that is open on this partition began."""
    coordinator_epoch: int = -1
    """Of the last marker."""

    @property
    def last_sequence(self) -> int:
        """Of the last batch of this epoch."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


NOBODY = ProducerEntry()
"""A producer id that is unknown: new, or expired after a day without use."""


class Verification(NamedTuple):
    """A leader asks the coordinator whether a partition is in a transaction that it does not know (KIP-890 part 1).

    It stands until this producer's next transactional batch or marker is appended. A batch that waited for the answer
    shows the guard that it was given: one that no longer stands is of a transaction that has ended meanwhile.
    """

    guard: Offset
    """The log end offset when it began: as only an append ends it, no two of them are alike (VerificationGuard)."""
    epoch: int
    lowest_sequence: int
    """Whatever is higher waits until this one is in the log (VerificationStateEntry)."""
    adds: bool = False
    """The coordinator is not only asked, but has to add the partition (supportsEpochBump)."""


class Accepted(NamedTuple):
    """To be appended."""


class Duplicate(NamedTuple):
    """In the log already: answered with success and this offset, and not appended again."""

    first_offset: Offset


ACCEPTED = Accepted()


def check(
    entry: ProducerEntry,
    batch: Batch,
    parameters: Parameters,
    *,
    verification: Verification | None = None,
    guard: Offset | None = None,
) -> Accepted | Duplicate | Error:
    """What the leader does with a batch of a client, in the order of UnifiedLog.analyzeAndValidateProducerState.

    `verification` is what stands for its producer id, `guard` what was given to this batch by `start_verification`.
    Before 4.0 the verification is looked at first.
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


def check_marker(entry: ProducerEntry, marker: Marker, parameters: Parameters) -> Accepted | Error:
    """What the leader does with a coordinator's marker (ProducerAppendInfo.appendEndTxnMarker)."""
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
    """What stands while the coordinator is asked about this batch; None if it need not be asked.

    A client of version 2 has it told instead (`adds`): the partition joins the transaction, whatever is configured.
    UnifiedLog.maybeStartTransactionVerification, VerificationStateEntry.maybeUpdateLowestSequenceAndEpoch.
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
    """After this batch is in the log with its first record at this offset (ProducerStateEntry.addBatch)."""
    retained = Retained(batch.first_sequence, batch.last_sequence, offset)
    earlier = entry.batches if batch.epoch == entry.epoch else ()
    begun = offset if entry.transaction_first_offset is None else entry.transaction_first_offset
    return ProducerEntry(
        epoch=batch.epoch,
        batches=(*earlier, retained)[-BATCHES_RETAINED:],
        transaction_first_offset=begun if batch.transactional else entry.transaction_first_offset,
        coordinator_epoch=entry.coordinator_epoch,
    )


def marked(entry: ProducerEntry, marker: Marker) -> ProducerEntry:
    """After this marker is in the log: a marker of another epoch makes the earlier batches forgotten."""
    return ProducerEntry(
        epoch=marker.epoch,
        batches=entry.batches if marker.epoch == entry.epoch else (),
        transaction_first_offset=None,
        coordinator_epoch=marker.coordinator_epoch,
    )


def followed(entry: ProducerEntry, logged: Batch | Marker, offset: Offset) -> ProducerEntry:
    """After this is in the log, whatever it is and whoever put it there."""
    return marked(entry, logged) if isinstance(logged, Marker) else appended(entry, logged, offset)


def _duplicate_of(entry: ProducerEntry, batch: Batch) -> Retained | None:
    """The retained batch with exactly these sequences (ProducerStateEntry.findDuplicateBatch)."""
    if batch.epoch != entry.epoch or not batch.sequenced:
        return None
    sequences = (batch.first_sequence, batch.last_sequence)
    return next((retained for retained in entry.batches if retained[:2] == sequences), None)


def _in_sequence(entry: ProducerEntry, batch: Batch, parameters: Parameters, verification: Verification | None) -> bool:
    """ProducerAppendInfo.checkSequence."""
    if not parameters.guards(mutants.SEQUENCE_CHECK):
        return True
    if verification is not None and batch.first_sequence > verification.lowest_sequence:
        return False
    if entry.epoch == NO_EPOCH:  # Nothing is known, so anything may be next, but not in version 2, where epochs are new
        known_to_be_new = parameters.first_sequence and verification is not None and verification.adds
        return batch.first_sequence == 0 or not known_to_be_new
    if batch.epoch != entry.epoch:
        return batch.first_sequence == 0
    return batch.first_sequence == (entry.last_sequence + 1) % (LAST_SEQUENCE + 1)


def _begins(entry: ProducerEntry, batch: Batch, parameters: Parameters) -> bool:
    """Whether it begins a transaction as far as this partition knows (UnifiedLog.hasOngoingTransaction)."""
    if not batch.transactional:
        return False
    if entry.transaction_first_offset is None:
        return True
    newer = batch.epoch != entry.epoch and parameters.guards(mutants.OPEN_FOR_ITS_EPOCH)
    return parameters.transactions_of_4 and newer  # the old epoch's transaction may be over


def _verified(verification: Verification | None, guard: Offset | None, parameters: Parameters) -> bool:
    """A guard must stand, and be the one that the batch was given (VerificationGuard.verify)."""
    if not parameters.transaction_verification:
        return True
    if not parameters.guards(mutants.VERIFICATION_GUARD):
        return guard is not None
    return verification is not None and verification.guard == guard


def _current(entry: ProducerEntry, marker: Marker, parameters: Parameters) -> bool:
    """Whether its epoch can end what is open. In version 2 the end raises the epoch: an equal one was here before.

    It is then written once more if nothing is open, for it is sent again when its answer was lost (KAFKA-19999).
    """
    strict = parameters.strict_markers and parameters.guards(mutants.MARKER_EPOCH_RISES)
    if strict and marker.transaction_version >= 2 and marker.epoch == entry.epoch:
        return entry.transaction_first_offset is None
    return marker.epoch >= entry.epoch
