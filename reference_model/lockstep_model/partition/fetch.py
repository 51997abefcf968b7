"""Consumer Fetch: which replica serves it, the offset up to which it may read, and the errors (Partition.fetchRecords).

A follower's Fetch is in `replica_fetch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.last_stable_offset import AbortedTxn, aborted_between
from lockstep_model.partition.log import EpochEnd, Log, Offset, Record
from lockstep_model.partition.producer_state import ProducerId
from lockstep_model.partition.replica import Replica, refusal
from lockstep_model.registration import Brokers


class Isolation(Enum):
    """The upper bound of a read (FetchIsolation)."""

    READ_UNCOMMITTED = auto()
    """Up to the high watermark."""
    READ_COMMITTED = auto()
    """Up to the last stable offset."""
    LOG_END = auto()
    """Up to the log end offset: followers, and replica id -3 (FetchRequest.FUTURE_LOCAL_REPLICA_ID)."""


class Fetch(NamedTuple):
    """A consumer's Fetch request for one partition."""

    offset: Offset
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    leader_epoch: int | None = None
    """currentLeaderEpoch: the leader epoch in the consumer's metadata; None if the request carries none (KIP-320)."""
    of_leader_only: bool = False
    """Below version 11 only the leader serves a consumer's Fetch; from 11 on a follower does too (KIP-392)."""
    last_fetched_epoch: int | None = None
    """lastFetchedEpoch (version 12): leader epoch of the record before `offset`, by which the broker detects divergence
    (KIP-595)."""


class ConsumerFetchResponse(NamedTuple):
    """The Fetch response: each replica, leader or follower, gives its own high watermark, LSO and log start offset."""

    error: Error
    records: tuple[Record, ...] = ()
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start: Offset = -1
    aborted: tuple[AbortedTxn, ...] = ()
    """abortedTransactions that the response must list: a read_committed consumer skips their records."""
    diverging: EpochEnd | None = None
    """divergingEpoch: the largest epoch of this log not above lastFetchedEpoch, and its end offset (KIP-595)."""
    aborted_at_most: tuple[AbortedTxn, ...] = ()
    """abortedTransactions that the response may list: the offset index may not give the end offset of the read."""

    def lists(self, told: Iterable[tuple[ProducerId, Offset]]) -> bool:
        """Whether abortedTransactions (producer id, first offset) of a real response agree with this response.

        The broker collects them up to the next entry of the offset index (one per index.interval.bytes), else up to the
        next segment or the log end offset, so the list may be longer than needed (LocalLog.addAbortedTransactions).
        """
        listed = frozenset(told)
        return _named(self.aborted) <= listed <= _named(self.aborted_at_most)


def fetch(parameters: Parameters, replica: Replica, request: Fetch, limit: int | None = None) -> ConsumerFetchResponse:
    """A replica's response to a consumer's Fetch, with at most `limit` records (Partition.fetchRecords).

    An offset between the readable end (high watermark or LSO) and the log end offset gives no records and no error.
    """
    error = refusal(replica, request.leader_epoch, leader_only=request.of_leader_only)
    if error is not Error.NONE:
        return ConsumerFetchResponse(error)
    log = replica.log
    diverging = _diverging(log, request)
    if isinstance(diverging, Error) or (diverging is None and not log.start <= request.offset <= log.end):
        return ConsumerFetchResponse(Error.OFFSET_OUT_OF_RANGE)
    end = log.start if diverging else readable_end(parameters, replica, request.isolation)
    records = log.read(request.offset, end if limit is None else min(end, request.offset + limit))
    told = request.isolation is Isolation.READ_COMMITTED and bool(records)
    return ConsumerFetchResponse(
        Error.NONE,
        records,
        high_watermark=replica.high_watermark,
        last_stable_offset=readable_end(parameters, replica, Isolation.READ_COMMITTED),
        log_start=log.start,
        diverging=diverging,
        aborted=_aborted(log, request.offset, request.offset + len(records)) if told else (),
        aborted_at_most=_aborted(log, request.offset, log.end) if told else (),
    )


def _diverging(log: Log, request: Fetch) -> EpochEnd | Error | None:
    """The diverging epoch; OFFSET_OUT_OF_RANGE if lastFetchedEpoch has no end offset here (Partition.readRecords)."""
    if request.last_fetched_epoch is None:
        return None
    last = log.end_offset_for(request.last_fetched_epoch)
    if last is None or request.offset < log.start:
        return Error.OFFSET_OUT_OF_RANGE
    return last if last.epoch < request.last_fetched_epoch or last.end < request.offset else None


def _aborted(log: Log, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
    return aborted_between(log.known.transactions, start, end)


def _named(aborted: Iterable[AbortedTxn]) -> frozenset[tuple[ProducerId, Offset]]:
    return frozenset((one.producer_id, one.first_offset) for one in aborted)


def readable_end(parameters: Parameters, replica: Replica, isolation: Isolation) -> Offset:
    """The offset below which a read of this isolation ends: LSO, high watermark or log end (UnifiedLog.read)."""
    if isolation is Isolation.READ_COMMITTED:
        return replica.log.last_stable_offset(replica.high_watermark, parameters)
    return replica.high_watermark if isolation is Isolation.READ_UNCOMMITTED else replica.log.end


def nearer_replicas(replica: Replica, offset: Offset) -> Brokers:
    """Candidates for preferredReadReplica: followers in the ISR that have the fetch offset (KIP-392).

    ReplicaManager.findPreferredReadReplica; the ReplicaSelector then chooses among them by rack.
    """
    leadership = replica.leadership
    if leadership is None:
        return frozenset()
    return frozenset(
        follower
        for follower, progress in leadership.followers
        if follower in leadership.isr and progress.start <= offset <= progress.end
    )
