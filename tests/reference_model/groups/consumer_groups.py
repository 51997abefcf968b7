"""Groups of the consumer protocol to test with, and the heartbeats that make them."""

from __future__ import annotations

from dataclasses import replace

from lockstep_model.groups.consumer import ConsumerGroup, ConsumerGroupHeartbeat, HeartbeatAnswer, heartbeat
from lockstep_model.groups.parameters import GroupParameters, group_parameters_for
from lockstep_model.groups.reconciliation import ConsumerMember

NONE = frozenset[int]()
P0, P1 = frozenset({0}), frozenset({1})
BOTH = P0 | P1


def counted_from_0(version: str) -> GroupParameters:
    """A version with the consumer protocol, whose groups begin with epoch 0 as up to 4.1: epochs are the same then."""
    return replace(group_parameters_for(version, consumer_protocol=True), initial_epoch=0)


KAFKA = counted_from_0("4.3.1")


def beats(
    group: ConsumerGroup,
    member: str,
    epoch: int,
    *,
    owned: frozenset[int] | None = None,
    targets: dict[str, frozenset[int]] | None = None,
    instance: str | None = None,
    subscription: str | None = None,
    parameters: GroupParameters = KAFKA,
) -> tuple[ConsumerGroup, HeartbeatAnswer]:
    """A heartbeat, where a new target would be this one."""
    request = ConsumerGroupHeartbeat(member, epoch, instance, owned, subscription)
    target = tuple((targets or {}).items())
    return heartbeat(group, request, assignor=lambda _: target, parameters=parameters)


def joins(
    group: ConsumerGroup,
    member: str,
    targets: dict[str, frozenset[int]],
    *,
    instance: str | None = None,
    parameters: GroupParameters = KAFKA,
) -> tuple[ConsumerGroup, HeartbeatAnswer]:
    return beats(
        group, member, 0, owned=NONE, targets=targets, instance=instance, subscription="t", parameters=parameters
    )


def member_of(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.member(member_id)
    assert member is not None
    return member


def group_of_a() -> ConsumerGroup:
    """A is alone in epoch 1 and owns both partitions."""
    return joins(ConsumerGroup(), "a", {"a": BOTH})[0]


def group_of_two(parameters: GroupParameters = KAFKA) -> ConsumerGroup:
    """B has joined, and shall have 1, which A has not revoked yet."""
    return joins(group_of_a(), "b", {"a": P0, "b": P1}, parameters=parameters)[0]


def told_to_revoke_twice(version: str) -> ConsumerGroup:
    """A has revoked 1, and before it said so was to revoke 0 too."""
    parameters = counted_from_0(version)
    group = beats(group_of_two(parameters), "a", 1, owned=BOTH, parameters=parameters)[0]
    group = joins(group, "c", {"a": NONE, "b": P0, "c": P1}, parameters=parameters)[0]
    return beats(group, "a", 1, owned=P0, parameters=parameters)[0]
