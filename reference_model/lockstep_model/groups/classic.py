"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of the classic protocol, at the group coordinator.

Each function takes the group and a request of the newest version. It returns the group afterwards and the response, or
None while the request waits in the join or sync phase, and the responses to waiting requests of other members.
"""

from __future__ import annotations

from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.groups.generations import (
    NOTHING,
    UNKNOWN_MEMBER,
    Answer,
    Chooser,
    ClassicGroup,
    ClassicMember,
    GroupState,
    JoinAnswer,
    MemberId,
    Partitions,
    Protocol,
    ReleasedResponses,
    Step,
    SyncAnswer,
    complete_when_joined,
    joined,
    keeps_protocol,
    prepare,
    rebalance,
    remove,
)
from lockstep_model.groups.mutants import GENERATION_OF_HEARTBEAT, NEW_ID_FOR_INSTANCE
from lockstep_model.groups.parameters import GroupParameters

CONSUMER = "consumer"


class JoinGroup(NamedTuple):
    """JoinGroup request."""

    member: MemberId
    instance: str | None = None
    protocols: tuple[Protocol, ...] = (Protocol("range"),)
    protocol_type: str = CONSUMER


class SyncGroup(NamedTuple):
    """SyncGroup request."""

    member: MemberId
    generation: int
    assignments: tuple[tuple[MemberId, Partitions], ...] = ()
    """The assignment of all members; only the group leader sends one."""
    instance: str | None = None
    protocol: str | None = None
    """The protocol name that the member expects to be selected; sent from version 5 on (KIP-559)."""


class Heartbeat(NamedTuple):
    """Heartbeat request of the classic protocol."""

    member: MemberId
    generation: int
    instance: str | None = None


class LeaveGroup(NamedTuple):
    """LeaveGroup request: several members may leave at once; an administrator names group instance ids only.

    KIP-345.
    """

    members: tuple[tuple[MemberId, str | None], ...]


class ClassicResult(NamedTuple):
    """The group after a request, with the responses to send."""

    group: ClassicGroup
    answer: Answer | None
    """The response; None while the request waits."""
    released: ReleasedResponses = ()
    """Responses to waiting requests of other members."""


def validate(group: ClassicGroup, member: MemberId, instance: str | None) -> Error:
    """Checks member id and group instance id of a request (ClassicGroup.validateMember)."""
    if instance is not None:
        current = group.of_instance(instance)
        if current is None:
            return Error.UNKNOWN_MEMBER_ID
        if current.id != member:  # another member joined with this instance id (KIP-345)
            return Error.FENCED_INSTANCE_ID
    return Error.NONE if group.member(member) else Error.UNKNOWN_MEMBER_ID


def join(
    group: ClassicGroup, request: JoinGroup, *, new_id: MemberId, parameters: GroupParameters, choose: Chooser = min
) -> ClassicResult:
    """JoinGroup (GroupMetadataManager.classicGroupJoinToClassicGroup); `new_id` is the next generated member id."""
    if not _has_room(group, request.member, parameters):
        group = remove(group, request.member, choose)
        return ClassicResult(group, JoinAnswer(Error.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER))
    if not _supports(group, request):
        return ClassicResult(group, JoinAnswer(Error.INCONSISTENT_GROUP_PROTOCOL, request.member))
    if request.member != UNKNOWN_MEMBER:
        return _join_again(group, request, parameters, choose)
    if request.instance is None:  # the member joins again with its new id (KIP-394)
        group = group._replace(pending=group.pending | {new_id})
        return ClassicResult(group, JoinAnswer(Error.MEMBER_ID_REQUIRED, new_id))
    current = group.of_instance(request.instance)
    if current is None:
        return _add(group, new_id, request, parameters, choose)
    return _replace_instance(group, current, new_id, request, parameters, choose)


def sync(group: ClassicGroup, request: SyncGroup) -> ClassicResult:
    """SyncGroup: followers wait for the leader's assignment (GroupMetadataManager.classicGroupSyncToClassicGroup)."""
    error = _refused_sync(group, request)
    member = group.member(request.member)
    if error is not Error.NONE or member is None:
        return ClassicResult(group, SyncAnswer(error))
    group = group._replace(unsynced=group.unsynced - {member.id})
    if group.state is GroupState.STABLE:
        return ClassicResult(group, SyncAnswer(Error.NONE, member.assignment))
    group = group.keep(member._replace(syncing=True))
    if member.id != group.leader:
        return ClassicResult(group, None)
    return _assign(group, member.id, dict(request.assignments))


def heartbeat(group: ClassicGroup, request: Heartbeat, *, parameters: GroupParameters) -> Error:
    """Heartbeat (GroupMetadataManager.classicGroupHeartbeatToClassicGroup); session timers are not modelled."""
    error = validate(group, request.member, request.instance)
    if error is not Error.NONE:
        return error
    if request.generation != group.generation and parameters.guards(GENERATION_OF_HEARTBEAT):
        return Error.ILLEGAL_GENERATION
    return Error.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else Error.NONE


def leave(
    group: ClassicGroup, request: LeaveGroup, *, parameters: GroupParameters, choose: Chooser = min
) -> tuple[ClassicGroup, tuple[Error, ...], ReleasedResponses]:
    """LeaveGroup: an error per member, one rebalance for all (GroupMetadataManager.classicGroupLeaveToClassicGroup).

    The old coordinator starts no rebalance when a pending member leaves
    (GroupCoordinator.removePendingMemberAndUpdateGroup).
    """
    errors = []
    released: ReleasedResponses = ()
    missed = False
    for member_id, instance in request.members:
        by_instance = group.of_instance(instance) if member_id == UNKNOWN_MEMBER else None
        leaver = by_instance.id if by_instance else member_id
        error = Error.NONE if leaver in group.pending else validate(group, leaver, instance)
        errors.append(error)
        if error is Error.NONE:
            joins = group.state is GroupState.PREPARING_REBALANCE
            missed = missed or parameters.new_coordinator or joins or leaver not in group.pending
            member = group.member(leaver)
            if member is not None and member.joining:
                released += ((leaver, JoinAnswer(Error.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER)),)
            group = remove(group, leaver, choose)
    step = Step(group)
    if missed and group.state is not GroupState.EMPTY:
        step = rebalance(group, parameters, choose)
    return step.group, tuple(errors), released + step.released


def _has_room(group: ClassicGroup, member: MemberId, parameters: GroupParameters) -> bool:
    """Whether group.max.size admits this member (GroupMetadataManager.acceptJoiningMember)."""
    current = group.member(member)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:  # a member that rejoins last may find the group full
        return (current is not None and current.joining) or (
            sum(other.joining for other in group.members) < parameters.max_size
        )
    return current is not None or len(group.members) < parameters.max_size


def _supports(group: ClassicGroup, request: JoinGroup) -> bool:
    """Whether the member supports a protocol that all members support (ClassicGroup.supportsProtocols)."""
    if group.state is GroupState.EMPTY:
        return bool(request.protocol_type and request.protocols)
    known = [{protocol.name for protocol in member.protocols} for member in group.members]
    return group.protocol_type == request.protocol_type and any(
        all(protocol.name in names for names in known) for protocol in request.protocols
    )


def _join_again(group: ClassicGroup, request: JoinGroup, parameters: GroupParameters, choose: Chooser) -> ClassicResult:
    """JoinGroup with a member id (GroupMetadataManager.classicGroupJoinExistingMember)."""
    if request.member in group.pending:
        return _add(group, request.member, request, parameters, choose)
    error = validate(group, request.member, request.instance)
    member = group.member(request.member)
    if error is not Error.NONE or member is None:
        return ClassicResult(group, JoinAnswer(error, request.member))
    unchanged = member.protocols == request.protocols
    if group.state is GroupState.COMPLETING_REBALANCE and unchanged:  # its JoinGroup response may be lost
        return ClassicResult(group, joined(group, member.id))
    if group.state is GroupState.STABLE and unchanged and member.id != group.leader:  # the leader forces a rebalance
        return ClassicResult(group, joined(group, member.id))
    return _wait(group, member._replace(protocols=request.protocols), parameters, choose)


def _add(
    group: ClassicGroup, member_id: MemberId, request: JoinGroup, parameters: GroupParameters, choose: Chooser
) -> ClassicResult:
    """A new member joins, which starts a rebalance (GroupMetadataManager.addMemberThenRebalanceOrCompleteJoin)."""
    member = ClassicMember(member_id, request.instance, request.protocols, new=True)
    group = group._replace(
        pending=group.pending - {member_id},
        leader=group.leader or member_id,
        protocol_type=group.protocol_type if group.members else request.protocol_type,
    )
    return _wait(group, member, parameters, choose)


def _wait(group: ClassicGroup, member: ClassicMember, parameters: GroupParameters, choose: Chooser) -> ClassicResult:
    """The member's JoinGroup waits for the next generation (updateMemberThenRebalanceOrCompleteJoin)."""
    group, released = rebalance(group.keep(member._replace(joining=True)), parameters, choose)
    return _outcome(group, member.id, released)


def _replace_instance(
    group: ClassicGroup,
    old: ClassicMember,
    new_id: MemberId,
    request: JoinGroup,
    parameters: GroupParameters,
    choose: Chooser,
) -> ClassicResult:
    """A static member rejoins with a new member id (KIP-345; updateStaticMemberThenRebalanceOrCompleteJoin)."""
    if not parameters.guards(NEW_ID_FOR_INSTANCE):
        new_id = old.id
    fenced: ReleasedResponses = ()  # waiting requests with the old member id
    if old.joining:
        fenced += ((old.id, JoinAnswer(Error.FENCED_INSTANCE_ID, old.id)),)
    if old.syncing:
        fenced += ((old.id, SyncAnswer(Error.FENCED_INSTANCE_ID)),)
    others = tuple(member for member in group.members if member.id != old.id)
    leader = new_id if group.leader == old.id else group.leader
    member = old._replace(id=new_id, protocols=request.protocols, joining=True, syncing=False, new=False)
    group = group._replace(members=others, leader=leader).keep(member)
    if group.state is GroupState.STABLE and keeps_protocol(group, choose):  # same protocol: no rebalance (KIP-345)
        answer = joined(group, new_id, skip_assignment=leader == new_id)
        return ClassicResult(group.keep(member._replace(joining=False)), answer, fenced)
    if group.state is GroupState.PREPARING_REBALANCE:
        step = complete_when_joined(group, parameters, choose)
    else:  # the leader's assignment may name the old member id
        step = prepare(group, parameters, choose)
    outcome = _outcome(step.group, new_id, step.released)
    return outcome._replace(released=fenced + outcome.released)


def _refused_sync(group: ClassicGroup, request: SyncGroup) -> Error:
    """The error of a SyncGroup, or NONE (GroupMetadataManager.validateSyncGroup)."""
    error = validate(group, request.member, request.instance)
    if error is not Error.NONE:
        return error
    if request.generation != group.generation:
        return Error.ILLEGAL_GENERATION
    if request.protocol is not None and group.protocol is not None and request.protocol != group.protocol:
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state is GroupState.PREPARING_REBALANCE else Error.NONE


def _assign(group: ClassicGroup, leader: MemberId, assignments: dict[MemberId, Partitions]) -> ClassicResult:
    """The leader's assignment makes the group Stable; members it does not name get no partitions.

    setAndPropagateAssignment.
    """
    waiting = [member.id for member in group.members if member.syncing]
    members = tuple(
        member._replace(syncing=False, assignment=assignments.get(member.id, NOTHING)) for member in group.members
    )
    group = group._replace(state=GroupState.STABLE, members=members)
    released = tuple(
        (member.id, SyncAnswer(Error.NONE, member.assignment)) for member in members if member.id in waiting
    )
    return _outcome(group, leader, released)


def _outcome(group: ClassicGroup, asker: MemberId, released: ReleasedResponses) -> ClassicResult:
    """Splits the response to the sender from the responses to other members."""
    own = next((answer for member_id, answer in released if member_id == asker), None)
    return ClassicResult(group, own, tuple(to for to in released if to[0] != asker))
