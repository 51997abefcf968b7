"""Where logs end, asked from exactly one replica: its own answer, whether it leads or follows."""

from __future__ import annotations

from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v5.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v5.response import ListOffsetsResponse
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kio.schema.offset_for_leader_epoch.v4.response import OffsetForLeaderEpochResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from harness.clients.access import OPEN, Access
from harness.clients.wire.connection import Connection
from harness.errors import ClusterError
from harness.network.topology import Address

DEBUGGING_REPLICA = BrokerId(-2)
"""Whoever asks as this replica hears of a log's very end, past the high watermark, and from followers too."""

LATEST = i64(-1)


def ask_log_end(address: Address, topic: str, partition: int, *, access: Access = OPEN) -> int:
    """The offset that this replica will give to its next record. Raises `OSError` when it does not answer."""
    wanted = ListOffsetsPartition(partition_index=i32(partition), timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=DEBUGGING_REPLICA,
        isolation_level=i8(0),
        topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(wanted,)),),
    )
    with Connection(address, access) as connection:
        response = connection.ask(request)
    assert isinstance(response, ListOffsetsResponse)
    answer = response.topics[0].partitions[0]
    _require(answer.error_code, f"the end of {topic}-{partition}")
    return int(answer.offset)


def ask_epoch_end(address: Address, topic: str, partition: int, leader_epoch: int, *, access: Access = OPEN) -> int:
    """Where the records of a leader epoch end in the log of the leader that is asked: others are cut back to there."""
    wanted = OffsetForLeaderPartition(partition=i32(partition), leader_epoch=i32(leader_epoch))
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=TopicName(topic), partitions=(wanted,)),))
    with Connection(address, access) as connection:
        response = connection.ask(request)
    assert isinstance(response, OffsetForLeaderEpochResponse)
    answer = response.topics[0].partitions[0]
    _require(answer.error_code, f"the end of epoch {leader_epoch} of {topic}-{partition}")
    return int(answer.end_offset)


def _require(error: ErrorCode, what: str) -> None:
    if error is not ErrorCode.none:
        raise ClusterError(f"the broker does not tell {what}: {error.name}")
