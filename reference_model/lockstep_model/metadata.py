"""A broker's Metadata response, from the partition and broker registrations in its metadata cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Brokers, Registration

OFFLINE_TOLD = "offline-told"
"""Guard: Metadata responses list replicas on brokers that are not alive as offlineReplicas."""
TOLD_LATER = "told-later"
"""Guard: a broker's Metadata response has a controller's change only after the broker applied it."""


class PartitionMetadata(NamedTuple):
    """One partition of a Metadata response (MetadataResponsePartition)."""

    error: Error
    leader: BrokerId = NO_LEADER
    leader_epoch: int = -1
    replicas: tuple[BrokerId, ...] = ()
    isr: Brokers = frozenset()
    offline: Brokers = frozenset()


class PartitionMetadataResponse(NamedTuple):
    """A Metadata response for one partition, with the live brokers."""

    partition: PartitionMetadata
    brokers: Brokers
    """The live (unfenced) brokers."""


def describe(
    parameters: Parameters,
    partition: Registration | None,
    brokers: Mapping[BrokerId, BrokerRegistration],
    *,
    by_id: bool = False,
) -> PartitionMetadata:
    """Metadata of a partition; None is a partition that is not in the cache (KRaftMetadataCache.getPartitionMetadata).

    A fenced leader has no endpoint: the response has LEADER_NOT_AVAILABLE and leader -1, with the leader epoch as it
    is. Version 0, which had REPLICA_NOT_AVAILABLE, is not modelled.
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
