"""One replica on one broker: log, high watermark, and as leader the ISR and the followers' fetch state (Partition).

Replication fetches are in `replica_fetch`, AlterPartition is in `in_sync`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.log import Log, Offset, Record
from lockstep_model.registration import (
    NO_LEADER,
    AlterPartition,
    BrokerId,
    BrokerRegistration,
    Brokers,
    Registration,
)
from lockstep_model.replication import mutants

UNKNOWN: Offset = -1
"""LEO and log start offset of a follower that has not fetched from this leader (UnknownOffsetMetadata)."""

BrokerRegistrations: TypeAlias = tuple[tuple[BrokerId, BrokerRegistration], ...]
"""Broker registrations in one broker's metadata cache."""


class Progress(NamedTuple):
    """The leader's state of one follower, by its last Fetch (Replica, ReplicaState)."""

    end: Offset = UNKNOWN
    """The follower's LEO: the offset of its last Fetch."""
    start: Offset = UNKNOWN
    recent: bool = False
    """Whether the follower was caught up less than replica.lag.time.max.ms ago (lastCaughtUpTimeMs). That this time
    passes is a separate action (`in_sync.lag_passes`)."""
    broker_epoch: int | None = None
    """The broker epoch in the follower's last Fetch (KIP-903)."""
    fetched: bool = False
    """Whether the last Fetch was less than replica.lag.time.max.ms ago (lastFetchTimeMs)."""
    leader_end: Offset = UNKNOWN
    """The leader's LEO at the last Fetch (lastFetchLeaderLogEndOffset): a follower that reaches it was caught up at
    that time. Reset when that Fetch is older than the lag time, because it then has no effect."""


class Leadership(NamedTuple):
    """The leader's state: committed ISR, pending AlterPartition, followers (PartitionState)."""

    isr: Brokers
    """The ISR that the controller committed."""
    epoch_start: Offset
    """The start offset of its leader epoch (leaderEpochStartOffsetOpt)."""
    followers: tuple[tuple[BrokerId, Progress], ...]
    """The other replicas of the assignment, by broker id."""
    brokers: BrokerRegistrations
    pending: AlterPartition | None = None
    """The AlterPartition in flight, or one whose result a metadata update has yet to show (PendingPartitionChange)."""
    ahead: bool = False
    """KRaft: its partition epoch comes from an AlterPartition response and is not yet in a metadata update."""

    def of(self, follower: BrokerId) -> Progress | None:
        """The state of a follower; None if the broker is not in the assignment."""
        return next((progress for number, progress in self.followers if number == follower), None)

    def with_progress(self, follower: BrokerId, progress: Progress) -> Leadership:
        """This leadership with new state for one follower."""
        return self._replace(
            followers=tuple((number, progress if number == follower else known) for number, known in self.followers)
        )


class HostedPartition(IntEnum):
    """Whether a broker hosts a replica of the partition (ReplicaManager: HostedPartition; and the metadata cache)."""

    UNKNOWN = 0
    """The partition is not in the broker's metadata cache."""
    ELSEWHERE = 1
    """The metadata cache has the partition, but the broker hosts no replica of it (HostedPartition.None)."""
    HERE = 2
    """The broker hosts a replica (HostedPartition.Online)."""


class Replica(NamedTuple):
    """One replica of the partition on one broker: memory and disk (Partition, UnifiedLog)."""

    broker: BrokerId
    broker_epoch: int = 0
    log: Log = Log()
    high_watermark: Offset = 0
    leader: BrokerId = NO_LEADER
    """The leader in the last metadata that this broker applied."""
    leader_epoch: int = -1
    partition_epoch: int = -1
    leadership: Leadership | None = None
    """Set while this broker considers itself leader; a zombie leader keeps it after another broker was elected."""
    hosting: HostedPartition = HostedPartition.UNKNOWN
    """UNKNOWN also on a broker that has just started: it has the log, but no metadata of the partition."""


def maximal_isr(parameters: Parameters, leadership: Leadership) -> Brokers:
    """Maximal ISR: the committed ISR and the pending one, whose LEOs bound the high watermark (KIP-497).

    A follower that is to be removed counts until the controller commits it, one that is to be added counts at once
    (PendingPartitionChange, PartitionState.maximalIsr).
    """
    if leadership.pending is None or not parameters.guards(mutants.MAXIMAL_ISR):
        return leadership.isr
    return leadership.isr | leadership.pending.isr


def effective_min_isr(parameters: Parameters, leadership: Leadership) -> int:
    """min.insync.replicas, from 3.7 on at most the number of replicas (Partition.effectiveMinIsr)."""
    if not parameters.min_isr_within_replicas:
        return parameters.min_isr
    return min(parameters.min_isr, len(leadership.followers) + 1)


def eligible(parameters: Parameters, leadership: Leadership, follower: BrokerId) -> bool:
    """Whether the leader may propose a follower for the ISR (Partition.isReplicaIsrEligible).

    ZooKeeper mode: its broker is alive. KRaft: its broker is neither fenced nor in controlled shutdown (KIP-841), and
    the broker epoch of its last Fetch is the registered one (KIP-903).
    """
    registered = next((known for broker, known in leadership.brokers if broker == follower), None)
    progress = leadership.of(follower)
    if registered is None or progress is None or registered.fenced:
        return False
    if parameters.mode is Mode.ZK:
        return True
    if parameters.guards(mutants.EXPAND_BROKER_EPOCH) and progress.broker_epoch != registered.epoch:
        return False
    return not registered.shutting_down


def caught_up(replica: Replica, progress: Progress) -> bool:
    """The follower's LEO is the leader's, or was within replica.lag.time.max.ms (ReplicaState.isCaughtUp)."""
    return progress.end == replica.log.end or progress.recent


def waits_for(parameters: Parameters, replica: Replica, leadership: Leadership) -> Brokers:
    """Replicas whose LEOs bound the high watermark: the maximal ISR, and every caught-up, ISR-eligible follower.

    Otherwise such a follower might never reach the high watermark of a leader that appends continuously, and never
    join the ISR (Partition.maybeIncrementLeaderHW, shouldWaitForReplicaToJoinIsr).
    """
    joining = (
        follower
        for follower, progress in leadership.followers
        if caught_up(replica, progress) and eligible(parameters, leadership, follower)
    )
    return maximal_isr(parameters, leadership).union(joining)


def advance_high_watermark(parameters: Parameters, replica: Replica) -> Replica:
    """The leader raises its high watermark to the lowest LEO of `waits_for` (Partition.maybeIncrementLeaderHW).

    From 3.7 on it stays while the ISR is smaller than min.insync.replicas (KIP-966).
    """
    leadership = replica.leadership
    if leadership is None:
        return replica
    gated = parameters.hw_gate and parameters.guards(mutants.HIGH_WATERMARK_GATE)
    if gated and len(leadership.isr) < effective_min_isr(parameters, leadership):  # KIP-966
        return replica
    waited_for = waits_for(parameters, replica, leadership)
    ends = [progress.end for follower, progress in leadership.followers if follower in waited_for]
    reached = min([replica.log.end, *ends])
    rises = reached > replica.high_watermark or not parameters.guards(mutants.HIGH_WATERMARK_RISES)
    return replica._replace(high_watermark=reached) if rises else replica


def not_hosted(replica: Replica) -> Error:
    """Error of a broker that hosts no replica, for any request (ReplicaManager.getPartitionOrError)."""
    if replica.hosting is HostedPartition.HERE:
        return Error.NONE
    elsewhere = replica.hosting is HostedPartition.ELSEWHERE
    return Error.NOT_LEADER_OR_FOLLOWER if elsewhere else Error.UNKNOWN_TOPIC_OR_PARTITION


def refusal(replica: Replica, leader_epoch: int | None, *, leader_only: bool = True) -> Error:
    """Error for this currentLeaderEpoch, None if the request has none (KIP-320; Partition.getLocalLog).

    FENCED_LEADER_EPOCH: the client's epoch is older. UNKNOWN_LEADER_EPOCH: the broker's epoch is older.
    """
    error = not_hosted(replica)
    if error is not Error.NONE:
        return error
    if leader_epoch is not None and leader_epoch < replica.leader_epoch:
        return Error.FENCED_LEADER_EPOCH
    if leader_epoch is not None and leader_epoch > replica.leader_epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NOT_LEADER_OR_FOLLOWER if leader_only and replica.leadership is None else Error.NONE


def append(parameters: Parameters, replica: Replica, records: Iterable[Record]) -> Replica:
    """The leader appends, and raises its high watermark if it is alone in the ISR (Partition.appendRecordsToLeader)."""
    return advance_high_watermark(parameters, replica._replace(log=replica.log.append(records)))


def hear(replica: Replica) -> Replica:
    """A broker applies UpdateMetadata: the partition is in its metadata cache, without LeaderAndIsr for its replica.

    ZooKeeper mode: a starting broker gets UpdateMetadata before LeaderAndIsr (KafkaController.onBrokerStartup).
    """
    return replica._replace(hosting=max(replica.hosting, HostedPartition.ELSEWHERE))


def learn(parameters: Parameters, replica: Replica, partition: Registration, brokers: BrokerRegistrations) -> Replica:
    """A broker applies partition and broker registrations: KRaft metadata, or LeaderAndIsr in ZooKeeper mode.

    A registration that is not newer changes only the broker registrations
    (ReplicaManager.applyDelta, ReplicaManager.becomeLeaderOrFollower).
    """
    if replica.broker not in partition.replicas:
        return _without_replica(parameters, replica)
    if not _news(parameters, replica, partition) or _unfollowable(parameters, replica, partition, brokers):
        known = replica.leadership and replica.leadership._replace(brokers=brokers)
        return replica._replace(leadership=known, hosting=HostedPartition.HERE)
    if partition.leader == replica.broker:
        return _lead(parameters, replica, partition, brokers)
    return replica._replace(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leadership=None,
        hosting=HostedPartition.HERE,
    )


def _without_replica(parameters: Parameters, replica: Replica) -> Replica:
    """The assignment no longer has this broker: it deletes its replica (StopReplica, ReplicaManager.applyDelta).

    ZooKeeper mode: a broker that restarted since then gets no StopReplica, and its log stays on disk.
    """
    if parameters.mode is Mode.ZK and replica.leader_epoch < 0:
        return hear(replica)
    return Replica(replica.broker, replica.broker_epoch, hosting=HostedPartition.ELSEWHERE)


def _news(parameters: Parameters, replica: Replica, partition: Registration) -> bool:
    """Whether the broker applies this registration.

    ZooKeeper mode: LeaderAndIsr is applied if its leader epoch is higher (ReplicaManager.becomeLeaderOrFollower).
    KRaft: it is applied if its partition epoch changed in the metadata (TopicDelta.localChanges). A leader that has
    this partition epoch from an AlterPartition response applies it again, and so drops an AlterPartition that it sent
    since (Partition.makeLeader).
    """
    if parameters.mode is Mode.ZK:
        return partition.leader_epoch > replica.leader_epoch
    ahead = replica.leadership is not None and replica.leadership.ahead
    return partition.partition_epoch >= replica.partition_epoch + (not ahead)


def _unfollowable(
    parameters: Parameters, replica: Replica, partition: Registration, brokers: BrokerRegistrations
) -> bool:
    """ZooKeeper mode: LeaderAndIsr without a leader, or with one that is not alive, leaves the replica as it is.

    The replica may so go on as leader, or as follower of the previous leader (ReplicaManager.makeFollowers).
    """
    if parameters.mode is Mode.KRAFT or partition.leader == replica.broker:
        return False
    return not any(broker == partition.leader and not registered.fenced for broker, registered in brokers)


def _lead(parameters: Parameters, replica: Replica, partition: Registration, brokers: BrokerRegistrations) -> Replica:
    """Become leader, or stay leader with a new ISR; the high watermark is not reset (Partition.makeLeader)."""
    before = replica.leadership
    new_epoch = partition.leader_epoch > replica.leader_epoch
    followers = tuple(
        (follower, _known(replica, follower, new_epoch=new_epoch, in_sync=follower in partition.isr))
        for follower in sorted(partition.replicas)
        if follower != replica.broker
    )
    epoch_start = replica.log.end if new_epoch or before is None else before.epoch_start
    return advance_high_watermark(
        parameters,
        replica._replace(
            # The new epoch is assigned before its first record: a follower with records of an epoch that this log
            # lacks then gets a diverging epoch, not an undefined one.
            log=replica.log.assign(partition.leader_epoch, replica.log.end) if new_epoch else replica.log,
            leader=replica.broker,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leadership=Leadership(isr=partition.isr, epoch_start=epoch_start, followers=followers, brokers=brokers),
            hosting=HostedPartition.HERE,
        ),
    )


def _known(leader: Replica, follower: BrokerId, *, new_epoch: bool, in_sync: bool) -> Progress:
    """The leader's state of a follower at the start of an epoch (Replica.resetReplicaState).

    A leader that stays leader keeps the follower's LEO. An ISR member counts as caught up for replica.lag.time.max.ms,
    any other follower only after a Fetch.
    """
    known = leader.leadership.of(follower) if leader.leadership is not None else None
    if known is None:
        return Progress(recent=new_epoch and in_sync)
    if not new_epoch:
        return known
    return known._replace(recent=in_sync, fetched=in_sync, leader_end=leader.log.end if in_sync else UNKNOWN)


def restart(replica: Replica, broker_epoch: int, *, end: Offset, high_watermark: Offset) -> Replica:
    """A broker restarts with the log and the checkpointed high watermark on its disk, and without metadata.

    A clean shutdown and SIGKILL keep the whole log: the page cache survives the process. After a power loss the log has
    only its flushed prefix. A clean shutdown checkpoints the high watermark; otherwise it is the last checkpoint, at
    most replica.high.watermark.checkpoint.interval.ms old, or the log start offset if there is none. Epochs that start
    at the log end offset are dropped (LogLoader.load).
    """
    log = replica.log.restart(end)
    return Replica(replica.broker, broker_epoch, log=log, high_watermark=min(max(high_watermark, log.start), log.end))
