"""Follower Fetch: the request, the leader's response and follower state, and the follower's append or truncation.

Leader: Partition.fetchRecords. Follower: AbstractFetcherThread, ReplicaFetcherThread.
"""

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
    """A follower's Fetch request, from its log end offset on."""

    leader: BrokerId
    """The broker that the request is sent to."""
    follower: BrokerId
    broker_epoch: int
    """The follower's broker epoch. Kafka sends it in KRaft mode only (KIP-903); here it also ties the response to the
    process that sent the request."""
    leader_epoch: int
    offset: Offset
    last_fetched_epoch: Epoch
    log_start: Offset = 0


class ReplicaFetchResponse(NamedTuple):
    """The leader's Fetch response to a follower."""

    request: ReplicaFetch
    error: Error = Error.NONE
    diverging: EpochEnd | None = None
    """divergingEpoch: the largest epoch of the leader not above lastFetchedEpoch, and its end offset (KIP-595)."""
    records: tuple[Record, ...] = ()
    high_watermark: Offset = 0
    log_start: Offset = 0
    log_end: Offset = 0
    """The leader's LEO. Not in Kafka's response: after OFFSET_OUT_OF_RANGE the follower gets it by ListOffsets."""


def request(follower: Replica) -> ReplicaFetch | None:
    """The follower's next Fetch to the leader in its metadata; None without one (ReplicaFetcherThread)."""
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
) -> tuple[Replica, ReplicaFetchResponse]:
    """The leader's response to a follower's Fetch, with at most `limit` records (Partition.fetchRecords).

    A response with divergingEpoch or OFFSET_OUT_OF_RANGE leaves the follower's state as it was.
    """
    error = refused(parameters, replica, fetch)
    leadership = replica.leadership
    if error is not Error.NONE or leadership is None:
        return replica, ReplicaFetchResponse(fetch, error)
    log = replica.log
    answered = ReplicaFetchResponse(fetch, high_watermark=replica.high_watermark, log_start=log.start, log_end=log.end)
    if fetch.last_fetched_epoch != NO_EPOCH and parameters.guards(mutants.DIVERGENCE_CHECK):
        last = log.end_offset_for(fetch.last_fetched_epoch)
        if last is None or fetch.offset < log.start:
            return replica, answered._replace(error=Error.OFFSET_OUT_OF_RANGE)
        if last.epoch < fetch.last_fetched_epoch or last.end < fetch.offset:  # KIP-595
            return replica, answered._replace(diverging=last)
    if not log.start <= fetch.offset <= log.end:
        return replica, answered._replace(error=Error.OFFSET_OUT_OF_RANGE)
    if _of_an_earlier_incarnation(parameters, leadership, fetch):
        return replica, ReplicaFetchResponse(fetch, Error.NOT_LEADER_OR_FOLLOWER)
    records = log.read(fetch.offset, log.end if limit is None else min(fetch.offset + limit, log.end))
    after = fetched(parameters, replica, leadership, fetch)
    # A response with records has the high watermark of before this Fetch; without records the Fetch waits in purgatory
    # and is read again (DelayedFetch).
    high_watermark = replica.high_watermark if records else after.high_watermark
    return after, answered._replace(records=records, high_watermark=high_watermark)


def refused(parameters: Parameters, replica: Replica, fetch: ReplicaFetch) -> Error:
    """Error for a follower's Fetch before the log is read: leader epoch, leadership, assignment.

    Partition.fetchRecords, Partition.followerReplicaOrThrow.
    """
    error = refusal(replica, fetch.leader_epoch if parameters.guards(mutants.FETCH_LEADER_EPOCH) else None)
    if error is not Error.NONE or replica.leadership is None:
        return error
    if replica.leadership.of(fetch.follower) is None:  # the follower is not in the leader's assignment
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE


def _of_an_earlier_incarnation(parameters: Parameters, leadership: Leadership, fetch: ReplicaFetch) -> bool:
    """KRaft: the Fetch has a broker epoch below the registered one (KIP-903; Replica.updateFetchStateOrThrow)."""
    if parameters.mode is Mode.ZK or not parameters.guards(mutants.FETCH_BROKER_EPOCH):
        return False
    return any(
        broker == fetch.follower and not registered.fenced and registered.epoch > fetch.broker_epoch
        for broker, registered in leadership.brokers
    )


def fetched(parameters: Parameters, replica: Replica, leadership: Leadership, fetch: ReplicaFetch) -> Replica:
    """The leader updates a follower's state, may expand the ISR and may raise the high watermark.

    The high watermark is recomputed only if the follower's LEO changed (Partition.updateFollowerFetchState).
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
    """The follower reached the leader's LEO of now or of its previous Fetch (Replica.updateFetchStateOrThrow).

    With the LEO of now alone, a follower of a leader that appends between any two Fetches would never be caught up.
    """
    return offset >= leader.log.end or (before.fetched and offset >= before.leader_end)


def take(parameters: Parameters, follower: Replica, fetched: ReplicaFetchResponse) -> Replica:
    """The follower handles a Fetch response: append, truncate or reset (AbstractFetcherThread.processFetchRequest)."""
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
    """Whether the follower still applies the response to this request (AbstractFetcherThread.processFetchRequest).

    A fetcher thread belongs to one leader and drops the partition when the leader changes. The fetch offset must be the
    follower's LEO: the log may have been truncated meanwhile. The leader epoch must be the follower's: a response of
    the same broker from an earlier epoch may carry a diverging epoch.
    """
    if follower.leader != fetch.leader or follower.broker_epoch != fetch.broker_epoch:
        return False
    if fetch.offset != follower.log.end and parameters.guards(mutants.RESPONSE_OFFSET):
        return False
    return fetch.leader_epoch == follower.leader_epoch or not parameters.guards(mutants.RESPONSE_LEADER_EPOCH)


def truncated(log: Log, diverging: EpochEnd) -> Log:
    """Truncate to the diverging epoch's end, or to the end of the follower's largest epoch below it.

    In the second case the next Fetch shows whether the logs still diverge (KIP-279;
    AbstractFetcherThread.getOffsetTruncationState).
    """
    own = log.end_offset_for(diverging.epoch)
    if own is None:  # the diverging epoch is above all epochs of the follower
        return log.truncate(diverging.end)
    if own.epoch != diverging.epoch:
        return log.truncate(own.end)
    return log.truncate(min(own.end, diverging.end))


def _reset(parameters: Parameters, follower: Replica, fetched: ReplicaFetchResponse) -> Replica:
    """OFFSET_OUT_OF_RANGE: truncate to the leader's LEO, or restart the log at the leader's log start offset.

    AbstractFetcherThread.fetchOffsetAndTruncate.
    """
    if fetched.log_end < follower.log.end:
        return _with_log(parameters, follower, follower.log.truncate(fetched.log_end), follower.high_watermark)
    if follower.log.end < fetched.log_start:
        return _with_log(parameters, follower, starting_at(fetched.log_start), fetched.log_start)
    return follower


def _with_log(parameters: Parameters, follower: Replica, log: Log, high_watermark: Offset) -> Replica:
    """The follower's high watermark is the leader's, limited to its own log; it may go down.

    UnifiedLog.updateHighWatermark.
    """
    if not parameters.guards(mutants.HIGH_WATERMARK_WITHIN_LOG):
        return follower._replace(log=log, high_watermark=high_watermark)
    return follower._replace(log=log, high_watermark=min(max(high_watermark, log.start), log.end))
