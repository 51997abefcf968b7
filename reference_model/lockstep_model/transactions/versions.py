"""What the versions of its requests say of a client: how far it follows the protocol of transactions (KIP-890).

The coordinator goes by them, and by the cluster's transaction.version only where it ends a transaction by itself. A
client of Kafka's own sends the newest versions only where the cluster's level allows it.
"""

from __future__ import annotations

from enum import IntEnum

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters

RAISING_END_TXN = 5
"""From which version on EndTxn raises the epoch (TransactionVersion.transactionVersionForEndTxn)."""


class Support(IntEnum):
    """What a client that writes knows of (AddPartitionsToTxnManager.TransactionSupportedOperation)."""

    DEFAULT_ERROR = 0
    ABORTABLE_ERROR = 1
    """It is told TRANSACTION_ABORTABLE, where older ones are told INVALID_TXN_STATE (genericErrorSupported)."""
    ADD_PARTITION = 2
    """It does not add partitions itself: the leader has the coordinator add them."""


def of_produce(version: int) -> Support:
    """Of a Produce request."""
    return _support(version - 10)


def of_offset_commit(version: int) -> Support:
    """Of a TxnOffsetCommit request."""
    return _support(version - 3)


def _support(newer: int) -> Support:
    return Support(min(max(newer, 0), Support.ADD_PARTITION))


def usual(parameters: Parameters) -> Support:
    """Of a client that is as new as its cluster."""
    if parameters.transaction_version >= 2:
        return Support.ADD_PARTITION
    return Support.ABORTABLE_ERROR if parameters.abortable_errors else Support.DEFAULT_ERROR


def raises_epoch(end_txn_version: int | None, parameters: Parameters) -> bool:
    """Whether this EndTxn raises the epoch; without a version it is one of a client that is as new as its cluster."""
    return parameters.transaction_version >= 2 if end_txn_version is None else end_txn_version >= RAISING_END_TXN


def told(error: Error, version: int | None, *, fenced_from: int) -> Error:
    """The error as a client of this version is told it: older ones do not know PRODUCER_FENCED (KafkaApis)."""
    old = version is not None and version < fenced_from
    return Error.INVALID_PRODUCER_EPOCH if old and error is Error.PRODUCER_FENCED else error
