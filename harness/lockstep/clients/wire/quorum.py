"""The KRaft quorum (DescribeQuorum), and its active controller, as one node reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.network.topology import Address

METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """The quorum as its leader sees it."""

    leader: int
    high_watermark: int
    log_ends: Mapping[int, int]
    """Of each voter; -1 for one that has not fetched since this leader leads."""


def ask_quorum(address: Address, access: Access = OPEN) -> Quorum | None:
    """The quorum leader's response, which brokers forward; None if there is no leader. Raises `OSError` on silence."""
    metadata = TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),))
    with Connection(address, access) as connection:
        response = connection.ask(DescribeQuorumRequest(topics=(metadata,)))
    assert isinstance(response, DescribeQuorumResponse)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code is ErrorCode.none and partition.leader_id >= 0:
                return Quorum(
                    leader=int(partition.leader_id),
                    high_watermark=int(partition.high_watermark),
                    log_ends={int(voter.replica_id): int(voter.log_end_offset) for voter in partition.current_voters},
                )
    return None


def active_controller(address: Address, access: Access = OPEN) -> int | None:
    """The node id of the active controller, or None if that node knows of none; raises `OSError` if it is silent."""
    quorum = ask_quorum(address, access)
    return None if quorum is None else quorum.leader
