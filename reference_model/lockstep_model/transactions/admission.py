"""A transactional batch at the partition leader: verification with the transaction coordinator (KIP-890).

The append follows in `produce.produce`, for offsets committed in a transaction in `groups.offsets.commit`, with the
verification guard that is returned here. The transaction may end between verification and append.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.log import Log, Offset
from lockstep_model.partition.producer_state import Batch, Verification, start_verification
from lockstep_model.transactions import coordinator
from lockstep_model.transactions.coordinator import AddPartitionsToTxn, Partition, Producer, TransactionMetadata
from lockstep_model.transactions.versions import Support


class VerificationResult(NamedTuple):
    """Result of the verification: the state afterwards, and whether the batch may be appended."""

    transactional: TransactionMetadata | None
    """Transaction metadata at the coordinator."""
    verification: Verification | None
    """The leader's verification state entry for this producer (VerificationStateEntry)."""
    error: Error = Error.NONE
    """Why the batch is refused, as the broker sees it. The Produce response carries `coordinator.produce_error`, the
    TxnOffsetCommit response `coordinators.write_error`."""
    guard: Offset | None = None
    """The verification guard that the append must present (VerificationGuard); None if no verification is needed."""


def admit(
    parameters: Parameters,
    log: Log,
    batch: Batch,
    standing: Verification | None,
    transactional: TransactionMetadata | None,
    partition: Partition,
    support: Support,
    *,
    unreachable: Error = Error.NONE,
) -> VerificationResult:
    """Verifies a transactional batch, or adds its partition to the transaction.

    KIP-890; ReplicaManager.handleProduceAppend.

    maybeStartTransactionVerificationForPartition, then AddPartitionsToTxnManager. `unreachable`: the error when the
    coordinator gave no response (NETWORK_EXCEPTION), or the error of a broker that is not the coordinator.
    """
    adds = support is Support.ADD_PARTITION
    entry = log.known.entry(batch.producer_id)
    verification = start_verification(entry, batch, log.end, standing, parameters, adds=adds)
    if isinstance(verification, Error):
        return VerificationResult(transactional, standing, verification)
    if verification is None:
        return VerificationResult(transactional, standing)
    after, error = transactional, unreachable
    producer = Producer(batch.producer_id, batch.epoch)
    if error is Error.NONE and adds:
        request = AddPartitionsToTxn(producer, frozenset({partition}))
        after, answer = coordinator.add_partitions(transactional, request, parameters)
        error = answer.error
    elif error is Error.NONE:
        error = coordinator.verify_partition(transactional, producer, partition)
    if error is not Error.NONE:
        return VerificationResult(after, verification, coordinator.verification_error(error, support))
    return VerificationResult(after, verification, guard=verification.guard)
