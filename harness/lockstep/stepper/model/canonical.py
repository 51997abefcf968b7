"""One form for states that cannot be told apart by anything that may come: a belief has each of them once.

Whatever is left out here is never looked at again, by any rule or request of the reference model.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockstep_model.controller import Controller
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.replica import Leadership, Registered, Replica, learn
from lockstep_model.partition.replica_fetch import ReplicaFetched
from lockstep_model.registration import AlterPartition, BrokerRegistration
from lockstep_model.replication.state import Altering, Broker, Fetching, Metadata, knowing, timeless
from lockstep_model.replication.state import Answered as Altered

UNTOLD = -1


def canonical(parameters: Parameters, replica: Replica) -> Replica:
    """A replica without what makes no difference.

    In ZooKeeper mode only leaders look at the partition epoch, which they are told when they begin to lead; whether
    LeaderAndIsr is news goes by the leader epoch.
    """
    leadership = replica.leadership
    if leadership is None:
        return replica._replace(partition_epoch=UNTOLD) if parameters.mode is Mode.ZK else replica
    return timeless(replica._replace(leadership=_canonical(parameters, leadership)))


def _canonical(parameters: Parameters, leadership: Leadership) -> Leadership:
    """A leader looks only at its followers' registrations, and in ZooKeeper mode only whether they are there."""
    followers = {follower for follower, _ in leadership.followers}
    brokers = tuple((broker, registered) for broker, registered in leadership.brokers if broker in followers)
    return leadership._replace(brokers=_looked_at(parameters, brokers))


def _looked_at(parameters: Parameters, brokers: Registered) -> Registered:
    """What brokers look at of each other's registrations."""
    if parameters.mode is Mode.KRAFT:
        return brokers
    return tuple((broker, BrokerRegistration(epoch=0, fenced=registered.fenced)) for broker, registered in brokers)


def passed_over(parameters: Parameters, metadata: Metadata, replica: Replica) -> Metadata:
    """A broker has behind it what comes next and would change nothing.

    It may learn of anything that comes later first, so it does the same whether it has or not.
    """
    broker = replica.broker
    known = metadata.known[broker]
    while known is not None and known + 1 < len(metadata.log):
        new = metadata.log[known + 1]
        if canonical(parameters, learn(parameters, replica, new.partition, new.brokers)) != replica:
            break
        known += 1
    return knowing(metadata, broker, known)


def history(parameters: Parameters, metadata: Metadata, processes: Iterable[Broker]) -> Metadata:
    """What was decided, as far as some broker may yet learn of it: what the partition was, and who was there."""
    *before, now = metadata.log
    told = (Controller(known.partition, _looked_at(parameters, known.brokers)) for known in before)
    metadata = metadata._replace(log=(*told, now))
    for process in processes:
        metadata = passed_over(parameters, metadata, process.replica)
    return metadata


def without_stale(replica: Replica, fetching: Fetching) -> Fetching:
    """What is on its way to a follower that has just learned who leads.

    An answer of an earlier epoch it will not look at, now or ever. Who still waits for that can do no more than who has
    it behind him.
    """
    if isinstance(fetching, ReplicaFetched) and fetching.request.leader_epoch != replica.leader_epoch:
        return None
    return fetching


def renewed(replica: Replica) -> Replica:
    """A leader that has registered anew, and sends what it asked for under its new epoch (AlterPartitionManager)."""
    leadership = replica.leadership
    if leadership is None or leadership.pending is None:
        return replica
    return replica._replace(leadership=leadership._replace(pending=_as_sent(leadership.pending, replica)))


def renewed_request(altering: Altering, replica: Replica) -> Altering:
    """The same of the request itself, or of the answer to it."""
    match altering:
        case AlterPartition():
            return _as_sent(altering, replica)
        case Altered():
            return altering._replace(request=_as_sent(altering.request, replica))
        case None:
            return None


def _as_sent(asked: AlterPartition, replica: Replica) -> AlterPartition:
    return asked._replace(broker_epoch=replica.broker_epoch)
