"""Canonical form of states: states that no future event can distinguish are made equal, so a belief has one of them.

A field is dropped here only if no rule and no request of the reference model reads it again.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockstep_model.controller import Controller
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.replica import BrokerRegistrations, Leadership, Replica, learn
from lockstep_model.partition.replica_fetch import ReplicaFetchResponse
from lockstep_model.registration import AlterPartition, BrokerRegistration
from lockstep_model.replication.state import (
    AlterPartitionResponse,
    Broker,
    InFlightAlterPartition,
    InFlightFetch,
    Metadata,
    knowing,
    timeless,
)

UNTOLD = -1
"""In place of a partition epoch that the broker does not use."""


def canonical(parameters: Parameters, replica: Replica) -> Replica:
    """A replica without the fields that its broker never reads.

    In ZooKeeper mode only a leader uses the partition epoch, and gets it with the LeaderAndIsr that makes it leader.
    Whether a LeaderAndIsr request is stale is decided by the leader epoch.
    """
    leadership = replica.leadership
    if leadership is None:
        return replica._replace(partition_epoch=UNTOLD) if parameters.mode is Mode.ZK else replica
    return timeless(replica._replace(leadership=_canonical(parameters, leadership)))


def _canonical(parameters: Parameters, leadership: Leadership) -> Leadership:
    """A leader reads only its followers' registrations, and in ZooKeeper mode only whether they are live."""
    followers = {follower for follower, _ in leadership.followers}
    brokers = tuple((broker, registered) for broker, registered in leadership.brokers if broker in followers)
    return leadership._replace(brokers=_looked_at(parameters, brokers))


def _looked_at(parameters: Parameters, brokers: BrokerRegistrations) -> BrokerRegistrations:
    """The fields of other brokers' registrations that a broker reads: all in KRaft, liveness in ZooKeeper mode."""
    if parameters.mode is Mode.KRAFT:
        return brokers
    return tuple((broker, BrokerRegistration(epoch=0, fenced=registered.fenced)) for broker, registered in brokers)


def passed_over(parameters: Parameters, metadata: Metadata, replica: Replica) -> Metadata:
    """Advances a broker past the following metadata updates that would leave its replica as it is.

    A broker may skip to any later update (`hidden_transitions.LEARNING`), so it can do the same with or without them.
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
    """The metadata log with only what brokers may yet learn of past decisions: the partition and the registrations."""
    *before, now = metadata.log
    told = (Controller(known.partition, _looked_at(parameters, known.brokers)) for known in before)
    metadata = metadata._replace(log=(*told, now))
    for process in processes:
        metadata = passed_over(parameters, metadata, process.replica)
    return metadata


def without_stale(replica: Replica, fetching: InFlightFetch) -> InFlightFetch:
    """A fetcher's request or response after its follower has applied a metadata update.

    Responses of an older leader epoch are discarded, so awaiting one equals having none in flight.
    """
    if isinstance(fetching, ReplicaFetchResponse) and fetching.request.leader_epoch != replica.leader_epoch:
        return None
    return fetching


def renewed(replica: Replica) -> Replica:
    """A leader that has registered again: its pending AlterPartition carries the new broker epoch.

    AlterPartitionManager takes the broker epoch when it sends a request, also for a retry.
    """
    leadership = replica.leadership
    if leadership is None or leadership.pending is None:
        return replica
    return replica._replace(leadership=leadership._replace(pending=_as_sent(leadership.pending, replica)))


def renewed_request(altering: InFlightAlterPartition, replica: Replica) -> InFlightAlterPartition:
    """The AlterPartition in flight, or the one to which a response is in flight, with the leader's new broker epoch."""
    match altering:
        case AlterPartition():
            return _as_sent(altering, replica)
        case AlterPartitionResponse():
            return altering._replace(request=_as_sent(altering.request, replica))
        case None:
            return None


def _as_sent(asked: AlterPartition, replica: Replica) -> AlterPartition:
    return asked._replace(broker_epoch=replica.broker_epoch)
