"""Where logs begin and end, asked from exactly one replica: its own answer, whether it leads or follows."""

from __future__ import annotations

from dataclasses import dataclass

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
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
from kio.static.protocol import ResponsePayload

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection, Pending, milliseconds
from lockstep.clients.wire.fetch import CONSUMER, NO_EPOCH, Isolation
from lockstep.errors import ClusterError
from lockstep.network.topology import Address

DEBUGGING_REPLICA = -2
"""ListOffsets from this replica id returns the LEO, not the high watermark, and followers answer it too."""

LATEST, EARLIEST = -1, -2
"""Timestamps that stand for the end of a log and its start."""
HIGH_WATERMARK = -1
"""DeleteRecords up to the high watermark instead of an offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An offset, and the epoch that belongs to it; -1 for what the replica does not tell."""

    error: ErrorCode
    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochEnd:
    """The newest epoch up to the one that was asked for, and where it ends; -1 if there is none."""

    error: ErrorCode
    leader_epoch: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The low watermark after DeleteRecords: the lowest log start offset of the live replicas."""

    error: ErrorCode
    low_watermark: int


def list_offsets(
    connection: Connection,
    topic: str,
    partition: int,
    timestamp: int,
    *,
    replica_id: int = CONSUMER,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    current_leader_epoch: int = NO_EPOCH,
) -> Pending[Listed]:
    """Ask where the log ends for this replica id and isolation level (`LATEST`), or where it starts (`EARLIEST`)."""
    wanted = ListOffsetsPartition(
        partition_index=i32(partition), current_leader_epoch=i32(current_leader_epoch), timestamp=i64(timestamp)
    )
    request = ListOffsetsRequest(
        replica_id=BrokerId(replica_id),
        isolation_level=i8(isolation),
        topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(wanted,)),),
    )
    return connection.begin(request, _listed)


def offset_for_leader_epoch(
    connection: Connection, topic: str, partition: int, leader_epoch: int, *, current_leader_epoch: int = NO_EPOCH
) -> Pending[EpochEnd]:
    """Ask a leader for the end offset of a leader epoch in its log, to which its followers truncate (KIP-101)."""
    wanted = OffsetForLeaderPartition(
        partition=i32(partition), current_leader_epoch=i32(current_leader_epoch), leader_epoch=i32(leader_epoch)
    )
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=TopicName(topic), partitions=(wanted,)),))
    return connection.begin(request, _epoch_end)


def delete_records(
    connection: Connection, topic: str, partition: int, before: int, *, timeout_ms: int = 30_000
) -> Pending[Deleted]:
    """Have the log start here, with all its replicas; waits for them."""
    wanted = DeleteRecordsPartition(partition_index=i32(partition), offset=i64(before))
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=TopicName(topic), partitions=(wanted,)),),
        timeout=milliseconds(timeout_ms),
    )
    return connection.begin(request, _deleted)


def ask_log_end(address: Address, topic: str, partition: int, *, access: Access = OPEN) -> int:
    """The offset that this replica will give to its next record. Raises `OSError` when it does not answer."""
    with Connection(address, access) as connection:
        listed = list_offsets(connection, topic, partition, LATEST, replica_id=DEBUGGING_REPLICA).answer()
    _require(listed.error, f"the end of {topic}-{partition}")
    return listed.offset


def ask_epoch_end(address: Address, topic: str, partition: int, leader_epoch: int, *, access: Access = OPEN) -> int:
    """Where the records of a leader epoch end in the log of the leader that is asked. Raises `OSError` on silence."""
    with Connection(address, access) as connection:
        found = offset_for_leader_epoch(connection, topic, partition, leader_epoch).answer()
    _require(found.error, f"the end of epoch {leader_epoch} of {topic}-{partition}")
    return found.end


def _listed(response: ResponsePayload) -> Listed:
    assert isinstance(response, ListOffsetsResponse)
    (topic,) = response.topics
    (answer,) = topic.partitions
    return Listed(error=answer.error_code, offset=int(answer.offset), leader_epoch=int(answer.leader_epoch))


def _epoch_end(response: ResponsePayload) -> EpochEnd:
    assert isinstance(response, OffsetForLeaderEpochResponse)
    (topic,) = response.topics
    (answer,) = topic.partitions
    return EpochEnd(error=answer.error_code, leader_epoch=int(answer.leader_epoch), end=int(answer.end_offset))


def _deleted(response: ResponsePayload) -> Deleted:
    assert isinstance(response, DeleteRecordsResponse)
    (topic,) = response.topics
    (answer,) = topic.partitions
    return Deleted(error=answer.error_code, low_watermark=int(answer.low_watermark))


def _require(error: ErrorCode, what: str) -> None:
    if error is not ErrorCode.none:
        raise ClusterError(f"the broker does not tell {what}: {error.name}")
