"""Consumers fetch: from which replica, how far, and what they are told instead."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.last_stable_offset import Aborted, aborted_between
from lockstep_model.partition.log import EpochEnd, Log, Offset, Record
from lockstep_model.partition.producer_state import ProducerId
from lockstep_model.partition.replica import Replica, refusal
from lockstep_model.registration import Brokers


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
    last_fetched_epoch: int | None = None
    """Of the record before that offset, from version 12 on: who says it is told if it is not in this log (KIP-595)."""


class Fetched(NamedTuple):
    """The answer: each replica tells its own offsets."""

    error: Error
    records: tuple[Record, ...] = ()
    high_watermark: Offset = -1
    last_stable_offset: Offset = -1
    log_start: Offset = -1
    aborted: tuple[Aborted, ...] = ()
    """The transactions whose records a read_committed consumer leaves out."""
    diverging: EpochEnd | None = None
    """Where what the reader has and this log part."""
    aborted_at_most: tuple[Aborted, ...] = ()
    """More of them may be listed, up to here: the index of a segment may not tell where the fetch ends."""

    def lists(self, told: Iterable[tuple[ProducerId, Offset]]) -> bool:
        """Whether a list of aborted transactions, by producer ids and first offsets, is one that it may come with.

        LocalLog.addAbortedTransactions looks up to the next entry of the offset index, which has one only every
        index.interval.bytes, or else up to the next segment or the end of the log.
        """
        listed = frozenset(told)
        return _named(self.aborted) <= listed <= _named(self.aborted_at_most)


def fetch(parameters: Parameters, replica: Replica, request: Fetch, limit: int | None = None) -> Fetched:
    """A replica answers a consumer, with so many records at most (Partition.fetchRecords).

    Between what may be read and the end of the log there is nothing to read, and no error.
    """
    error = refusal(replica, request.leader_epoch, leader_only=request.of_leader_only)
    if error is not Error.NONE:
        return Fetched(error)
    log = replica.log
    diverging = _diverging(log, request)
    if isinstance(diverging, Error) or (diverging is None and not log.start <= request.offset <= log.end):
        return Fetched(Error.OFFSET_OUT_OF_RANGE)
    end = log.start if diverging else readable_end(parameters, replica, request.isolation)
    records = log.read(request.offset, end if limit is None else min(end, request.offset + limit))
    told = request.isolation is Isolation.READ_COMMITTED and bool(records)
    return Fetched(
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
    """Whether what the reader has is not in this log, or its epoch is above all that are (Partition.readRecords)."""
    if request.last_fetched_epoch is None:
        return None
    last = log.end_offset_for(request.last_fetched_epoch)
    if last is None or request.offset < log.start:
        return Error.OFFSET_OUT_OF_RANGE
    return last if last.epoch < request.last_fetched_epoch or last.end < request.offset else None


def _aborted(log: Log, start: Offset, end: Offset) -> tuple[Aborted, ...]:
    return aborted_between(log.known.transactions, start, end)


def _named(aborted: Iterable[Aborted]) -> frozenset[tuple[ProducerId, Offset]]:
    return frozenset((one.producer_id, one.first_offset) for one in aborted)


def readable_end(parameters: Parameters, replica: Replica, isolation: Isolation) -> Offset:
    """Where somebody's reading ends."""
    if isolation is Isolation.READ_COMMITTED:
        return replica.log.last_stable_offset(replica.high_watermark, parameters)
    return replica.high_watermark if isolation is Isolation.READ_UNCOMMITTED else replica.log.end


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
