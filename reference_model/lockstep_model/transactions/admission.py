"""A transactional batch comes to the leader of a partition: before it is appended the coordinator has a say (KIP-890).

What follows is `produce.produce`, with the guard that is given here; for offsets that are committed in a transaction it
is `groups.offsets.commit`. In between, the transaction may end.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.log import Log, Offset
from lockstep_model.partition.producer_state import Batch, Verification, start_verification
from lockstep_model.transactions import coordinator
from lockstep_model.transactions.coordinator import AddPartitionsToTxn, Partition, Producer, Transactional
from lockstep_model.transactions.versions import Support


class Admitted(NamedTuple):
    """What stands afterwards, and whether the batch may be appended."""

    transactional: Transactional | None
    verification: Verification | None
    """What stands for this producer at the leader."""
    error: Error = Error.NONE
    """Why it may not, as the broker takes it: `coordinator.produce_error` is what a producer is told, and
    `coordinators.write_error` what somebody is told who commits offsets."""
    guard: Offset | None = None
    """What the batch has to show when it is appended; None if it needs no verification."""


def admit(
    parameters: Parameters,
    log: Log,
    batch: Batch,
    standing: Verification | None,
    transactional: Transactional | None,
    partition: Partition,
    support: Support,
    *,
    unreachable: Error = Error.NONE,
) -> Admitted:
    """ReplicaManager.handleProduceAppend, maybeStartTransactionVerificationForPartition, AddPartitionsToTxnManager.

    `unreachable` is why the coordinator gave no answer: NETWORK_EXCEPTION, or what a broker says that is not it.
    """
    adds = support is Support.ADD_PARTITION
    entry = log.known.entry(batch.producer_id)
    verification = start_verification(entry, batch, log.end, standing, parameters, adds=adds)
    if isinstance(verification, Error):
        return Admitted(transactional, standing, verification)
    if verification is None:
        return Admitted(transactional, standing)
    after, error = transactional, unreachable
    producer = Producer(batch.producer_id, batch.epoch)
    if error is Error.NONE and adds:
        request = AddPartitionsToTxn(producer, frozenset({partition}))
        after, answer = coordinator.add_partitions(transactional, request, parameters)
        error = answer.error
    elif error is Error.NONE:
        error = coordinator.verify_partition(transactional, producer, partition)
    if error is not Error.NONE:
        return Admitted(after, verification, coordinator.verification_error(error, support))
    return Admitted(after, verification, guard=verification.guard)
