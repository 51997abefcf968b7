"""The states of a group's belief, and responses to group members, in words."""

from __future__ import annotations

from lockstep.stepper.model.description import Part, StateDescriber
from lockstep.stepper.model.groups.state import (
    Around,
    GroupPlaces,
    GroupResponse,
    Memory,
    Operation,
    ParkedGroupRequest,
    PendingGroupRequest,
    Plain,
    Reply,
    Seat,
    Stored,
)
from lockstep_model.errors import Error
from lockstep_model.groups.consumer import ConsumerGroup, HeartbeatAnswer
from lockstep_model.groups.generations import ClassicGroup, ClassicMember, JoinAnswer, SyncAnswer
from lockstep_model.groups.offsets import NO_OFFSET, FetchedOffset, Group, Offsets
from lockstep_model.groups.reconciliation import AssignedPartitions, ConsumerMember
from lockstep_model.registration import NO_LEADER
from lockstep_model.state_machine import State


class GroupStateDescriber(StateDescriber):
    """Describes the states of a group's belief."""

    def _parts(self, state: State) -> list[Part]:
        brokers = range(len(state) - len(GroupPlaces(0).operations) - 2)
        places = GroupPlaces(len(brokers))
        return [
            Part("the group's partition", (GroupPlaces.AROUND,), self._led),
            *(Part(f"broker {self.broker(b)}", (GroupPlaces.AROUND, places.seat(b)), self._seat) for b in brokers),
            Part("in the log", (GroupPlaces.STORED,), _stored),
            *(Part(f"request {slot}", (place,), self._request) for slot, place in enumerate(places.operations)),
        ]

    def _led(self, around: Around) -> str:
        leader, epoch, _ = around.terms[-1]
        return f"led by {self.broker(leader)} in epoch {epoch}" if leader != NO_LEADER else "without a leader"

    def _seat(self, around: Around, seat: Seat) -> str:
        if seat.memory is None:
            return str(seat.coordinating)
        behind = "" if seat.known == len(around.terms) - 1 else ", has not heard of the last election"
        return f"coordinates {memory_in_words(seat.memory, around.now_ms)}{behind}"

    def _request(self, operation: Operation) -> str:
        match operation:
            case PendingGroupRequest():
                return f"{type(operation.request).__name__} on its way to {self.broker(operation.broker)}"
            case ParkedGroupRequest():
                return f"{operation.member} {'joins' if operation.joins else 'waits for its assignment'}"
            case GroupResponse():
                return f"answered: {in_words(operation.reply)}"
            case None:
                return ""


def memory_in_words(memory: Memory, now_ms: int) -> str:
    """A coordinator's group metadata, and the timers that may have expired."""
    over = [f"{timer.kind} {timer.member}".strip() for timer, due_ms in memory.due if due_ms <= now_ms]
    late = f"; timed out may be {', '.join(over)}" if over else ""
    return f"{group_in_words(memory.group)}{_offsets(memory.offsets)}{late}"


def group_in_words(group: Group | None) -> str:
    match group:
        case None:
            return "no group"
        case ClassicGroup():
            pending = f", {', '.join(sorted(group.pending))} told an id" if group.pending else ""
            members = "; ".join(map(_classic_member, group.members))
            return f"{group.state} in generation {group.generation}, leader {group.leader}{pending} [{members}]"
        case ConsumerGroup():
            members = "; ".join(_consumer_member(member, group) for member in group.members)
            return f"{group.state()} in epoch {group.epoch}, target of {group.target_epoch} [{members}]"


def _stored(stored: Stored) -> str:
    return f"{group_in_words(stored.group)}{_offsets(stored.offsets)}"


def _offsets(offsets: Offsets) -> str:
    return f", committed {dict(offsets.committed)}" if offsets.committed else ""


def _classic_member(member: ClassicMember) -> str:
    doing = ", joining" * member.joining + ", syncing" * member.syncing
    static = f" as {member.instance}" if member.instance else ""
    return f"{member.id}{static} with {sorted(member.assignment)}{doing}"


def _consumer_member(member: ConsumerMember, group: ConsumerGroup) -> str:
    revoking = f", revoking {_partitions(member.revoking)}" if member.revoking else ""
    target = sorted(group.target_of(member.id))
    return f"{member.id} in epoch {member.epoch} with {_partitions(member.assigned)}{revoking}, shall have {target}"


def _partitions(assigned: AssignedPartitions) -> list[int]:
    return sorted(partition for partition, _ in assigned)


def in_words(reply: Reply) -> str:
    """A response in words."""
    match reply:
        case Plain(error=Error.NONE):
            return "done"
        case JoinAnswer(error=Error.NONE):
            leads = f", leads {list(reply.members)}" if reply.members else f", {reply.leader} leads"
            skips = " and need not assign" if reply.skip_assignment else ""
            return f"{reply.member} is in generation {reply.generation} by {reply.protocol}{leads}{skips}"
        case JoinAnswer(error=Error.MEMBER_ID_REQUIRED):
            return f"MEMBER_ID_REQUIRED: {reply.member}"
        case SyncAnswer(error=Error.NONE):
            return f"assigned {sorted(reply.assignment)}"
        case HeartbeatAnswer(error=Error.NONE):
            given = "as before" if reply.assignment is None else f"assigned {sorted(reply.assignment)}"
            return f"{reply.member} is in epoch {reply.epoch}, {given}"
        case FetchedOffset(error=Error.NONE):
            return "nothing committed" if reply.offset == NO_OFFSET else f"committed {reply.offset}"
        case _:
            return str(reply.error.name)
