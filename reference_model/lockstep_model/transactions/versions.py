"""The transaction protocol of a client, by the versions of its requests (KIP-890).

The coordinator goes by the request version; only where it ends a transaction by itself does it use the cluster's
transaction.version. Kafka's clients send the newest versions only if the cluster's transaction.version allows them.
"""

from __future__ import annotations

from enum import IntEnum

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters

RAISING_END_TXN = 5
"""First EndTxn version that bumps the producer epoch (TransactionVersion.transactionVersionForEndTxn)."""


class Support(IntEnum):
    """What a client's request supports (AddPartitionsToTxnManager.TransactionSupportedOperation)."""

    DEFAULT_ERROR = 0
    ABORTABLE_ERROR = 1
    """The client gets TRANSACTION_ABORTABLE where older ones get INVALID_TXN_STATE (genericErrorSupported)."""
    ADD_PARTITION = 2
    """The client sends no AddPartitionsToTxn: the partition leader has the coordinator add the partition."""


def of_produce(version: int) -> Support:
    """Support of a client by its Produce version: v11 abortable errors, v12 implicit partitions."""
    return _support(version - 10)


def of_offset_commit(version: int) -> Support:
    """Support of a client by its TxnOffsetCommit version: v4 abortable errors, v5 implicit partitions."""
    return _support(version - 3)


def _support(newer: int) -> Support:
    return Support(min(max(newer, 0), Support.ADD_PARTITION))


def usual(parameters: Parameters) -> Support:
    """Support of a client as new as its cluster."""
    if parameters.transaction_version >= 2:
        return Support.ADD_PARTITION
    return Support.ABORTABLE_ERROR if parameters.abortable_errors else Support.DEFAULT_ERROR


def raises_epoch(end_txn_version: int | None, parameters: Parameters) -> bool:
    """Whether this EndTxn bumps the producer epoch; without a version, the client is as new as its cluster."""
    return parameters.transaction_version >= 2 if end_txn_version is None else end_txn_version >= RAISING_END_TXN


def told(error: Error, version: int | None, *, fenced_from: int) -> Error:
    """The error for this request version: older clients get INVALID_PRODUCER_EPOCH for PRODUCER_FENCED (KafkaApis)."""
    old = version is not None and version < fenced_from
    return Error.INVALID_PRODUCER_EPOCH if old and error is Error.PRODUCER_FENCED else error
