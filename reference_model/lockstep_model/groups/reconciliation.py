"""Reconciliation of one member of the consumer protocol towards its target (CurrentAssignmentBuilder).

assigned, not in the target -> to be revoked: the member epoch stays until the member no longer owns it

in the target, not assigned -> assigned once no other member has it, with the target's epoch
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.groups.generations import MemberId, Partition, Partitions
from lockstep_model.groups.mutants import RELEASE_BEFORE_ASSIGN, REVOKE_BEFORE_ADVANCE
from lockstep_model.groups.parameters import GroupParameters


class MemberState(StrEnum):
    """Reconciliation state of a member (MemberState)."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked-partitions"
    UNRELEASED_PARTITIONS = "unreleased-partitions"


AssignedPartitions: TypeAlias = frozenset[tuple[Partition, int]]
"""Partitions, each with the member epoch in which it was assigned (KIP-1251)."""


class ConsumerMember(NamedTuple):
    """A member as the coordinator keeps it (ConsumerGroupMember)."""

    id: MemberId
    instance: str | None = None
    subscription: str = ""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: AssignedPartitions = frozenset()
    revoking: AssignedPartitions = frozenset()
    """Partitions to revoke that the member may still own (partitionsPendingRevocation)."""

    def holds(self, partition: Partition) -> bool:
        """Whether no other member may be assigned this partition."""
        return any(held == partition for held, _ in self.assigned | self.revoking)


def partitions(assigned: AssignedPartitions) -> Partitions:
    return frozenset(partition for partition, _ in assigned)


def reconcile(
    member: ConsumerMember,
    *,
    target: Partitions,
    target_epoch: int,
    owned: Partitions | None,
    free: Callable[[Partition], bool],
    parameters: GroupParameters,
) -> ConsumerMember:
    """One reconciliation step; `owned` is None if the heartbeat has no topicPartitions.

    CurrentAssignmentBuilder.build.
    """
    epoch = member.epoch
    if member.state is MemberState.STABLE and epoch == target_epoch:
        return member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _must_revoke(member.revoking, owned, parameters):
            return member
        if parameters.epoch_per_revocation:
            epoch += 1
    assigned = frozenset(held for held in member.assigned if held[0] in target)
    revoking = member.assigned - assigned
    if _must_revoke(revoking, owned, parameters):
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    wanted = target - partitions(assigned)
    given = frozenset(
        partition
        for partition in wanted
        if free(partition)
        or (parameters.takes_back and partition in partitions(member.revoking))
        or not parameters.guards(RELEASE_BEFORE_ASSIGN)
    )
    state = MemberState.STABLE if given == wanted else MemberState.UNRELEASED_PARTITIONS
    return _moved(member, target_epoch, state, assigned | {(partition, target_epoch) for partition in given})


def _must_revoke(revoking: AssignedPartitions, owned: Partitions | None, parameters: GroupParameters) -> bool:
    """Whether the member may still own some of these: it does until a heartbeat without them.

    ownsRevokedPartitions.
    """
    if not revoking or not parameters.guards(REVOKE_BEFORE_ADVANCE):
        return False
    return owned is None or bool(owned & partitions(revoking))


def _moved(
    member: ConsumerMember,
    epoch: int,
    state: MemberState,
    assigned: AssignedPartitions,
    revoking: AssignedPartitions = frozenset(),
) -> ConsumerMember:
    return member._replace(epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking)
