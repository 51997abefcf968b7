"""Consumers fetch: from which replica, how far, and what they are told instead."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from reference_model.errors import Error
from reference_model.log import Log, Offset, Record
from reference_model.producer_state import Marker
from reference_model.registration import Brokers
from reference_model.replica import Replica, refusal


class Isolation(Enum):
    """How far somebody reads (FetchIsolation)."""

    READ_UNCOMMITTED = auto()
    """Up to the high watermark."""
    READ_COMMITTED = auto()
    """Up to the last stable offset."""
    LOG_END = auto()
    """Everything: replicas, and a debugging consumer with the replica id -3."""


class Fetch(NamedTuple):
    """A consumer asks for records from an offset on."""

    offset: Offset
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    leader_epoch: int | None = None
    """The newest that it knows, if it says so."""
    of_leader_only: bool = False
    """Requests below version 11, which only a leader answers (KIP-392)."""


class Aborted(NamedTuple):
    """A transaction whose records a read_committed consumer leaves out, from this offset on to its marker."""

    producer_id: int
    first_offset: Offset


class Fetched(NamedTuple):
    """The answer: each replica tells its own offsets."""

    error: Error
    records: tuple[Record, ...] = ()
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start: Offset = -1
    aborted: tuple[Aborted, ...] = ()


def fetch(replica: Replica, request: Fetch, limit: int | None = None) -> Fetched:
    """A replica answers a consumer, with so many records at most (Partition.fetchRecords).

    Between what may be read and the end of the log there is nothing to read, and no error.
    """
    error = refusal(replica, request.leader_epoch, leader_only=request.of_leader_only)
    if error is not Error.NONE:
        return Fetched(error)
    log, stable = replica.log, last_stable_offset(replica)
    if not log.start <= request.offset <= log.end:  # UnifiedLog.read
        return Fetched(Error.OFFSET_OUT_OF_RANGE)
    end = readable_end(replica, request.isolation)
    records = log.read(request.offset, end if limit is None else min(end, request.offset + limit))
    committed_only = request.isolation is Isolation.READ_COMMITTED
    aborted = tuple(aborted_within(log, request.offset, request.offset + len(records))) if committed_only else ()
    return Fetched(Error.NONE, records, replica.high_watermark, stable, log.start, aborted)


def readable_end(replica: Replica, isolation: Isolation) -> Offset:
    """Where somebody's reading ends."""
    if isolation is Isolation.READ_COMMITTED:
        return last_stable_offset(replica)
    return replica.high_watermark if isolation is Isolation.READ_UNCOMMITTED else replica.log.end


def last_stable_offset(replica: Replica) -> Offset:
    """Where the first transaction begins that is open, or whose end is not committed yet; else the high watermark.

    ProducerStateManager.firstUnstableOffset, with what waits in unreplicatedTxns.
    """
    unstable = (first for first, end, _ in _transactions(replica.log) if end is None or end >= replica.high_watermark)
    return min(replica.high_watermark, min(unstable, default=replica.high_watermark))


def aborted_within(log: Log, start: Offset, end: Offset) -> list[Aborted]:
    """The aborted transactions with records in this range (TransactionIndex.collectAbortedTxns)."""
    return [
        Aborted(marker.producer_id, first)
        for first, marked, marker in _transactions(log)
        if marker is not None and marked is not None and not marker.commit and first < end and marked >= start
    ]


def _transactions(log: Log) -> list[tuple[Offset, Offset | None, Marker | None]]:
    """Where each transaction in the log begins, and where its marker is if it has ended."""
    open_since: dict[int, Offset] = {}
    ended: list[tuple[Offset, Offset | None, Marker | None]] = []
    for offset, batch in log.batches():
        if isinstance(batch, Marker):
            if batch.producer_id in open_since:
                ended.append((open_since.pop(batch.producer_id), offset, batch))
        elif batch.transactional:
            open_since.setdefault(batch.producer_id, offset)
    return [*ended, *((first, None, None) for first in open_since.values())]


def nearer_replicas(replica: Replica, offset: Offset) -> Brokers:
    """Whom a leader may send a consumer to that could read from nearer by: in sync, and with that offset (KIP-392).

    ReplicaManager.findPreferredReadReplica; which of them it is, the rack decides.
    """
    leadership = replica.leadership
    if leadership is None:
        return frozenset()
    return frozenset(
        follower
        for follower, progress in leadership.followers
        if follower in leadership.isr and progress.start <= offset <= progress.end
    )
