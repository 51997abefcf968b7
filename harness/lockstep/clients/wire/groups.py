"""A consumer's requests to its group coordinator, of classic and KIP-848 groups: membership and committed offsets."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v0.request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kio.schema.consumer_group_heartbeat.v0.response import ConsumerGroupHeartbeatResponse
from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment, TopicPartition
from kio.schema.consumer_protocol_subscription.v0.data import ConsumerProtocolSubscription
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v9.response import OffsetCommitResponse
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kio.schema.offset_fetch.v9.response import OffsetFetchResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId, TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i64
from kio.static.protocol import Entity, ResponsePayload

from lockstep.clients.wire.connection import Connection, Pending, milliseconds

NO_MEMBER = ""
NO_GENERATION = -1
"""Together with `NO_MEMBER`: the commit of a simple consumer or an admin client, which is no member."""
JOIN, LEAVE = 0, -1
"""Special member epochs in a heartbeat (KIP-848)."""
CONSUMER = "consumer"
RANGE = "range"
UNCHANGED_MS = -1
SCHEMA_VERSION_BYTES = 2

Partitions = frozenset[tuple[str, int]]
"""Topic, or its id where Kafka goes by that, and index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The JoinGroup response of a classic group, sent when all members have joined."""

    error: ErrorCode
    member_id: str
    """The id to join with, where the error is that there was none (KIP-394)."""
    generation: int
    leader: str
    protocol: str | None
    members: tuple[str, ...]
    """Only the leader is told."""
    skip_assignment: bool
    """The leader need not assign anew (KIP-814)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The SyncGroup response: the assignment of a member of a classic group."""

    error: ErrorCode
    assignment: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHeartbeat:
    """The ConsumerGroupHeartbeat response to a member of a KIP-848 group."""

    error: ErrorCode
    member_id: str
    epoch: int
    assignment: Partitions | None
    """By topic id; None if it is as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOffset:
    """The offset that a group has committed; -1 if it has none."""

    error: ErrorCode
    offset: int
    leader_epoch: int


def join_group(
    connection: Connection,
    group: str,
    *,
    topics: tuple[str, ...],
    member_id: str = NO_MEMBER,
    instance: str | None = None,
    protocols: tuple[str, ...] = (RANGE,),
    session_timeout_ms: int = 10_000,
    rebalance_timeout_ms: int = 10_000,
) -> Pending[Joined]:
    """Join a classic group. The answer waits for all other members."""
    subscription = _versioned(ConsumerProtocolSubscription(topics=topics))
    request = JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout=milliseconds(session_timeout_ms),
        rebalance_timeout=milliseconds(rebalance_timeout_ms),
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=CONSUMER,
        protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=subscription) for name in protocols),
    )
    return connection.begin(request, _joined)


def sync_group(
    connection: Connection,
    group: str,
    *,
    member_id: str,
    generation: int,
    instance: str | None = None,
    protocol: str = RANGE,
    assignments: Mapping[str, Iterable[tuple[str, int]]] | None = None,
) -> Pending[Synced]:
    """SyncGroup: the leader sends the assignment of every member id; the followers' responses wait for it."""
    request = SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=i32(generation),
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=CONSUMER,
        protocol_name=protocol,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=member, assignment=_assignment(partitions))
            for member, partitions in (assignments or {}).items()
        ),
    )
    return connection.begin(request, _synced)


def heartbeat(
    connection: Connection, group: str, *, member_id: str, generation: int, instance: str | None = None
) -> Pending[ErrorCode]:
    """Say that a member of a classic group lives, and hear whether it has to join again."""
    request = HeartbeatRequest(
        group_id=GroupId(group), generation_id=i32(generation), member_id=member_id, group_instance_id=instance
    )
    return connection.begin(request, _heard)


def leave_group(
    connection: Connection, group: str, *, member_id: str, instance: str | None = None
) -> Pending[ErrorCode]:
    """Leave a classic group; an administrator gives the instance alone (KIP-345)."""
    leaving = MemberIdentity(member_id=member_id, group_instance_id=instance)
    return connection.begin(LeaveGroupRequest(group_id=GroupId(group), members=(leaving,)), _left)


def consumer_group_heartbeat(
    connection: Connection,
    group: str,
    *,
    member_id: str,
    epoch: int,
    instance: str | None = None,
    topics: tuple[str, ...] | None = None,
    owned: Iterable[tuple[str, int]] | None = None,
    rebalance_timeout_ms: int = UNCHANGED_MS,
) -> Pending[MemberHeartbeat]:
    """Join (`JOIN`), stay, or leave (`LEAVE`): a member that stays gives only what has changed since it last did.

    A member that joins gives every field: topics, owned partitions (none) and the rebalance timeout. Owned partitions
    go by topic id.
    """
    request = ConsumerGroupHeartbeatRequest(
        group_id=GroupId(group),
        member_id=member_id,
        member_epoch=i32(epoch),
        instance_id=instance,
        rebalance_timeout=milliseconds(rebalance_timeout_ms),
        subscribed_topic_names=None if topics is None else tuple(map(TopicName, topics)),
        topic_partitions=None
        if owned is None
        else tuple(
            TopicPartitions(topic_id=UUID(topic_id), partitions=tuple(map(i32, indexes)))
            for topic_id, indexes in by_topic(owned).items()
        ),
    )
    return connection.begin(request, _member_heard)


def offset_commit(
    connection: Connection,
    group: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    member_id: str = NO_MEMBER,
    generation: int = NO_GENERATION,
    instance: str | None = None,
) -> Pending[ErrorCode]:
    """Commit an offset as a member of a generation or, in a KIP-848 group, with a member epoch."""
    committed = OffsetCommitRequestPartition(
        partition_index=i32(partition), committed_offset=i64(offset), committed_metadata=None
    )
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=i32(generation),
        member_id=member_id,
        group_instance_id=instance,
        topics=(OffsetCommitRequestTopic(name=TopicName(topic), partitions=(committed,)),),
    )
    return connection.begin(request, _offset_committed)


def offset_fetch(
    connection: Connection,
    group: str,
    topic: str,
    partition: int,
    *,
    require_stable: bool = False,
    member_id: str | None = None,
    epoch: int = NO_GENERATION,
) -> Pending[FetchedOffset]:
    """Ask for the offset that was committed; `require_stable` refuses while a transaction may yet commit another.

    The coordinator checks member id and epoch only in a KIP-848 group, and only if they are given.
    """
    wanted = OffsetFetchRequestGroup(
        group_id=GroupId(group),
        member_id=member_id,
        member_epoch=i32(epoch),
        topics=(OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=(i32(partition),)),),
    )
    return connection.begin(OffsetFetchRequest(groups=(wanted,), require_stable=require_stable), _offset_fetched)


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """The indexes of each topic, as requests have them."""
    found: dict[str, list[int]] = {}
    for topic, index in partitions:
        found.setdefault(topic, []).append(index)
    return found


def _joined(response: ResponsePayload) -> Joined:
    assert isinstance(response, JoinGroupResponse)
    return Joined(
        error=response.error_code,
        member_id=response.member_id,
        generation=int(response.generation_id),
        leader=response.leader,
        protocol=response.protocol_name,
        members=tuple(member.member_id for member in response.members),
        skip_assignment=response.skip_assignment,
    )


def _synced(response: ResponsePayload) -> Synced:
    assert isinstance(response, SyncGroupResponse)
    return Synced(error=response.error_code, assignment=_assigned(response.assignment))


def _heard(response: ResponsePayload) -> ErrorCode:
    assert isinstance(response, HeartbeatResponse)
    return response.error_code


def _left(response: ResponsePayload) -> ErrorCode:
    assert isinstance(response, LeaveGroupResponse)
    if response.error_code is not ErrorCode.none:
        return response.error_code
    (member,) = response.members
    return member.error_code


def _member_heard(response: ResponsePayload) -> MemberHeartbeat:
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return MemberHeartbeat(
        error=response.error_code,
        member_id=response.member_id or NO_MEMBER,
        epoch=int(response.member_epoch),
        assignment=None
        if response.assignment is None
        else frozenset(
            (str(topic.topic_id), int(index))
            for topic in response.assignment.topic_partitions
            for index in topic.partitions
        ),
    )


def _offset_committed(response: ResponsePayload) -> ErrorCode:
    assert isinstance(response, OffsetCommitResponse)
    (topic,) = response.topics
    (answer,) = topic.partitions
    return answer.error_code


def _offset_fetched(response: ResponsePayload) -> FetchedOffset:
    """An OffsetFetch error concerns the whole group, and then there is no partition in the response."""
    assert isinstance(response, OffsetFetchResponse)
    (group,) = response.groups
    if group.error_code is not ErrorCode.none:
        return FetchedOffset(error=group.error_code, offset=-1, leader_epoch=-1)
    (topic,) = group.topics
    (answer,) = topic.partitions
    return FetchedOffset(
        error=answer.error_code, offset=int(answer.committed_offset), leader_epoch=int(answer.committed_leader_epoch)
    )


def _assignment(partitions: Iterable[tuple[str, int]]) -> bytes:
    return _versioned(
        ConsumerProtocolAssignment(
            assigned_partitions=tuple(
                TopicPartition(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))
                for topic, indexes in by_topic(partitions).items()
            )
        )
    )


def _assigned(assignment: bytes) -> Partitions:
    if not assignment:
        return frozenset()
    parsed, _ = entity_reader(ConsumerProtocolAssignment)(assignment, SCHEMA_VERSION_BYTES)
    return frozenset(
        (str(topic.topic), int(index)) for topic in parsed.assigned_partitions for index in topic.partitions
    )


def _versioned(entity: Entity) -> bytes:
    """Subscriptions and assignments of a classic group begin with the version of their schema."""
    with io.BytesIO() as buffer:
        buffer.write(i16(entity.__version__).to_bytes(SCHEMA_VERSION_BYTES))
        entity_writer(type(entity))(buffer, entity)
        return buffer.getvalue()
