"""One replica on one broker: its log and high watermark, and while it leads what it knows of its followers (Partition).

What it does with a follower's fetch is in `replica_fetch`, what it asks of the controller in `in_sync`.
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
"""Where the log of a follower that has not fetched yet ends and starts."""

Registered: TypeAlias = tuple[tuple[BrokerId, BrokerRegistration], ...]
"""The brokers, as one of them knows them from its metadata."""


class Progress(NamedTuple):
    """What a leader knows of one follower (Replica)."""

    end: Offset = UNKNOWN
    """Where it last fetched: its log end offset."""
    start: Offset = UNKNOWN
    recent: bool = False
    """Whether it was caught up less than replica.lag.time.max.ms ago (lastCaughtUpTimeMs). That this time passes is an
    action of its own (`in_sync.lag_passes`)."""
    broker_epoch: int | None = None
    """Which incarnation of the broker it was (KIP-903)."""
    fetched: bool = False
    """Whether it last fetched less than that time ago (lastFetchTimeMs)."""
    leader_end: Offset = UNKNOWN
    """Where the leader's log ended then (lastFetchLeaderLogEndOffset): who comes so far was caught up at that time.
    Kept only while it fetched so recently, for later it makes no difference."""


class Leadership(NamedTuple):
    """What a replica knows while it leads."""

    isr: Brokers
    """As the controller committed it."""
    epoch_start: Offset
    """Where its epoch begins in its log."""
    followers: tuple[tuple[BrokerId, Progress], ...]
    """The other replicas, in the order of their ids."""
    brokers: Registered
    pending: AlterPartition | None = None
    """The ISR that it has asked for, until it knows what became of it."""
    ahead: bool = False
    """KRaft: its partition epoch came with the answer to an AlterPartition, and metadata has yet to tell it."""

    def of(self, follower: BrokerId) -> Progress | None:
        """What it knows of a follower, if that is one of the assignment."""
        return next((progress for number, progress in self.followers if number == follower), None)

    def with_progress(self, follower: BrokerId, progress: Progress) -> Leadership:
        """The same with one follower's progress."""
        return self._replace(
            followers=tuple((number, progress if number == follower else known) for number, known in self.followers)
        )


class Hosting(IntEnum):
    """Whether a broker has a replica of the partition, as far as it knows (HostedPartition, and the metadata cache)."""

    UNKNOWN = 0
    """It knows of no such partition."""
    ELSEWHERE = 1
    """It knows of the partition, and of no replica of its own."""
    HERE = 2


class Replica(NamedTuple):
    """One replica, as it is in the memory and on the disk of its broker."""

    broker: BrokerId
    broker_epoch: int = 0
    log: Log = Log()
    high_watermark: Offset = 0
    leader: BrokerId = NO_LEADER
    """Whom it takes for the leader."""
    leader_epoch: int = -1
    partition_epoch: int = -1
    leadership: Leadership | None = None
    """There while it takes itself for the leader, which it may do long after another one was elected."""
    hosting: Hosting = Hosting.UNKNOWN
    """A broker that has just started has a log that it does not know to be in use."""


def maximal_isr(parameters: Parameters, leadership: Leadership) -> Brokers:
    """Who may be in the ISR for all that the leader knows: the high watermark waits for them (KIP-497).

    A member that it wants to remove is in it until that is committed, and one that it wants to add already.
    """
    if leadership.pending is None or not parameters.guards(mutants.MAXIMAL_ISR):
        return leadership.isr
    return leadership.isr | leadership.pending.isr


def effective_min_isr(parameters: Parameters, leadership: Leadership) -> int:
    """min.insync.replicas, but from 3.7 on never more than there are replicas (Partition.effectiveMinIsr)."""
    if not parameters.min_isr_within_replicas:
        return parameters.min_isr
    return min(parameters.min_isr, len(leadership.followers) + 1)


def eligible(parameters: Parameters, leadership: Leadership, follower: BrokerId) -> bool:
    """Whether the leader takes a follower for one that may join the ISR (Partition.isReplicaIsrEligible).

    In ZooKeeper mode that is each whose broker is there. KRaft wants the broker unfenced and not in shutdown (KIP-841),
    and the incarnation that fetched to be the one that is registered (KIP-903).
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
    """Whether a follower is at the leader's end, or was within the lag time (ReplicaState.isCaughtUp)."""
    return progress.end == replica.log.end or progress.recent


def waits_for(parameters: Parameters, replica: Replica, leadership: Leadership) -> Brokers:
    """Whom the high watermark waits for: the maximal ISR, and each that is caught up and may join.

    Who is caught up could otherwise never reach the high watermark of a leader that always appends.
    """
    joining = (
        follower
        for follower, progress in leadership.followers
        if caught_up(replica, progress) and eligible(parameters, leadership, follower)
    )
    return maximal_isr(parameters, leadership).union(joining)


def advance_high_watermark(parameters: Parameters, replica: Replica) -> Replica:
    """A leader commits what all have that may be in the ISR, or may soon be (Partition.maybeIncrementLeaderHW)."""
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
    """What a broker without a replica answers, whatever it was asked (ReplicaManager.getPartitionOrError)."""
    if replica.hosting is Hosting.HERE:
        return Error.NONE
    elsewhere = replica.hosting is Hosting.ELSEWHERE
    return Error.NOT_LEADER_OR_FOLLOWER if elsewhere else Error.UNKNOWN_TOPIC_OR_PARTITION


def refusal(replica: Replica, leader_epoch: int | None, *, leader_only: bool = True) -> Error:
    """Why a broker does not look into its log for somebody who knows this leader epoch, or does not say what he knows.

    Of two that know different ones the one that is behind is told, or waited for (KIP-320; Partition.getLocalLog).
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
    """A leader appends; alone in the ISR it commits at once (Partition.appendRecordsToLeader)."""
    return advance_high_watermark(parameters, replica._replace(log=replica.log.append(records)))


def hear(replica: Replica) -> Replica:
    """A broker is told which partitions there are, and not yet which it has.

    In ZooKeeper mode UpdateMetadata comes before LeaderAndIsr to a broker that has just started
    (KafkaController.onBrokerStartup).
    """
    return replica._replace(hosting=max(replica.hosting, Hosting.ELSEWHERE))


def learn(parameters: Parameters, replica: Replica, partition: Registration, brokers: Registered) -> Replica:
    """A broker learns of the partition's and of the brokers' registrations.

    What it knows already of the partition changes nothing but which brokers are there.
    """
    if replica.broker not in partition.replicas:
        return _without_replica(parameters, replica)
    if not _news(parameters, replica, partition) or _unfollowable(parameters, replica, partition, brokers):
        known = replica.leadership and replica.leadership._replace(brokers=brokers)
        return replica._replace(leadership=known, hosting=Hosting.HERE)
    if partition.leader == replica.broker:
        return _lead(parameters, replica, partition, brokers)
    return replica._replace(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leadership=None,
        hosting=Hosting.HERE,
    )


def _without_replica(parameters: Parameters, replica: Replica) -> Replica:
    """A broker has no replica any more: it deletes it (StopReplica, ReplicaManager.applyDelta).

    In ZooKeeper mode nobody tells one that has started since: what it finds on its disk stays there.
    """
    if parameters.mode is Mode.ZK and replica.leader_epoch < 0:
        return hear(replica)
    return Replica(replica.broker, replica.broker_epoch, hosting=Hosting.ELSEWHERE)


def _news(parameters: Parameters, replica: Replica, partition: Registration) -> bool:
    """Whether a registration says anything new.

    In ZooKeeper mode it comes with a LeaderAndIsr request, which counts if its leader epoch is new
    (ReplicaManager.becomeLeaderOrFollower). A KRaft broker looks at what has another partition epoch than in the
    metadata before (TopicDelta.localChanges). A leader may know it from the answer to its AlterPartition, and takes it
    once more: what it asked for since that answer it then forgets (Partition.makeLeader).
    """
    if parameters.mode is Mode.ZK:
        return partition.leader_epoch > replica.leader_epoch
    ahead = replica.leadership is not None and replica.leadership.ahead
    return partition.partition_epoch >= replica.partition_epoch + (not ahead)


def _unfollowable(parameters: Parameters, replica: Replica, partition: Registration, brokers: Registered) -> bool:
    """Whether a broker stays as it is because nobody leads, or somebody who is not there.

    Only in ZooKeeper mode: it may go on leading, or following who led before (ReplicaManager.makeFollowers).
    """
    if parameters.mode is Mode.KRAFT or partition.leader == replica.broker:
        return False
    return not any(broker == partition.leader and not registered.fenced for broker, registered in brokers)


def _lead(parameters: Parameters, replica: Replica, partition: Registration, brokers: Registered) -> Replica:
    """Lead, or go on leading with another ISR (Partition.makeLeader). The high watermark stays where it was."""
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
            # The cache has the epoch before there is a record of it, for followers with records of later epochs than
            # any here to be told where theirs end.
            log=replica.log.assign(partition.leader_epoch, replica.log.end) if new_epoch else replica.log,
            leader=replica.broker,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            leadership=Leadership(isr=partition.isr, epoch_start=epoch_start, followers=followers, brokers=brokers),
            hosting=Hosting.HERE,
        ),
    )


def _known(leader: Replica, follower: BrokerId, *, new_epoch: bool, in_sync: bool) -> Progress:
    """What a leader knows of a follower when it begins an epoch (Replica.resetReplicaState).

    If it led already it goes on with what it knew. Members of the ISR get the lag time, the others must fetch first.
    """
    known = leader.leadership.of(follower) if leader.leadership is not None else None
    if known is None:
        return Progress(recent=new_epoch and in_sync)
    if not new_epoch:
        return known
    return known._replace(recent=in_sync, fetched=in_sync, leader_end=leader.log.end if in_sync else UNKNOWN)


def restart(replica: Replica, broker_epoch: int, *, end: Offset, high_watermark: Offset) -> Replica:
    """A broker comes back with what is on its disk, as another incarnation that has yet to learn who leads.

    A clean shutdown and a SIGKILL leave the whole log: the page cache survives the process. After a power loss it ends
    where it was last flushed. The high watermark is the last that was checkpointed, at a clean shutdown the last one,
    otherwise any of the last replica.high.watermark.checkpoint.interval.ms, or none if there was no time for one yet.
    Epochs that begin at the end are forgotten (LogLoader.load).
    """
    log = replica.log.restart(end)
    return Replica(replica.broker, broker_epoch, log=log, high_watermark=min(max(high_watermark, log.start), log.end))
