"""A group of the classic protocol and its way from one generation to the next (ClassicGroup).

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance ...

PreparingRebalance: members join, until all have joined or the rebalance timeout passes; then the next generation
begins. CompletingRebalance: members wait for the group leader's assignment, which makes the group Stable. Appends to
__consumer_offsets take effect at once. A deleted group is the same as one that never existed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.groups.mutants import JOIN_WAITS_FOR_MEMBERS
from lockstep_model.groups.parameters import GroupParameters

MemberId: TypeAlias = str
UNKNOWN_MEMBER: MemberId = ""
NO_GENERATION = -1

Partition: TypeAlias = int
Partitions: TypeAlias = frozenset[Partition]
NOTHING: Partitions = frozenset()

Chooser: TypeAlias = Callable[[Iterable[str]], str]
"""Kafka takes the first entry of a hash map when it picks a group leader, or a protocol among those with equal votes.
In lockstep with a cluster the caller passes what the cluster picked."""


class GroupState(StrEnum):
    """State of a classic group (ClassicGroupState)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class Protocol(NamedTuple):
    """A partition assignor that a member supports, with its subscription metadata for the leader."""

    name: str
    metadata: str = ""


class ClassicMember(NamedTuple):
    """A group member as the coordinator keeps it (ClassicGroupMember)."""

    id: MemberId
    instance: str | None
    protocols: tuple[Protocol, ...]
    """In the member's order of preference."""
    joining: bool = False
    """Its JoinGroup awaits the response."""
    syncing: bool = False
    """Its SyncGroup awaits the response."""
    new: bool = False
    """The member has not been in a generation yet; its session can expire while its JoinGroup waits."""
    assignment: Partitions = NOTHING


class ClassicGroup(NamedTuple):
    """A classic group as the coordinator keeps it (ClassicGroup)."""

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: MemberId | None = None
    members: tuple[ClassicMember, ...] = ()
    """Ordered by member id."""
    pending: frozenset[MemberId] = frozenset()
    """Member ids that were handed out by MEMBER_ID_REQUIRED and have not joined yet (KIP-394)."""
    unsynced: frozenset[MemberId] = frozenset()
    """Members that have not sent SyncGroup in this generation yet (KAFKA-12890)."""
    initial: bool = False
    """The rebalance in preparation is the first of an empty group and waits group.initial.rebalance.delay.ms
    (KIP-134)."""

    def member(self, member_id: MemberId | None) -> ClassicMember | None:
        return next((member for member in self.members if member.id == member_id), None)

    def of_instance(self, instance: str | None) -> ClassicMember | None:
        return next((member for member in self.members if instance is not None and member.instance == instance), None)

    def ids(self) -> tuple[MemberId, ...]:
        return tuple(member.id for member in self.members)

    def all_joined(self) -> bool:
        """Whether every member has joined and no member id is pending (ClassicGroup.hasAllMembersJoined)."""
        return not self.pending and all(member.joining for member in self.members)

    def keep(self, member: ClassicMember) -> ClassicGroup:
        """The group with this member, which replaces the one of the same id."""
        others = (other for other in self.members if other.id != member.id)
        return self._replace(members=tuple(sorted((*others, member))))


class JoinAnswer(NamedTuple):
    """JoinGroup response."""

    error: Error
    member: MemberId
    generation: int = NO_GENERATION
    leader: MemberId | None = None
    protocol: str | None = None
    members: tuple[MemberId, ...] = ()
    """Sent to the leader only."""
    skip_assignment: bool = False
    """A static leader that rejoined must not compute a new assignment (KIP-814)."""


class SyncAnswer(NamedTuple):
    """SyncGroup response."""

    error: Error
    assignment: Partitions = NOTHING


Answer: TypeAlias = JoinAnswer | SyncAnswer
ReleasedResponses: TypeAlias = tuple[tuple[MemberId, Answer], ...]
"""Responses to requests of these members that waited until now."""


class Step(NamedTuple):
    """A group after an event, with the responses it releases."""

    group: ClassicGroup
    released: ReleasedResponses = ()


def joined(group: ClassicGroup, member_id: MemberId, *, skip_assignment: bool = False) -> JoinAnswer:
    """Successful JoinGroup response of this generation."""
    members = group.ids() if member_id == group.leader else ()
    return JoinAnswer(
        Error.NONE, member_id, group.generation, group.leader, group.protocol, members, skip_assignment=skip_assignment
    )


def rebalance(group: ClassicGroup, parameters: GroupParameters, choose: Chooser) -> Step:
    """Starts a rebalance, or completes the join phase if all have joined (maybePrepareRebalanceOrCompleteJoin)."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_when_joined(group, parameters, choose)
    return prepare(group, parameters, choose)


def prepare(group: ClassicGroup, parameters: GroupParameters, choose: Chooser) -> Step:
    """PreparingRebalance: members have to rejoin (GroupMetadataManager.prepareRebalance)."""
    released: ReleasedResponses = ()
    if group.state is GroupState.COMPLETING_REBALANCE:  # members that wait for an assignment have to rejoin
        released = tuple(
            (member.id, SyncAnswer(Error.REBALANCE_IN_PROGRESS)) for member in group.members if member.syncing
        )
        members = tuple(member._replace(syncing=False, assignment=NOTHING) for member in group.members)
        group = group._replace(members=members)
    initial = group.state is GroupState.EMPTY  # group.initial.rebalance.delay.ms (KIP-134)
    group = group._replace(state=GroupState.PREPARING_REBALANCE, initial=initial, unsynced=frozenset())
    step = complete_when_joined(group, parameters, choose)
    return Step(step.group, released + step.released)


def complete_when_joined(group: ClassicGroup, parameters: GroupParameters, choose: Chooser) -> Step:
    """Completes the join phase once all members have joined (GroupMetadataManager.maybeCompleteJoinPhase)."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.initial:
        return Step(group)
    if parameters.guards(JOIN_WAITS_FOR_MEMBERS) and not group.all_joined():
        return Step(group)
    return complete_join(group, choose)


def complete_join(group: ClassicGroup, choose: Chooser) -> Step:
    """The next generation begins, without dynamic members that did not rejoin (completeClassicGroupJoin)."""
    for member in group.members:
        if not member.joining and member.instance is None:  # static members stay until their session expires (KIP-345)
            group = remove(group, member.id, choose)
    leader = _joined_leader(group, choose)
    if leader is None and group.members:  # only absent static members are left: wait until they join or expire
        return Step(group)
    protocol = _selected(group.members, choose)
    state = GroupState.COMPLETING_REBALANCE if group.members else GroupState.EMPTY
    group = group._replace(
        state=state, generation=group.generation + 1, leader=leader, protocol=protocol, initial=False
    )
    released = tuple((member.id, joined(group, member.id)) for member in group.members if member.joining)
    members = tuple(member._replace(joining=False, new=False) for member in group.members)
    return Step(group._replace(members=members, unsynced=frozenset(group.ids())), released)


def remove(group: ClassicGroup, member_id: MemberId, choose: Chooser) -> ClassicGroup:
    """The group without this member; if it was the leader, another member is (ClassicGroup.remove)."""
    members = tuple(member for member in group.members if member.id != member_id)
    leader = group.leader
    if leader == member_id:
        leader = choose(member.id for member in members) if members else None
    gone = frozenset({member_id})
    return group._replace(members=members, leader=leader, pending=group.pending - gone, unsynced=group.unsynced - gone)


def keeps_protocol(group: ClassicGroup, choose: Chooser) -> bool:
    """Whether the members' votes would select the present protocol again (ClassicGroup.selectProtocol)."""
    return _selected(group.members, choose) == group.protocol


def session_expires(
    group: ClassicGroup, member_id: MemberId, *, parameters: GroupParameters, choose: Chooser = min
) -> Step | None:
    """A member's session times out (GroupMetadataManager.expireClassicGroupMemberHeartbeat)."""
    if member_id in group.pending:
        group = remove(group, member_id, choose)
        return complete_join(group, choose) if _may_complete(group) else Step(group)
    member = group.member(member_id)
    if member is None or (not member.new and (member.joining or member.syncing)):  # a waiting request keeps the session
        return None
    released: ReleasedResponses = ()
    if member.joining:
        released = ((member_id, JoinAnswer(Error.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER)),)
    group = remove(group, member_id, choose)
    if group.state is not GroupState.PREPARING_REBALANCE:
        step = rebalance(group, parameters, choose)
    else:
        step = complete_join(group, choose) if _may_complete(group) else Step(group)
    return Step(step.group, released + step.released)


def join_time_passes(group: ClassicGroup, *, choose: Chooser = min) -> Step | None:
    """The join phase ends by rebalance timeout, or the first one by group.initial.rebalance.delay.ms (KIP-134).

    GroupMetadataManager.completeClassicGroupJoin.
    """
    return complete_join(group, choose) if group.state is GroupState.PREPARING_REBALANCE else None


def sync_time_passes(group: ClassicGroup, *, parameters: GroupParameters, choose: Chooser = min) -> Step | None:
    """Members without SyncGroup within the rebalance timeout are removed (expirePendingSync, KAFKA-12890)."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced:
        return None
    for member_id in sorted(group.unsynced):
        group = remove(group, member_id, choose)
    return prepare(group, parameters, choose)


def _may_complete(group: ClassicGroup) -> bool:
    """Whether the join phase can complete after a member is removed, even in the initial rebalance."""
    return group.state is GroupState.PREPARING_REBALANCE and group.all_joined()


def _joined_leader(group: ClassicGroup, choose: Chooser) -> MemberId | None:
    """The leader if it has rejoined, else another member that has (ClassicGroup.maybeElectNewJoinedLeader)."""
    joining = tuple(member.id for member in group.members if member.joining)
    if group.leader in joining:
        return group.leader
    return choose(joining) if joining else None


def _selected(members: tuple[ClassicMember, ...], choose: Chooser) -> str | None:
    """The protocol with most votes among those that all members support (ClassicGroup.selectProtocol)."""
    if not members:
        return None
    known = [{protocol.name for protocol in member.protocols} for member in members]
    common = known[0].intersection(*known)
    votes = Counter(
        next(protocol.name for protocol in member.protocols if protocol.name in common) for member in members
    )
    most = max(votes.values())
    return choose(name for name, count in votes.items() if count == most)
