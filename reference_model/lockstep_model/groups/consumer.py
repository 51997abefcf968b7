"""What a coordinator answers to the heartbeats of the consumer protocol (KIP-848).

The group's epoch rises with everything that calls for another assignment; a target is computed for an epoch of the
group; and every member moves towards its part of the target on its own: it first lets go of what is not its any more,
and says so, then its epoch rises to the target's, and it is given what others have let go of.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.groups.generations import NOTHING, UNKNOWN_MEMBER, MemberId, Partition, Partitions
from lockstep_model.groups.mutants import EPOCH_OF_HEARTBEAT, INSTANCE_RELEASED
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.groups.reconciliation import ConsumerMember, MemberState, partitions, reconcile

JOIN = 0
LEAVE = -1
LEAVE_FOR_A_WHILE = -2
"""The member epochs with which a member joins, leaves, and, if it is a static one, leaves to come back."""

Target: TypeAlias = tuple[tuple[MemberId, Partitions], ...]
Assignor: TypeAlias = Callable[[tuple[ConsumerMember, ...]], Target]
"""Which partitions each of these members shall have; none of them twice."""


class ConsumerGroupState(StrEnum):
    """ConsumerGroup.ConsumerGroupState"""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup(NamedTuple):
    """What the coordinator knows of a group."""

    epoch: int = 0
    """0 is a group that does not exist yet."""
    target_epoch: int = 0
    """For which epoch of the group the target was computed (assignmentEpoch)."""
    target: Target = ()
    members: tuple[ConsumerMember, ...] = ()
    """In the order of their ids."""

    def member(self, member_id: MemberId) -> ConsumerMember | None:
        return next((member for member in self.members if member.id == member_id), None)

    def of_instance(self, instance: str | None) -> ConsumerMember | None:
        return next((member for member in self.members if instance is not None and member.instance == instance), None)

    def target_of(self, member_id: MemberId) -> Partitions:
        return dict(self.target).get(member_id, NOTHING)

    def partition_epoch(self, partition: Partition) -> int:
        """The epoch of the member that has it, even if it shall revoke it; -1 if it is free (currentPartitionEpoch)."""
        return next((member.epoch for member in self.members if member.holds(partition)), -1)

    def state(self) -> ConsumerGroupState:
        """ConsumerGroup.maybeUpdateGroupState"""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.state is MemberState.STABLE and member.epoch == self.target_epoch for member in self.members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def keep(self, member: ConsumerMember) -> ConsumerGroup:
        """The group with this member, in place of the one with its id."""
        others = (other for other in self.members if other.id != member.id)
        return self._replace(members=tuple(sorted((*others, member), key=lambda one: one.id)))


class ConsumerGroupHeartbeat(NamedTuple):
    """A member gives only what has changed since it last said it, and all of it when it may not have been heard."""

    member: MemberId
    """Made up by the member; before 4.0 by the coordinator, and then this is the id that it answers with (KIP-1082)."""
    epoch: int
    instance: str | None = None
    owned: Partitions | None = None
    subscription: str | None = None

    def full(self) -> bool:
        return self.epoch == JOIN or (self.owned is not None and self.subscription is not None)


class HeartbeatAnswer(NamedTuple):
    """ConsumerGroupHeartbeatResponse"""

    error: Error
    member: MemberId = UNKNOWN_MEMBER
    epoch: int = 0
    assignment: Partitions | None = None
    """None if it is as before."""


def heartbeat(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeat,
    *,
    assignor: Assignor | None,
    parameters: GroupParameters,
) -> tuple[ConsumerGroup, HeartbeatAnswer]:
    """GroupMetadataManager.consumerGroupHeartbeat; without an assignor the target stays, as it may since 4.3
    (group.consumer.min.assignment.interval.ms)."""
    error = _refused(group, request, parameters)
    if error is not Error.NONE:
        return group, HeartbeatAnswer(error)
    if request.epoch in (LEAVE, LEAVE_FOR_A_WHILE):
        return _leave(group, request), HeartbeatAnswer(Error.NONE, request.member, request.epoch)
    first = parameters.initial_epoch
    group = group._replace(epoch=max(group.epoch, first), target_epoch=max(group.target_epoch, first))
    group, before = _member_for(group, request)
    group = _subscribe(group, before, request)
    if assignor is not None:
        group = assign(group, assignor)
    current = group.member(request.member) or before
    after = reconcile(
        current,
        target=group.target_of(request.member),
        target_epoch=group.target_epoch,
        owned=request.owned,
        free=lambda partition: group.partition_epoch(partition) == -1,
        parameters=parameters,
    )
    changed = partitions(after.assigned) != partitions(before.assigned)
    assignment = partitions(after.assigned) if changed or request.full() else None
    return group.keep(after), HeartbeatAnswer(Error.NONE, after.id, after.epoch, assignment)


def assign(group: ConsumerGroup, assignor: Assignor) -> ConsumerGroup:
    """Compute the target of this epoch, unless it is computed (updateTargetAssignment)."""
    if group.epoch == group.target_epoch:
        return group
    return group._replace(target=tuple(sorted(assignor(group.members))), target_epoch=group.epoch)


def session_expires(group: ConsumerGroup, member_id: MemberId) -> ConsumerGroup | None:
    """Nothing was heard of a member for group.consumer.session.timeout.ms, so it is out, whether it is alive or not."""
    return _without(group, member_id) if group.member(member_id) else None


def rebalance_time_passes(group: ConsumerGroup, member_id: MemberId) -> ConsumerGroup | None:
    """A member has not revoked in time what it was told to (scheduleConsumerGroupRebalanceTimeout)."""
    member = group.member(member_id)
    if member is None or member.state is not MemberState.UNREVOKED_PARTITIONS:
        return None
    return _without(group, member_id)


def _refused(group: ConsumerGroup, request: ConsumerGroupHeartbeat, parameters: GroupParameters) -> Error:
    """Why the coordinator does nothing for this request."""
    if not parameters.new_coordinator:  # KafkaApis.handleConsumerGroupHeartbeat
        return Error.UNSUPPORTED_VERSION
    if _invalid(request):
        return Error.INVALID_REQUEST
    if group.epoch == 0 and request.epoch != JOIN:
        return Error.GROUP_ID_NOT_FOUND
    member = group.member(request.member)
    if request.epoch >= JOIN and member is None and len(group.members) >= parameters.max_size:
        return Error.GROUP_MAX_SIZE_REACHED
    if request.instance is not None:
        return _refused_instance(group, request, parameters)
    if member is None:
        return Error.NONE if request.epoch == JOIN else Error.UNKNOWN_MEMBER_ID
    return _refused_epoch(member, request, parameters)


def _invalid(request: ConsumerGroupHeartbeat) -> bool:
    """GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid"""
    if request.member == UNKNOWN_MEMBER or request.epoch < LEAVE_FOR_A_WHILE:  # members make up their ids (KIP-1082)
        return True
    if request.epoch == JOIN:  # who joins has nothing and says all
        return request.owned != NOTHING or request.subscription is None
    return request.epoch == LEAVE_FOR_A_WHILE and request.instance is None


def _refused_instance(group: ConsumerGroup, request: ConsumerGroupHeartbeat, parameters: GroupParameters) -> Error:
    """GroupMetadataManager.getOrMaybeSubscribeStaticConsumerGroupMember and consumerGroupLeave"""
    current = group.of_instance(request.instance)
    if request.epoch == JOIN:
        taken = current is not None and current.epoch != LEAVE_FOR_A_WHILE
        return Error.UNRELEASED_INSTANCE_ID if taken and parameters.guards(INSTANCE_RELEASED) else Error.NONE
    if current is None:
        return Error.UNKNOWN_MEMBER_ID
    if current.id != request.member:
        return Error.FENCED_INSTANCE_ID
    return _refused_epoch(current, request, parameters)


def _refused_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeat, parameters: GroupParameters) -> Error:
    """GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid; leaving is open to any epoch."""
    if request.epoch in (member.epoch, LEAVE, LEAVE_FOR_A_WHILE) or not parameters.guards(EPOCH_OF_HEARTBEAT):
        return Error.NONE
    # It may not have heard that its epoch has risen; what it owns must then be what it would own if it had.
    unheard = request.epoch == member.previous_epoch and request.epoch < member.epoch
    if unheard and request.owned is not None and request.owned <= partitions(member.assigned):
        return Error.NONE
    return Error.FENCED_MEMBER_EPOCH


def _member_for(group: ConsumerGroup, request: ConsumerGroupHeartbeat) -> tuple[ConsumerGroup, ConsumerMember]:
    """Who sends this: a member, a new one, or a static one that is back under another id (replaceMember)."""
    member = group.member(request.member)
    left = group.of_instance(request.instance) if request.epoch == JOIN else None
    if left is None:
        return group, member or ConsumerMember(request.member, request.instance)
    back = left._replace(id=request.member, epoch=0, previous_epoch=0)
    target = tuple(sorted((back.id if one == left.id else one, its) for one, its in group.target))
    others = tuple(other for other in group.members if other.id != left.id)
    return group._replace(members=others, target=target).keep(back), back


def _subscribe(group: ConsumerGroup, member: ConsumerMember, request: ConsumerGroupHeartbeat) -> ConsumerGroup:
    """A new member or a new subscription calls for another assignment (hasMemberSubscriptionChanged)."""
    subscription = member.subscription if request.subscription is None else request.subscription
    if group.member(member.id) and subscription == member.subscription:
        return group
    return group.keep(member._replace(subscription=subscription))._replace(epoch=group.epoch + 1)


def _leave(group: ConsumerGroup, request: ConsumerGroupHeartbeat) -> ConsumerGroup:
    """GroupMetadataManager.consumerGroupLeave: a static member that will be back keeps its place and its partitions."""
    member = group.member(request.member)
    if member is None or request.epoch == LEAVE:
        return _without(group, request.member)
    # It has let go of all; what it keeps counts from the epoch 0 with which it will join (KIP-1251).
    kept = frozenset((partition, 0) for partition, _ in member.assigned)
    return group.keep(member._replace(epoch=LEAVE_FOR_A_WHILE, assigned=kept, revoking=frozenset()))


def _without(group: ConsumerGroup, member_id: MemberId) -> ConsumerGroup:
    """GroupMetadataManager.consumerGroupFenceMember: all that it had is free, and others shall have it."""
    members = tuple(member for member in group.members if member.id != member_id)
    target = tuple(entry for entry in group.target if entry[0] != member_id)
    return group._replace(epoch=group.epoch + 1, target=target, members=members)
