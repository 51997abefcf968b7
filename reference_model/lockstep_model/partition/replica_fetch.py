"""Followers fetch from their leader: the request, what the leader makes of it, and what the follower of the answer."""

from __future__ import annotations

from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.in_sync import expand
from lockstep_model.partition.log import NO_EPOCH, Epoch, EpochEnd, Log, Offset, Record, starting_at
from lockstep_model.partition.replica import Leadership, Progress, Replica, advance_high_watermark, refusal
from lockstep_model.registration import NO_LEADER, BrokerId
from lockstep_model.replication import mutants


class ReplicaFetch(NamedTuple):
    """A follower asks for what comes after the end of its log."""

    leader: BrokerId
    """Whom it asks."""
    follower: BrokerId
    broker_epoch: int
    """Which incarnation of the follower: sent in KRaft mode only (KIP-903), but no answer reaches another one."""
    leader_epoch: int
    offset: Offset
    last_fetched_epoch: Epoch
    log_start: Offset = 0


class ReplicaFetched(NamedTuple):
    """The answer."""

    request: ReplicaFetch
    error: Error = Error.NONE
    diverging: EpochEnd | None = None
    """The follower's log is another one from here on."""
    records: tuple[Record, ...] = ()
    high_watermark: Offset = 0
    log_start: Offset = 0
    log_end: Offset = 0
    """Not in the answer: a follower whose offset is out of range asks for it, with ListOffsets."""


def request(follower: Replica) -> ReplicaFetch | None:
    """What a follower sends to the leader that it knows."""
    if follower.leader in (NO_LEADER, follower.broker):
        return None
    return ReplicaFetch(
        leader=follower.leader,
        follower=follower.broker,
        broker_epoch=follower.broker_epoch,
        leader_epoch=follower.leader_epoch,
        offset=follower.log.end,
        last_fetched_epoch=follower.log.latest_epoch,
        log_start=follower.log.start,
    )


def answer(
    parameters: Parameters, replica: Replica, fetch: ReplicaFetch, limit: int | None = None
) -> tuple[Replica, ReplicaFetched]:
    """A broker answers a follower, with so many records at most, and learns how far it is (Partition.fetchRecords).

    A follower that diverges or is out of range does not count as having fetched.
    """
    error = refused(parameters, replica, fetch)
    leadership = replica.leadership
    if error is not Error.NONE or leadership is None:
        return replica, ReplicaFetched(fetch, error)
    log = replica.log
    answered = ReplicaFetched(fetch, high_watermark=replica.high_watermark, log_start=log.start, log_end=log.end)
    if fetch.last_fetched_epoch != NO_EPOCH and parameters.guards(mutants.DIVERGENCE_CHECK):
        last = log.end_offset_for(fetch.last_fetched_epoch)
        if last is None or fetch.offset < log.start:
            return replica, answered._replace(error=Error.OFFSET_OUT_OF_RANGE)
        if last.epoch < fetch.last_fetched_epoch or last.end < fetch.offset:  # KIP-595
            return replica, answered._replace(diverging=last)
    if not log.start <= fetch.offset <= log.end:
        return replica, answered._replace(error=Error.OFFSET_OUT_OF_RANGE)
    if _of_an_earlier_incarnation(parameters, leadership, fetch):
        return replica, ReplicaFetched(fetch, Error.NOT_LEADER_OR_FOLLOWER)
    records = log.read(fetch.offset, log.end if limit is None else min(fetch.offset + limit, log.end))
    after = fetched(parameters, replica, leadership, fetch)
    # What is read at once comes with the high watermark of before; without records the leader waits, and reads again.
    high_watermark = replica.high_watermark if records else after.high_watermark
    return after, answered._replace(records=records, high_watermark=high_watermark)


def refused(parameters: Parameters, replica: Replica, fetch: ReplicaFetch) -> Error:
    """Why a broker does not look into its log for a follower (Partition.fetchRecords)."""
    error = refusal(replica, fetch.leader_epoch if parameters.guards(mutants.FETCH_LEADER_EPOCH) else None)
    if error is not Error.NONE or replica.leadership is None:
        return error
    if replica.leadership.of(fetch.follower) is None:  # not in the assignment, as far as this broker knows
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE


def _of_an_earlier_incarnation(parameters: Parameters, leadership: Leadership, fetch: ReplicaFetch) -> bool:
    """Whether another one is active since this was sent (KIP-903; Replica.updateFetchStateOrThrow)."""
    if parameters.mode is Mode.ZK or not parameters.guards(mutants.FETCH_BROKER_EPOCH):
        return False
    return any(
        broker == fetch.follower and not registered.fenced and registered.epoch > fetch.broker_epoch
        for broker, registered in leadership.brokers
    )


def fetched(parameters: Parameters, replica: Replica, leadership: Leadership, fetch: ReplicaFetch) -> Replica:
    """The leader knows how far a follower is: it may join the ISR, and the high watermark may rise.

    The high watermark is looked at only if the follower's end is another one (Partition.updateFollowerFetchState).
    """
    before = leadership.of(fetch.follower) or Progress()
    progress = Progress(
        end=fetch.offset,
        start=fetch.log_start,
        recent=before.recent or _catches_up(replica, before, fetch.offset),
        broker_epoch=fetch.broker_epoch if parameters.mode is Mode.KRAFT else None,
        fetched=True,
        leader_end=replica.log.end,
    )
    after = expand(
        parameters,
        replica._replace(leadership=leadership.with_progress(fetch.follower, progress)),
        fetch.follower,
    )
    return advance_high_watermark(parameters, after) if progress.end != before.end else after


def _catches_up(leader: Replica, before: Progress, offset: Offset) -> bool:
    """A follower that fetches from here is caught up now, or was when it fetched before (updateFetchStateOrThrow).

    Else one would never be, whose leader always appends between its fetches.
    """
    return offset >= leader.log.end or (before.fetched and offset >= before.leader_end)


def take(parameters: Parameters, follower: Replica, fetched: ReplicaFetched) -> Replica:
    """A follower takes an answer, if that is still the one that it waits for (AbstractFetcherThread)."""
    if not awaited(parameters, follower, fetched.request):
        return follower
    if fetched.error is Error.OFFSET_OUT_OF_RANGE:
        return _reset(parameters, follower, fetched)
    if fetched.error is not Error.NONE:
        return follower
    if fetched.diverging is not None:
        return _with_log(parameters, follower, truncated(follower.log, fetched.diverging), follower.high_watermark)
    log = follower.log.append(fetched.records).delete_before(fetched.log_start)
    return _with_log(parameters, follower, log, fetched.high_watermark)


def awaited(parameters: Parameters, follower: Replica, fetch: ReplicaFetch) -> bool:
    """Whether an answer to this request is still of use.

    A fetcher is one thread for each leader, and lets go of the partition when another broker leads it. It compares the
    offset, for the log may have been truncated meanwhile, and the leader epoch, for an answer of the same broker in an
    earlier one may tell the follower to truncate (AbstractFetcherThread.processFetchRequest).
    """
    if follower.leader != fetch.leader or follower.broker_epoch != fetch.broker_epoch:
        return False
    if fetch.offset != follower.log.end and parameters.guards(mutants.RESPONSE_OFFSET):
        return False
    return fetch.leader_epoch == follower.leader_epoch or not parameters.guards(mutants.RESPONSE_LEADER_EPOCH)


def truncated(log: Log, diverging: EpochEnd) -> Log:
    """Cut a log back to where the leader's epoch ends, or to the last epoch before it that both may have.

    In the second case the next fetch tells whether they do (AbstractFetcherThread.getOffsetTruncationState).
    """
    own = log.end_offset_for(diverging.epoch)
    if own is None:  # the leader's epoch is higher than any here
        return log.truncate(diverging.end)
    if own.epoch != diverging.epoch:
        return log.truncate(own.end)
    return log.truncate(min(own.end, diverging.end))


def _reset(parameters: Parameters, follower: Replica, fetched: ReplicaFetched) -> Replica:
    """Out of range: cut what the leader does not have, or begin anew where its log does (fetchOffsetAndTruncate)."""
    if fetched.log_end < follower.log.end:
        return _with_log(parameters, follower, follower.log.truncate(fetched.log_end), follower.high_watermark)
    if follower.log.end < fetched.log_start:
        return _with_log(parameters, follower, starting_at(fetched.log_start), fetched.log_start)
    return follower


def _with_log(parameters: Parameters, follower: Replica, log: Log, high_watermark: Offset) -> Replica:
    """A follower's high watermark is its leader's within its own log, and may go down (updateHighWatermark)."""
    if not parameters.guards(mutants.HIGH_WATERMARK_WITHIN_LOG):
        return follower._replace(log=log, high_watermark=high_watermark)
    return follower._replace(log=log, high_watermark=min(max(high_watermark, log.start), log.end))
