"""Who leads the KRaft quorum, as one node tells it."""

from __future__ import annotations

from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from harness.clients.access import OPEN, Access
from harness.clients.wire.connection import Connection
from harness.network.topology import Address

METADATA_TOPIC = "__cluster_metadata"


def active_controller(address: Address, access: Access = OPEN) -> int | None:
    """The node id of the active controller, or None if that node knows of none; raises `OSError` if it is silent."""
    metadata = TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),))
    with Connection(address, access) as connection:
        response = connection.ask(DescribeQuorumRequest(topics=(metadata,)))
    assert isinstance(response, DescribeQuorumResponse)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code is ErrorCode.none and partition.leader_id >= 0:
                return int(partition.leader_id)
    return None
