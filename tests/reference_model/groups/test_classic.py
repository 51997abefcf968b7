"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, request by request."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.groups import generations
from lockstep_model.groups.classic import (
    JoinGroup,
    LeaveGroup,
    SyncGroup,
    join,
    leave,
    sync,
)
from lockstep_model.groups.generations import (
    ClassicGroup,
    GroupState,
    JoinAnswer,
    Protocol,
    Step,
    SyncAnswer,
    join_time_passes,
    sync_time_passes,
)
from lockstep_model.groups.parameters import GroupParameters
from tests.reference_model.groups.classic_groups import KAFKA, P0, P1, beats, group_of, joins, passed, static_group


def test_a_new_member_is_told_an_id_first_and_joins_with_it() -> None:
    group, answer, _ = joins(ClassicGroup(), "", new="a")
    assert answer == JoinAnswer(Error.MEMBER_ID_REQUIRED, "a")
    assert group.state is GroupState.EMPTY
    assert group.pending == {"a"}
    group, answer, _ = joins(group, "a")
    assert answer is None
    assert group.state is GroupState.PREPARING_REBALANCE
    assert group.pending == frozenset()


@pytest.mark.parametrize("member", ["a", "never heard of"])
def test_an_id_that_was_not_given_out_cannot_join(member: str) -> None:
    group = joins(ClassicGroup(), "", new="b").group
    assert joins(group, member).answer == JoinAnswer(Error.UNKNOWN_MEMBER_ID, member)


def test_the_first_rebalance_waits_for_its_delay_and_later_ones_for_the_members() -> None:
    group = joins(joins(ClassicGroup(), "", new="a").group, "a").group
    step = join_time_passes(group)
    assert step == Step(passed(step), (("a", JoinAnswer(Error.NONE, "a", 1, "a", "range", ("a",))),))
    group = sync(passed(step), SyncGroup("a", 1, (("a", P0),))).group
    group = joins(joins(group, "", new="b").group, "b").group
    assert (group.state, group.generation) == (GroupState.PREPARING_REBALANCE, 1)
    group, answer, released = joins(group, "a")
    assert (group.state, group.generation) == (GroupState.COMPLETING_REBALANCE, 2)
    assert answer == JoinAnswer(Error.NONE, "a", 2, "a", "range", ("a", "b"))
    assert released == (("b", JoinAnswer(Error.NONE, "b", 2, "a", "range")),)


def test_only_the_leader_assigns_and_the_others_wait_for_it() -> None:
    group = joins(group_of("a", "b"), "a").group
    group = joins(group, "b").group
    group, answer, _ = sync(group, SyncGroup("b", 2, (("b", P0 | P1),)))
    assert answer is None
    group, answer, released = sync(group, SyncGroup("a", 2, (("a", P0), ("b", P1))))
    assert group.state is GroupState.STABLE
    assert answer == SyncAnswer(Error.NONE, P0)
    assert released == (("b", SyncAnswer(Error.NONE, P1)),)
    assert sync(group, SyncGroup("b", 2)).answer == SyncAnswer(Error.NONE, P1)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (SyncGroup("a", 1), Error.NONE),
        (SyncGroup("c", 1), Error.UNKNOWN_MEMBER_ID),
        (SyncGroup("a", 0), Error.ILLEGAL_GENERATION),
        (SyncGroup("a", 2), Error.ILLEGAL_GENERATION),
        (SyncGroup("a", 1, protocol="range"), Error.NONE),
        (SyncGroup("a", 1, protocol="sticky"), Error.INCONSISTENT_GROUP_PROTOCOL),
        (SyncGroup("a", 1, instance="x"), Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_given_an_assignment(request_: SyncGroup, error: Error) -> None:
    answer = sync(group_of("a", "b"), request_).answer
    assert isinstance(answer, SyncAnswer)
    assert answer.error is error


def test_a_heartbeat_tells_of_a_rebalance_of_an_old_generation_and_of_members_that_are_out() -> None:
    group = group_of("a", "b")
    assert beats(group, "a", 1) is Error.NONE
    assert beats(group, "a", 0) is Error.ILLEGAL_GENERATION
    assert beats(group, "c", 1) is Error.UNKNOWN_MEMBER_ID
    preparing = joins(group, "a").group
    assert beats(preparing, "b", 1) is Error.REBALANCE_IN_PROGRESS
    completing = joins(preparing, "b").group
    assert beats(completing, "b", 2) is Error.NONE
    assert sync(preparing, SyncGroup("b", 1)).answer == SyncAnswer(Error.REBALANCE_IN_PROGRESS)


def test_a_follower_that_joins_again_unchanged_hears_what_it_missed_and_a_leader_starts_a_rebalance() -> None:
    group = group_of("a", "b")
    follower = joins(group, "b")
    assert (follower.group, follower.answer) == (group, JoinAnswer(Error.NONE, "b", 1, "a", "range"))
    assert joins(group, "b", by="another subscription").group.state is GroupState.PREPARING_REBALANCE
    assert joins(group, "a").group.state is GroupState.PREPARING_REBALANCE


def test_who_does_not_join_in_time_is_out_and_another_leads() -> None:
    group = joins(group_of("a", "b"), "b", by="another subscription").group
    group = passed(join_time_passes(group))
    assert (group.ids(), group.leader, group.generation) == (("b",), "b", 2)
    assert beats(group, "a", 1) is Error.UNKNOWN_MEMBER_ID


def test_who_does_not_sync_in_time_is_out() -> None:
    group = joins(joins(group_of("a", "b"), "a").group, "b").group
    assert sync_time_passes(group_of("a", "b"), parameters=KAFKA) is None
    group = sync(group, SyncGroup("a", 2, (("a", P0),))).group
    step = sync_time_passes(group, parameters=KAFKA)
    assert passed(step).ids() == ("a",)
    assert passed(step).state is GroupState.PREPARING_REBALANCE


def test_a_session_expires_but_not_of_a_member_that_waits() -> None:
    group = group_of("a", "b")
    waiting = joins(group, "a").group
    assert generations.session_expires(waiting, "a", parameters=KAFKA) is None
    step = generations.session_expires(waiting, "b", parameters=KAFKA)
    assert step is not None
    assert step.released == (("a", JoinAnswer(Error.NONE, "a", 2, "a", "range", ("a",))),)


def test_a_new_member_can_expire_while_it_waits() -> None:
    group = joins(joins(ClassicGroup(), "", new="a").group, "a").group
    step = generations.session_expires(group, "a", parameters=KAFKA)
    assert step == Step(passed(step), (("a", JoinAnswer(Error.UNKNOWN_MEMBER_ID, "")),))
    assert (passed(step).state, passed(step).generation) == (GroupState.EMPTY, 1)


def test_members_leave_each_with_its_error() -> None:
    group, errors, _ = leave(group_of("a", "b"), LeaveGroup((("b", None), ("c", None))), parameters=KAFKA)
    assert errors == (Error.NONE, Error.UNKNOWN_MEMBER_ID)
    assert (group.ids(), group.state) == (("a",), GroupState.PREPARING_REBALANCE)
    group, errors, _ = leave(group, LeaveGroup((("a", None),)), parameters=KAFKA)
    assert (errors, group.state, group.generation) == ((Error.NONE,), GroupState.EMPTY, 2)


@pytest.mark.parametrize(
    ("new_coordinator", "state"), [(True, GroupState.PREPARING_REBALANCE), (False, GroupState.STABLE)]
)
def test_who_was_only_told_an_id_leaves_without_a_rebalance_of_the_old_coordinator(
    new_coordinator: bool, state: GroupState
) -> None:
    told = joins(group_of("a"), "", new="b").group
    assert "b" in told.pending
    group, errors, _ = leave(
        told, LeaveGroup((("b", None),)), parameters=GroupParameters(new_coordinator=new_coordinator)
    )
    assert (errors, group.state, group.pending) == ((Error.NONE,), state, frozenset())


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    group, errors, _ = leave(static_group(), LeaveGroup((("", "x"), ("", "y"))), parameters=KAFKA)
    assert errors == (Error.NONE, Error.UNKNOWN_MEMBER_ID)
    assert group.members == ()


def test_a_static_member_comes_back_with_another_id_and_without_a_rebalance() -> None:
    outcome = joins(static_group(), "", "x", new="b")
    assert outcome.group.state is GroupState.STABLE
    assert outcome.answer == JoinAnswer(Error.NONE, "b", 1, "b", "range", ("b",), skip_assignment=True)
    assert sync(outcome.group, SyncGroup("b", 1, (), "x")).answer == SyncAnswer(Error.NONE, P0)


def test_who_is_replaced_is_fenced_in_all_that_it_asks() -> None:
    group = joins(static_group(), "", "x", new="b").group
    assert beats(group, "a", 1, "x") is Error.FENCED_INSTANCE_ID
    assert beats(group, "a", 1) is Error.UNKNOWN_MEMBER_ID
    assert beats(group, "b", 1, "x") is Error.NONE
    assert joins(group, "a", "x").answer == JoinAnswer(Error.FENCED_INSTANCE_ID, "a")
    assert sync(group, SyncGroup("a", 1, (), "x")).answer == SyncAnswer(Error.FENCED_INSTANCE_ID)
    assert leave(group, LeaveGroup((("a", "x"),)), parameters=KAFKA)[1] == (Error.FENCED_INSTANCE_ID,)


def test_who_waits_and_is_replaced_hears_at_once() -> None:
    waiting = joins(ClassicGroup(), "", "x", new="a").group
    assert joins(waiting, "", "x", new="b").released == (("a", JoinAnswer(Error.FENCED_INSTANCE_ID, "a")),)


def test_a_static_member_keeps_its_place_when_it_does_not_join_in_time() -> None:
    group = joins(joins(static_group(), "", new="b").group, "b").group
    group = passed(join_time_passes(group))
    assert (group.ids(), group.leader) == (("a", "b"), "b")
    alone = joins(static_group(), "a", "x", by="another subscription").group
    assert alone.generation == 2


def test_a_group_of_absent_static_members_waits_for_their_sessions() -> None:
    group, _, _ = leave(joins(static_group(), "", new="b").group, LeaveGroup((("b", None),)), parameters=KAFKA)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert passed(join_time_passes(group)) == group
    assert passed(generations.session_expires(group, "a", parameters=KAFKA)).state is GroupState.EMPTY


def test_members_need_a_protocol_that_all_know() -> None:
    group = group_of("a")
    other = JoinGroup("", None, (Protocol("sticky"),))
    assert join(group, other, new_id="b", parameters=KAFKA).answer == JoinAnswer(Error.INCONSISTENT_GROUP_PROTOCOL, "")
    both = JoinGroup("", None, (Protocol("sticky"), Protocol("range")))
    assert join(group, both, new_id="b", parameters=KAFKA).answer == JoinAnswer(Error.MEMBER_ID_REQUIRED, "b")
    connect = JoinGroup("", None, (Protocol("range"),), "connect")
    assert join(group, connect, new_id="b", parameters=KAFKA).answer == JoinAnswer(
        Error.INCONSISTENT_GROUP_PROTOCOL, ""
    )


def test_the_protocol_with_most_votes_is_chosen_of_those_that_all_know() -> None:
    group = ClassicGroup()
    wishes = {"a": ("sticky", "range"), "b": ("range", "sticky"), "c": ("own", "sticky", "range")}
    for member, names in wishes.items():
        group = joins(group, "", new=member).group
        request = JoinGroup(member, None, tuple(Protocol(name) for name in names))
        group = join(group, request, new_id="", parameters=KAFKA).group
    assert passed(join_time_passes(group)).protocol == "sticky"


def test_a_full_group_takes_nobody_but_its_members() -> None:
    group = group_of("a", "b")
    small = GroupParameters(max_size=2)
    full = JoinAnswer(Error.GROUP_MAX_SIZE_REACHED, "")
    assert join(group, JoinGroup(""), new_id="c", parameters=small).answer == full
    assert join(group, JoinGroup("b"), new_id="", parameters=small).answer == JoinAnswer(
        Error.NONE, "b", 1, "a", "range"
    )


def test_a_rebalance_answers_who_waits_for_an_assignment() -> None:
    group = joins(joins(group_of("a", "b"), "a").group, "b").group
    group = sync(group, SyncGroup("b", 2)).group
    step = generations.session_expires(group, "a", parameters=KAFKA)
    assert step is not None
    assert step.released == (("b", SyncAnswer(Error.REBALANCE_IN_PROGRESS)),)


def test_whoever_steps_beside_a_cluster_says_whom_it_chose_to_lead() -> None:
    group = group_of("a", "b", "c")
    left = leave(group, LeaveGroup((("a", None),)), parameters=KAFKA, choose=max)[0]
    assert left.leader == "c"
    assert leave(group, LeaveGroup((("a", None),)), parameters=KAFKA)[0].leader == "b"
