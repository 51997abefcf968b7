"""The harness's own group members: the member state that each holds, and the request that each action sends.

A request carries the right member id and generation or, on purpose, a wrong one.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from lockstep.clients.wire.coordinators import GroupProtocol
from lockstep.stepper.driver.actions import (
    Beat,
    Claims,
    Commit,
    Committed,
    Enter,
    Exit,
    GroupStep,
    Join,
    Leave,
    Owned,
    Report,
    Sync,
)
from lockstep.stepper.model.groups.responses import PARTITIONS
from lockstep.stepper.model.groups.state import Plain, Reply, Request
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    ConsumerGroupHeartbeat,
    HeartbeatAnswer,
)
from lockstep_model.groups.generations import (
    NO_GENERATION,
    NOTHING,
    UNKNOWN_MEMBER,
    JoinAnswer,
    Partitions,
    SyncAnswer,
)
from lockstep_model.groups.offsets import OffsetCommit, OffsetFetch

STRANGER = "unknown-member"
SUBSCRIPTION = "all"
RANGE = "range"
LOST = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.FENCED_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND)
"""Errors after which the consumer is no longer a member."""
NAMES = {
    GroupProtocol.CLASSIC: ("ada", "bob", "static-sue"),
    GroupProtocol.CONSUMER: ("kim", "leo", "static-max"),
}


@dataclass(kw_only=True)
class Consumer:
    """One consumer of one group, with the state that a client keeps about its membership."""

    name: str
    protocol: GroupProtocol
    member: str = UNKNOWN_MEMBER
    generation: int = NO_GENERATION
    """The generation id of the classic protocol, the member epoch of the consumer protocol."""
    members: tuple[str, ...] = ()
    """All member ids of the generation, if this member is the group leader."""
    assigned: Partitions = NOTHING
    synced: bool = False
    """Whether SyncGroup has returned the assignment of this generation."""
    open: set[int] = field(default_factory=set)
    """The slots of its requests whose responses are outstanding."""

    @property
    def instance(self) -> str | None:
        return self.name if self.name.startswith("static") else None

    @property
    def in_group(self) -> bool:
        return self.generation > 0

    def request(self, step: GroupStep) -> Request:
        """The request that this action sends."""
        match step:
            case Enter():
                self.member = self.member or f"{self.name}-{uuid.uuid4().hex[:6]}"
                return ConsumerGroupHeartbeat(self.member, JOIN, self.instance, NOTHING, SUBSCRIPTION)
            case Exit():
                epoch = LEAVE_FOR_A_WHILE if step.for_now else LEAVE
                return ConsumerGroupHeartbeat(self.member, epoch, self.instance)
            case Report():
                member, generation = self._claimed(step.claims)
                return ConsumerGroupHeartbeat(member, generation, self.instance, self._owned(step.owned))
            case Committed():
                return self._committed(step)
            case _:
                return self._classic(step)

    def _classic(self, step: Join | Sync | Beat | Leave | Commit) -> Request:
        member, generation = self._claimed(step.claims)
        instance = None if step.claims is Claims.STRANGER else self.instance
        match step:
            case Join():
                return JoinGroup(member, instance)
            case Sync():
                return SyncGroup(member, generation, self._assignments(), instance, RANGE)
            case Beat():
                return Heartbeat(member, generation, instance)
            case Leave():
                return LeaveGroup(((member, instance),))
            case Commit():
                anonymous = step.claims is Claims.NO_MEMBER
                offsets = ((step.partition, step.offset),)
                return OffsetCommit(offsets, member, generation, None if anonymous else instance)

    def _committed(self, step: Committed) -> OffsetFetch:
        if step.claims is Claims.NO_MEMBER:
            return OffsetFetch(step.partition)
        member, generation = self._claimed(step.claims)
        return OffsetFetch(step.partition, member=member, epoch=generation)

    def _claimed(self, claims: Claims) -> tuple[str, int]:
        match claims:
            case Claims.RIGHT:
                return self.member, self.generation
            case Claims.NO_MEMBER:
                return UNKNOWN_MEMBER, NO_GENERATION
            case Claims.STRANGER:
                return STRANGER, max(self.generation, 1)
            case Claims.OLD:
                return self.member, max(self.generation - 1, 1)
            case Claims.NEXT:
                return self.member, self.generation + 1

    def _owned(self, owned: Owned) -> Partitions | None:
        match owned:
            case Owned.ALL:
                return self.assigned
            case Owned.SOME:
                return frozenset(sorted(self.assigned)[1:])
            case Owned.UNSAID:
                return None

    def _assignments(self) -> tuple[tuple[str, Partitions], ...]:
        """The assignment that a group leader sends: partitions are dealt to the members in turn."""
        count = len(self.members)
        return tuple(
            (member, frozenset(range(number, PARTITIONS, count))) for number, member in enumerate(self.members)
        )

    def learn(self, request: Request, reply: Reply) -> None:
        """Update the member state from a response, unless the request carried an unknown member id on purpose."""
        if getattr(request, "member", None) == STRANGER:
            return
        match reply:
            case JoinAnswer(error=Error.MEMBER_ID_REQUIRED):
                self.member = reply.member
            case JoinAnswer():
                self.member, self.generation, self.members = reply.member, reply.generation, reply.members
                self.synced = False
            case SyncAnswer():
                self.assigned, self.synced = reply.assignment, True
            case HeartbeatAnswer():
                self._hear(reply)
            case Plain():
                self._hear_plain(request, reply.error)
            case _:
                pass

    def _hear(self, reply: HeartbeatAnswer) -> None:
        self.generation = reply.epoch
        if reply.epoch < JOIN:
            self.assigned = NOTHING
        elif reply.assignment is not None:
            self.assigned = reply.assignment

    def _hear_plain(self, request: Any, error: Error) -> None:
        if not self._meant(request):
            return
        if error in LOST:
            self.member = self.member if self.protocol is GroupProtocol.CONSUMER else UNKNOWN_MEMBER
            self._forget()
        elif isinstance(request, LeaveGroup) and error is Error.NONE:
            self.member = UNKNOWN_MEMBER
            self._forget()
        elif error in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION) and not isinstance(request, OffsetCommit):
            self.generation = NO_GENERATION if error is Error.ILLEGAL_GENERATION else self.generation
            self.synced = False
            self.members = ()

    def _meant(self, request: Any) -> bool:
        """Whether the request carried this consumer's own member id and current generation."""
        generation = getattr(request, "generation", getattr(request, "epoch", self.generation))
        return getattr(request, "member", self.member) == self.member and generation == self.generation

    def _forget(self) -> None:
        self.generation, self.members, self.assigned, self.synced = NO_GENERATION, (), NOTHING, False
