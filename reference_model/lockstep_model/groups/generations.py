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

Choose: TypeAlias = Callable[[Iterable[str]], str]
"""Kafka takes whichever its hash map gives first, of members to lead and of protocols with as many votes: who steps
beside a cluster says here what it chose."""


class GroupState(StrEnum):
    """ClassicGroupState"""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


class Protocol(NamedTuple):
    """A way to assign partitions that a member knows, with what it tells the leader."""

    name: str
    metadata: str = ""


class ClassicMember(NamedTuple):
    """One member, as the coordinator has it (ClassicGroupMember)."""

    id: MemberId
    instance: str | None
    protocols: tuple[Protocol, ...]
    """In the order in which it prefers them."""
    joining: bool = False
    """Its JoinGroup waits for an answer."""
    syncing: bool = False
    """Its SyncGroup waits for an answer."""
    new: bool = False
    """It has not been in a generation yet: it can expire while it waits."""
    assignment: Partitions = NOTHING


class ClassicGroup(NamedTuple):
    """What the coordinator knows of a group."""

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: MemberId | None = None
    members: tuple[ClassicMember, ...] = ()
    """In the order of their ids."""
    pending: frozenset[MemberId] = frozenset()
    """Who was told an id and has not joined with it yet (KIP-394)."""
    unsynced: frozenset[MemberId] = frozenset()
    """Who has not asked for the assignment of this generation yet (KIP-559)."""
    initial: bool = False
    """The rebalance that is prepared is the first since the group was empty: it waits for more members to come."""

    def member(self, member_id: MemberId | None) -> ClassicMember | None:
        return next((member for member in self.members if member.id == member_id), None)

    def of_instance(self, instance: str | None) -> ClassicMember | None:
        return next((member for member in self.members if instance is not None and member.instance == instance), None)

    def ids(self) -> tuple[MemberId, ...]:
        return tuple(member.id for member in self.members)

    def all_joined(self) -> bool:
        """Whether nobody has to be waited for (ClassicGroup.hasAllMembersJoined)."""
        return not self.pending and all(member.joining for member in self.members)

    def keep(self, member: ClassicMember) -> ClassicGroup:
        """The group with this member, in place of the one with its id."""
        others = (other for other in self.members if other.id != member.id)
        return self._replace(members=tuple(sorted((*others, member))))


class JoinAnswer(NamedTuple):
    """JoinGroupResponse"""

    error: Error
    member: MemberId
    generation: int = NO_GENERATION
    leader: MemberId | None = None
    protocol: str | None = None
    members: tuple[MemberId, ...] = ()
    """Only the leader is told."""
    skip_assignment: bool = False
    """A leader that came back need not assign anew (KIP-814)."""


class SyncAnswer(NamedTuple):
    """SyncGroupResponse"""

    error: Error
    assignment: Partitions = NOTHING


Answer: TypeAlias = JoinAnswer | SyncAnswer
Released: TypeAlias = tuple[tuple[MemberId, Answer], ...]
"""Answers to requests of these members that have waited until now."""


class Step(NamedTuple):
    """A group after something happened, and who hears of it."""

    group: ClassicGroup
    released: Released = ()


def joined(group: ClassicGroup, member_id: MemberId, *, skip_assignment: bool = False) -> JoinAnswer:
    """What a member of this generation hears when it has joined."""
    members = group.ids() if member_id == group.leader else ()
    return JoinAnswer(
        Error.NONE, member_id, group.generation, group.leader, group.protocol, members, skip_assignment=skip_assignment
    )


def rebalance(group: ClassicGroup, parameters: GroupParameters, choose: Choose) -> Step:
    """Prepare the next generation, or if that has begun, see if it can come (maybePrepareRebalanceOrCompleteJoin)."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_when_joined(group, parameters, choose)
    return prepare(group, parameters, choose)


def prepare(group: ClassicGroup, parameters: GroupParameters, choose: Choose) -> Step:
    """Ask all members to join again (GroupMetadataManager.prepareRebalance)."""
    released: Released = ()
    if group.state is GroupState.COMPLETING_REBALANCE:  # who waits for an assignment has to join again
        released = tuple(
            (member.id, SyncAnswer(Error.REBALANCE_IN_PROGRESS)) for member in group.members if member.syncing
        )
        members = tuple(member._replace(syncing=False, assignment=NOTHING) for member in group.members)
        group = group._replace(members=members)
    initial = group.state is GroupState.EMPTY  # group.initial.rebalance.delay.ms (KIP-134)
    group = group._replace(state=GroupState.PREPARING_REBALANCE, initial=initial, unsynced=frozenset())
    step = complete_when_joined(group, parameters, choose)
    return Step(step.group, released + step.released)


def complete_when_joined(group: ClassicGroup, parameters: GroupParameters, choose: Choose) -> Step:
    """The next generation begins when there is nobody to wait for (GroupMetadataManager.maybeCompleteJoinPhase)."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.initial:
        return Step(group)
    if parameters.guards(JOIN_WAITS_FOR_MEMBERS) and not group.all_joined():
        return Step(group)
    return complete_join(group, choose)


def complete_join(group: ClassicGroup, choose: Choose) -> Step:
    """The next generation begins, without the dynamic members that did not join (completeClassicGroupJoin)."""
    for member in group.members:
        if not member.joining and member.instance is None:  # static members have their session time (KIP-345)
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


def remove(group: ClassicGroup, member_id: MemberId, choose: Choose) -> ClassicGroup:
    """The group without this member; if it led, any other leads (ClassicGroup.remove)."""
    members = tuple(member for member in group.members if member.id != member_id)
    leader = group.leader
    if leader == member_id:
        leader = choose(member.id for member in members) if members else None
    gone = frozenset({member_id})
    return group._replace(members=members, leader=leader, pending=group.pending - gone, unsynced=group.unsynced - gone)


def keeps_protocol(group: ClassicGroup, choose: Choose) -> bool:
    """Whether the members would choose the protocol that they have."""
    return _selected(group.members, choose) == group.protocol


def session_expires(
    group: ClassicGroup, member_id: MemberId, *, parameters: GroupParameters, choose: Choose = min
) -> Step | None:
    """Nothing was heard of a member for its session time (expireClassicGroupMemberHeartbeat)."""
    if member_id in group.pending:
        group = remove(group, member_id, choose)
        return complete_join(group, choose) if _may_complete(group) else Step(group)
    member = group.member(member_id)
    if member is None or (not member.new and (member.joining or member.syncing)):  # who waits for us is alive
        return None
    released: Released = ()
    if member.joining:
        released = ((member_id, JoinAnswer(Error.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER)),)
    group = remove(group, member_id, choose)
    if group.state is not GroupState.PREPARING_REBALANCE:
        step = rebalance(group, parameters, choose)
    else:
        step = complete_join(group, choose) if _may_complete(group) else Step(group)
    return Step(step.group, released + step.released)


def join_time_passes(group: ClassicGroup, *, choose: Choose = min) -> Step | None:
    """The rebalance has been prepared for as long as any member allows, or the first one for its delay."""
    return complete_join(group, choose) if group.state is GroupState.PREPARING_REBALANCE else None


def sync_time_passes(group: ClassicGroup, *, parameters: GroupParameters, choose: Choose = min) -> Step | None:
    """Members that did not ask for their assignment in time are out (expirePendingSync, KIP-559)."""
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.unsynced:
        return None
    for member_id in sorted(group.unsynced):
        group = remove(group, member_id, choose)
    return prepare(group, parameters, choose)


def _may_complete(group: ClassicGroup) -> bool:
    """When a member is gone nobody waits for more to come, not even in the first rebalance."""
    return group.state is GroupState.PREPARING_REBALANCE and group.all_joined()


def _joined_leader(group: ClassicGroup, choose: Choose) -> MemberId | None:
    """The leader if it has joined, or else one that has (ClassicGroup.maybeElectNewJoinedLeader)."""
    joining = tuple(member.id for member in group.members if member.joining)
    if group.leader in joining:
        return group.leader
    return choose(joining) if joining else None


def _selected(members: tuple[ClassicMember, ...], choose: Choose) -> str | None:
    """The protocol with the most votes of those that all know (ClassicGroup.selectProtocol)."""
    if not members:
        return None
    known = [{protocol.name for protocol in member.protocols} for member in members]
    common = known[0].intersection(*known)
    votes = Counter(
        next(protocol.name for protocol in member.protocols if protocol.name in common) for member in members
    )
    most = max(votes.values())
    return choose(name for name, count in votes.items() if count == most)
