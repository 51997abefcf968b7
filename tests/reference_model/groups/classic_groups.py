"""Classic groups to test with, and the requests that make them."""

from __future__ import annotations

from lockstep_model.errors import Error
from lockstep_model.groups.classic import ClassicResult, Heartbeat, JoinGroup, SyncGroup, heartbeat, join, sync
from lockstep_model.groups.generations import ClassicGroup, Protocol, Step, join_time_passes
from lockstep_model.groups.parameters import GroupParameters

KAFKA = GroupParameters()
NONE = frozenset[int]()
P0, P1 = frozenset({0}), frozenset({1})


def joins(
    group: ClassicGroup, member: str, instance: str | None = None, *, new: str = "new", by: str = ""
) -> ClassicResult:
    return join(group, JoinGroup(member, instance, (Protocol("range", by),)), new_id=new, parameters=KAFKA)


def beats(group: ClassicGroup, member: str, generation: int, instance: str | None = None) -> Error:
    return heartbeat(group, Heartbeat(member, generation, instance), parameters=KAFKA)


def passed(step: Step | None) -> ClassicGroup:
    assert step is not None
    return step.group


def group_of(*members: str) -> ClassicGroup:
    """A stable group in generation 1, in which the first of these leads and has everything."""
    group = ClassicGroup()
    for member in members:
        group = joins(group, "", new=member).group
        group = joins(group, member).group
    group = passed(join_time_passes(group))
    for member in reversed(members):
        group = sync(group, SyncGroup(member, 1, ((members[0], P0 | P1),))).group
    return group


def static_group() -> ClassicGroup:
    group = passed(join_time_passes(joins(ClassicGroup(), "", "x", new="a").group))
    return sync(group, SyncGroup("a", 1, (("a", P0),), "x")).group
