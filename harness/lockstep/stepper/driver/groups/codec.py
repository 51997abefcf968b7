"""Codec of group requests and responses: Kafka's protocol on one side, the reference model's types on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from lockstep.clients.wire import groups
from lockstep.clients.wire.connection import Connection, Pending
from lockstep.stepper.model.groups.state import Plain, Reply, Request, Times
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import JOIN, ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import JoinAnswer, Partitions, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, OffsetCommit, OffsetFetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Sends the model's requests for one group as protocol requests. All members subscribe to one topic."""

    group: str
    topic: str
    topic_id: str
    times: Times

    def send(self, connection: Connection, request: Request) -> Pending[Any]:
        match request:
            case JoinGroup():
                return groups.join_group(
                    connection,
                    self.group,
                    topics=(self.topic,),
                    member_id=request.member,
                    instance=request.instance,
                    session_timeout_ms=self.times.session_ms,
                    rebalance_timeout_ms=self.times.rebalance_ms,
                )
            case SyncGroup():
                return groups.sync_group(
                    connection,
                    self.group,
                    member_id=request.member,
                    generation=request.generation,
                    instance=request.instance,
                    assignments={member: self._named(partitions) for member, partitions in request.assignments},
                )
            case Heartbeat(member, generation, instance):
                return groups.heartbeat(
                    connection, self.group, member_id=member, generation=generation, instance=instance
                )
            case LeaveGroup(((member, instance),)):
                return groups.leave_group(connection, self.group, member_id=member, instance=instance)
            case ConsumerGroupHeartbeat():
                return self._consumer_heartbeat(connection, request)
            case OffsetCommit():
                return self._commit(connection, request)
            case OffsetFetch():
                return groups.offset_fetch(
                    connection,
                    self.group,
                    self.topic,
                    request.partition,
                    member_id=request.member,
                    epoch=request.epoch,
                )
            case _:
                raise TypeError(f"{request} is no request of Kafka's protocol")

    def _consumer_heartbeat(self, connection: Connection, request: ConsumerGroupHeartbeat) -> Pending[Any]:
        owned = None if request.owned is None else [(self.topic_id, index) for index in sorted(request.owned)]
        return groups.consumer_group_heartbeat(
            connection,
            self.group,
            member_id=request.member,
            epoch=request.epoch,
            instance=request.instance,
            topics=None if request.subscription is None else (self.topic,),
            owned=owned,
            rebalance_timeout_ms=self.times.rebalance_ms if request.epoch == JOIN else groups.UNCHANGED_MS,
        )

    def _commit(self, connection: Connection, request: OffsetCommit) -> Pending[Any]:
        ((partition, offset),) = request.offsets
        return groups.offset_commit(
            connection,
            self.group,
            self.topic,
            partition,
            offset,
            member_id=request.member,
            generation=request.generation,
            instance=request.instance,
        )

    def _named(self, partitions: Partitions) -> list[tuple[str, int]]:
        return [(self.topic, index) for index in sorted(partitions)]


def read(answer: Any) -> Reply:
    """The response in the model's types. Of an error response only the error code is compared."""
    error = Error(int(answer if isinstance(answer, ErrorCode) else answer.error))
    match answer:
        case groups.Joined() if error is Error.NONE:
            members = tuple(sorted(answer.members))
            return JoinAnswer(
                error,
                answer.member_id,
                answer.generation,
                answer.leader,
                answer.protocol,
                members,
                skip_assignment=answer.skip_assignment,
            )
        case groups.Joined() if error is Error.MEMBER_ID_REQUIRED:
            return JoinAnswer(error, answer.member_id)
        case groups.Synced() if error is Error.NONE:
            return SyncAnswer(error, frozenset(index for _, index in answer.assignment))
        case groups.MemberHeartbeat() if error is Error.NONE:
            given = None if answer.assignment is None else frozenset(index for _, index in answer.assignment)
            return HeartbeatAnswer(error, answer.member_id, answer.epoch, given)
        case groups.FetchedOffset() if error is Error.NONE:
            return FetchedOffset(error, answer.offset)
        case _:
            return Plain(error)
