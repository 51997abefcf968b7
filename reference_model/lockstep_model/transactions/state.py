"""Bounds of the transaction machine, and the coordinator as a part of its state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lockstep_model.partition.producer_state import NO_EPOCH, Marker, ProducerId
from lockstep_model.transactions.coordinator import Partition, TransactionMetadata
from lockstep_model.transactions.partition import Source


class LateRequest(StrEnum):
    """Requests of which a duplicate may arrive after the response to another copy, or after the sender gave up.

    Kafka's clients and brokers do send duplicates: after a request timeout, over another connection.
    """

    PRODUCE = "produce"
    END = "end"
    MARKER = "marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionBounds:
    """Limits of the search."""

    transactions: tuple[int, int] = (2, 0)
    """Transactions of producers A and B; a producer without any does not start."""
    partitions: int = 1
    late: frozenset[LateRequest] = frozenset()
    timeouts: int = 0
    """How many transactions may time out."""
    coordinators: int = 0
    """How many times the coordinator may move."""
    lagging: bool = False
    """Followers may lag; otherwise every append is replicated at once."""
    elections: int = 0
    """How many leader elections each partition may have."""
    renews: bool = True
    """Producers bump their epoch after they gave up a batch (KIP-360)."""
    first_epoch: int = NO_EPOCH
    """Producer epoch before the first InitProducerId; near 32766 it makes producer ids rotate."""


class Coordinator(NamedTuple):
    """The transaction coordinator, with the markers that earlier coordinators left in flight."""

    transactional: TransactionMetadata | None = None
    epoch: int = 0
    """Coordinator epoch: leader epoch of its __transaction_state partition."""
    fresh: ProducerId = 1
    """The next unused producer id."""
    timeouts: int = 0
    """How many transaction timeouts are left."""
    successors: int = 0
    """How many times the coordinator may still move."""
    late: frozenset[tuple[Partition, Marker]] = frozenset()
    """Markers whose response is not awaited and that may still arrive."""
    decided: frozenset[tuple[Source, bool]] = frozenset()
    """The transactions that EndTxn requests decided, with commit or abort."""

    def after(self, transactional: TransactionMetadata | None) -> Coordinator:
        """The coordinator with this metadata in its log."""
        used = transactional is not None and self.fresh in (transactional.producer.id, transactional.next_id)
        return self._replace(transactional=transactional, fresh=self.fresh + used)
