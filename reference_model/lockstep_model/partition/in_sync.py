"""ISR maintenance by the leader: expand, shrink, and the AlterPartition request and response (KIP-497, Partition)."""

from __future__ import annotations

from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.replica import (
    UNKNOWN,
    Leadership,
    Progress,
    Replica,
    advance_high_watermark,
    caught_up,
    eligible,
)
from lockstep_model.registration import AlterPartition, BrokerId, Brokers, Registration
from lockstep_model.replication import mutants

ROLLED_BACK = frozenset({Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED})
"""Errors after which the leader returns to the committed ISR: the AlterPartition was not and will not be applied
(Partition.handleAlterPartitionError)."""
AWAITING_METADATA = frozenset(
    {
        Error.FENCED_LEADER_EPOCH,
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_REQUEST,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.NEW_LEADER_ELECTED,
    }
)
"""Errors after which the proposed ISR stays pending until a metadata update: the leader's state is older than the
controller's. After any other error the leader retries the AlterPartition (Partition.handleAlterPartitionError)."""


def expand(parameters: Parameters, replica: Replica, follower: BrokerId) -> Replica:
    """IsrExpand: after a follower's Fetch the leader proposes an ISR with that follower (Partition.maybeExpandIsr).

    The follower's LEO must have reached the high watermark and the start offset of this leader epoch: a new leader's
    high watermark may lag, so records between the two may be committed (KAFKA-7128; Partition.isFollowerInSync).
    """
    leadership = replica.leadership
    progress = leadership.of(follower) if leadership else None
    if leadership is None or progress is None or leadership.pending is not None or follower in leadership.isr:
        return replica
    if not eligible(parameters, leadership, follower):
        return replica
    if progress.end < replica.high_watermark and parameters.guards(mutants.EXPAND_REACHES_HIGH_WATERMARK):
        return replica
    if progress.end < leadership.epoch_start and parameters.guards(mutants.EXPAND_REACHES_EPOCH_START):
        return replica
    return _ask(parameters, replica, leadership, leadership.isr | {follower})


def lag_passes(replica: Replica, follower: BrokerId, *, silent: bool = True) -> Replica:
    """replica.lag.time.max.ms passes since lastCaughtUpTimeMs of a follower; if `silent`, since lastFetchTimeMs too.

    A follower whose LEO equals the leader's stays caught up until the leader appends (ReplicaState.isCaughtUp).
    """
    leadership = replica.leadership
    progress = leadership.of(follower) if leadership else None
    if leadership is None or progress is None:
        return replica
    passed = progress._replace(recent=False)
    if silent:
        passed = passed._replace(fetched=False, leader_end=UNKNOWN)
    return replica._replace(leadership=leadership.with_progress(follower, passed))


def shrink(parameters: Parameters, replica: Replica) -> Replica:
    """IsrShrink: the leader proposes an ISR without the followers that lag (Partition.maybeShrinkIsr)."""
    leadership = replica.leadership
    if leadership is None or leadership.pending is not None:
        return replica
    lagging = frozenset(
        follower
        for follower in leadership.isr - {replica.broker}
        if not caught_up(replica, leadership.of(follower) or Progress())
    )
    return _ask(parameters, replica, leadership, leadership.isr - lagging) if lagging else replica


def _ask(parameters: Parameters, replica: Replica, leadership: Leadership, isr: Brokers) -> Replica:
    """The leader sends AlterPartition for this ISR (KIP-497), in KRaft with the broker epoch of each member (KIP-903).

    Partition.submitAlterPartition, Partition.addBrokerEpochToIsr.
    """
    known = {follower: progress.broker_epoch for follower, progress in leadership.followers}
    known[replica.broker] = replica.broker_epoch
    epochs = ((member, known.get(member)) for member in sorted(isr))
    asked = AlterPartition(
        broker=replica.broker,
        broker_epoch=replica.broker_epoch,
        leader_epoch=replica.leader_epoch,
        partition_epoch=replica.partition_epoch,
        isr=isr,
        epochs=tuple((member, epoch) for member, epoch in epochs if epoch is not None)
        if parameters.mode is Mode.KRAFT
        else (),
    )
    return replica._replace(leadership=leadership._replace(pending=asked))


def settle(parameters: Parameters, replica: Replica, asked: AlterPartition, answer: Registration | Error) -> Replica:
    """The leader handles an AlterPartition response (Partition.submitAlterPartition, handleAlterPartitionUpdate).

    The response is ignored if another AlterPartition is pending by now. A response with another leader epoch or a lower
    partition epoch leaves the request pending.
    """
    leadership = replica.leadership
    if leadership is None or leadership.pending != asked:
        return replica
    if isinstance(answer, Error):
        rolled_back = leadership._replace(pending=None)
        return replica._replace(leadership=rolled_back) if answer in ROLLED_BACK else replica
    if answer.leader_epoch != replica.leader_epoch or answer.partition_epoch < replica.partition_epoch:
        return replica
    ahead = parameters.mode is Mode.KRAFT and (leadership.ahead or answer.partition_epoch > replica.partition_epoch)
    return advance_high_watermark(
        parameters,
        replica._replace(
            partition_epoch=answer.partition_epoch,
            leadership=leadership._replace(isr=answer.isr, pending=None, ahead=ahead),
        ),
    )


def sent_again(error: Error) -> bool:
    """Whether the leader retries its AlterPartition after this error (Partition.handleAlterPartitionError)."""
    return error is not Error.NONE and error not in ROLLED_BACK | AWAITING_METADATA


def asked_for(replica: Replica) -> AlterPartition | None:
    """The leader's pending AlterPartition, if any (PendingPartitionChange)."""
    return replica.leadership.pending if replica.leadership is not None else None


def rolled_back(replica: Replica) -> Replica:
    """The leader without its pending AlterPartition: the committed ISR counts again."""
    return replica._replace(leadership=replica.leadership and replica.leadership._replace(pending=None))
