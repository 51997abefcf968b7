"""One broker's view of the cluster: its Metadata response."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.network.topology import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition as one broker sees it; `leader` is -1 when there is none."""

    topic: str
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    """The replicas whose brokers are not there."""
    error: ErrorCode = ErrorCode.none

    @property
    def in_sync(self) -> bool:
        """Whether it has a leader and all its replicas are in the ISR."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """One broker's Metadata response: the live brokers (registered and unfenced) and the leader of each partition."""

    cluster_id: str
    addresses: Mapping[int, Address]
    """The address that each broker advertises on the listener of the request."""
    controller: int
    partitions: tuple[PartitionView, ...]

    @property
    def brokers(self) -> frozenset[int]:
        return frozenset(self.addresses)

    def partition(self, topic: str, partition: int) -> PartitionView | None:
        for view in self.partitions:
            if (view.topic, view.partition) == (topic, partition):
                return view
        return None


def ask_metadata(
    address: Address, topics: tuple[str, ...] | None = (), *, access: Access = OPEN, timeout_s: float = 2.0
) -> ClusterView:
    """Ask one broker; `None` asks for all topics. Raises `OSError` when it does not answer."""
    with Connection(address, access, timeout_s) as connection:
        return metadata(connection, topics)


def metadata(connection: Connection, topics: tuple[str, ...] | None = ()) -> ClusterView:
    """The same on a connection that is already open."""
    wanted = None if topics is None else tuple(MetadataRequestTopic(topic_id=None, name=TopicName(t)) for t in topics)
    response = connection.ask(
        MetadataRequest(topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    )
    assert isinstance(response, MetadataResponse)
    return ClusterView(
        cluster_id=response.cluster_id or "",
        addresses={int(b.node_id): Address(host=b.host, port=int(b.port)) for b in response.brokers},
        controller=int(response.controller_id),
        partitions=tuple(
            PartitionView(
                topic=str(topic.name),
                topic_id=str(topic.topic_id),
                partition=int(partition.partition_index),
                leader=int(partition.leader_id),
                leader_epoch=int(partition.leader_epoch),
                replicas=tuple(map(int, partition.replica_nodes)),
                isr=tuple(map(int, partition.isr_nodes)),
                offline=tuple(map(int, partition.offline_replicas)),
                error=partition.error_code,
            )
            for topic in response.topics
            for partition in topic.partitions
        ),
    )
