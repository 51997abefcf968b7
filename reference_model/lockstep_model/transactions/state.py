"""How much can happen in the machine of transactions, and the coordinator as one of its parts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lockstep_model.partition.producer_state import NO_EPOCH, Marker, ProducerId
from lockstep_model.transactions.coordinator import Partition, Transactional
from lockstep_model.transactions.partition import Source


class Late(StrEnum):
    """Which requests can be late: a copy arrives after the answer to another one, or after it was given up.

    Kafka's own clients and brokers do send copies: after a time-out, over another connection.
    """

    PRODUCE = "produce"
    END = "end"
    MARKER = "marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionBounds:
    """How much can happen."""

    transactions: tuple[int, int] = (2, 0)
    """Of A and of B; a client without any does not start."""
    partitions: int = 1
    late: frozenset[Late] = frozenset()
    timeouts: int = 0
    coordinators: int = 0
    """How many times another coordinator may take over."""
    lagging: bool = False
    """Followers fetch when they like; otherwise everything is replicated at once."""
    elections: int = 0
    """How many times another replica of each partition may lead."""
    renews: bool = True
    """Whether clients take another epoch after they gave up a batch."""
    first_epoch: int = NO_EPOCH
    """Before the first client: epochs near the last one make producer ids change."""


class Coordinator(NamedTuple):
    """The broker that has the transactional id's log, and what its predecessors left under way."""

    transactional: Transactional | None = None
    epoch: int = 0
    fresh: ProducerId = 1
    """The next producer id that nobody has."""
    timeouts: int = 0
    successors: int = 0
    late: frozenset[tuple[Partition, Marker]] = frozenset()
    """Markers that are no longer waited for, but that may yet arrive."""
    decided: frozenset[tuple[Source, bool]] = frozenset()
    """Whose requests ended a transaction, and how: what really happened."""

    def after(self, transactional: Transactional | None) -> Coordinator:
        """With this in its log."""
        used = transactional is not None and self.fresh in (transactional.producer.id, transactional.next_id)
        return self._replace(transactional=transactional, fresh=self.fresh + used)
