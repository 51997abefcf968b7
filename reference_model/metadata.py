"""What a broker answers to a Metadata request, from the registrations that it has learned of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reference_model.errors import Error
from reference_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Brokers, Registration


class PartitionMetadata(NamedTuple):
    """One partition (MetadataResponsePartition)."""

    error: Error
    leader: BrokerId = NO_LEADER
    leader_epoch: int = -1
    replicas: tuple[BrokerId, ...] = ()
    isr: Brokers = frozenset()
    offline: Brokers = frozenset()


def describe(
    partition: Registration | None, brokers: Mapping[BrokerId, BrokerRegistration], *, by_id: bool = False
) -> PartitionMetadata:
    """A partition as clients are told of it; None is one that the broker does not know (KRaftMetadataCache).

    A leader that is fenced has no address to tell, so clients are told of none, though its epoch stays. Requests before
    version 1, which were told REPLICA_NOT_AVAILABLE instead of offline replicas, are none of today's.
    """
    if partition is None:
        return PartitionMetadata(Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION)
    alive = frozenset(broker for broker, registration in brokers.items() if not registration.fenced)
    led = partition.leader in alive
    return PartitionMetadata(
        Error.NONE if led else Error.LEADER_NOT_AVAILABLE,
        partition.leader if led else NO_LEADER,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        offline=frozenset(partition.replicas) - alive,
    )
