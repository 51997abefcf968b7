"""What a broker answers to a Metadata request, from the registrations that it has learned of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Brokers, Registration

OFFLINE_TOLD = "offline-told"
"""The guard by which clients are told whose brokers are not there."""
TOLD_LATER = "told-later"
"""What the controller has decided brokers tell when they have learned of it, and not before."""


class PartitionMetadata(NamedTuple):
    """One partition (MetadataResponsePartition)."""

    error: Error
    leader: BrokerId = NO_LEADER
    leader_epoch: int = -1
    replicas: tuple[BrokerId, ...] = ()
    isr: Brokers = frozenset()
    offline: Brokers = frozenset()


class Described(NamedTuple):
    """All that a client is told who asks for one partition."""

    partition: PartitionMetadata
    brokers: Brokers
    """Who is there."""


def describe(
    parameters: Parameters,
    partition: Registration | None,
    brokers: Mapping[BrokerId, BrokerRegistration],
    *,
    by_id: bool = False,
) -> PartitionMetadata:
    """A partition as clients are told of it; None is one that the broker does not know (KRaftMetadataCache).

    A leader that is fenced has no address to tell, so clients are told of none, though its epoch stays. Requests before
    version 1, which were told REPLICA_NOT_AVAILABLE instead of offline replicas, are none of today's.
    """
    if partition is None:
        return PartitionMetadata(Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
    alive = frozenset(broker for broker, registration in brokers.items() if not registration.fenced)
    led = partition.leader in alive
    gone = frozenset(partition.replicas) - alive
    return PartitionMetadata(
        Error.NONE if led else Error.LEADER_NOT_AVAILABLE,
        partition.leader if led else NO_LEADER,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        offline=gone if parameters.guards(OFFLINE_TOLD) else frozenset(),
    )
