"""Heartbeats of the consumer protocol, request by request."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.groups.consumer import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerGroupHeartbeat,
    ConsumerGroupState,
    HeartbeatAnswer,
    heartbeat,
    rebalance_time_passes,
    session_expires,
)
from lockstep_model.groups.parameters import GroupParameters, group_parameters_for
from lockstep_model.groups.reconciliation import MemberState, partitions
from tests.reference_model.groups.consumer_groups import (
    BOTH,
    KAFKA,
    NONE,
    P0,
    P1,
    beats,
    counted_from_0,
    group_of_a,
    group_of_two,
    joins,
    member_of,
    told_to_revoke_twice,
)


def test_a_member_joins_and_is_given_what_is_free() -> None:
    group, answer = joins(ConsumerGroup(), "a", {"a": BOTH})
    assert answer == HeartbeatAnswer(Error.NONE, "a", 1, BOTH)
    assert (group.epoch, group.target_epoch, group.state()) == (1, 1, ConsumerGroupState.STABLE)
    assert group.partition_epoch(0) == 1
    assert group.partition_epoch(7) == -1


@pytest.mark.parametrize(("version", "waiting", "epoch"), [("4.1.2", 0, 1), ("4.3.1", 1, 2)])
def test_with_which_epoch_a_group_begins(version: str, waiting: int, epoch: int) -> None:
    parameters = group_parameters_for(version)
    assert joins(ConsumerGroup(), "a", {"a": BOTH}, parameters=parameters)[1].epoch == epoch
    request = ConsumerGroupHeartbeat("a", JOIN, None, NONE, "t")
    assert heartbeat(ConsumerGroup(), request, assignor=None, parameters=parameters)[1].epoch == waiting


def test_partitions_move_by_revocation_release_and_assignment() -> None:
    group, answer = joins(group_of_a(), "b", {"a": P0, "b": P1})
    assert answer == HeartbeatAnswer(Error.NONE, "b", 2, NONE)
    assert member_of(group, "b").state is MemberState.UNRELEASED_PARTITIONS
    assert group.state() is ConsumerGroupState.RECONCILING

    group, answer = beats(group, "a", 1, owned=BOTH)
    assert answer == HeartbeatAnswer(Error.NONE, "a", 1, P0)  # told to revoke, still in epoch 1
    assert member_of(group, "a").state is MemberState.UNREVOKED_PARTITIONS
    assert beats(group, "b", 2)[1] == HeartbeatAnswer(Error.NONE, "b", 2, None)  # nothing for b yet
    assert beats(group, "a", 1)[0] == group  # says nothing of what it owns: it may own everything

    group, answer = beats(group, "a", 1, owned=P0)
    assert answer == HeartbeatAnswer(Error.NONE, "a", 2, None)
    group, answer = beats(group, "b", 2)
    assert answer == HeartbeatAnswer(Error.NONE, "b", 2, P1)
    assert group.state() is ConsumerGroupState.STABLE


def test_who_never_owned_a_partition_need_not_revoke_it() -> None:
    group, answer = beats(group_of_two(), "a", 1, owned=P0)
    assert answer == HeartbeatAnswer(Error.NONE, "a", 2, P0)
    assert group.partition_epoch(1) == -1


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (2, P0, Error.NONE),
        (3, P0, Error.FENCED_MEMBER_EPOCH),
        (1, P0, Error.NONE),  # the answer that raised the epoch may be lost
        (1, NONE, Error.NONE),
        (1, BOTH, Error.FENCED_MEMBER_EPOCH),
        (1, None, Error.FENCED_MEMBER_EPOCH),
    ],
)
def test_which_epochs_are_heard(epoch: int, owned: frozenset[int] | None, error: Error) -> None:
    group = beats(group_of_two(), "a", 1, owned=P0)[0]
    after, answer = beats(group, "a", epoch, owned=owned)
    assert answer.error is error
    assert after == group


def test_a_join_whose_answer_was_lost_is_repeated_but_a_later_one_with_the_same_id_is_fenced() -> None:
    group = group_of_a()
    assert joins(group, "a", {}) == (group, HeartbeatAnswer(Error.NONE, "a", 1, BOTH))
    later = beats(group_of_two(), "a", 1, owned=P0)[0]
    assert joins(later, "a", {})[1].error is Error.FENCED_MEMBER_EPOCH


def test_a_full_heartbeat_is_answered_in_full() -> None:
    group = group_of_a()
    assert beats(group, "a", 1, owned=BOTH)[1].assignment is None
    assert beats(group, "a", 1, owned=BOTH, subscription="t")[1].assignment == BOTH


def test_another_subscription_calls_for_another_target() -> None:
    group, _ = beats(group_of_a(), "a", 1, subscription="u", targets={"a": P0})
    assert (group.epoch, group.target_epoch, group.target_of("a")) == (2, 2, P0)


def test_a_target_may_come_later_than_it_is_called_for() -> None:
    request = ConsumerGroupHeartbeat("b", 0, None, NONE, "t")
    group, answer = heartbeat(group_of_a(), request, assignor=None, parameters=KAFKA)
    assert (group.epoch, group.target_epoch, group.state()) == (2, 1, ConsumerGroupState.ASSIGNING)
    assert answer == HeartbeatAnswer(Error.NONE, "b", 1, NONE)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ConsumerGroupHeartbeat("b", 1), Error.UNKNOWN_MEMBER_ID),
        (ConsumerGroupHeartbeat("b", LEAVE), Error.UNKNOWN_MEMBER_ID),
        (ConsumerGroupHeartbeat("", 1), Error.INVALID_REQUEST),
        (ConsumerGroupHeartbeat("b", -3), Error.INVALID_REQUEST),
        (ConsumerGroupHeartbeat("b", 0, None, P0, "t"), Error.INVALID_REQUEST),  # who joins owns nothing
        (ConsumerGroupHeartbeat("b", 0, None, NONE, None), Error.INVALID_REQUEST),
        (ConsumerGroupHeartbeat("a", LEAVE_FOR_A_WHILE), Error.INVALID_REQUEST),  # only static members come back
        (ConsumerGroupHeartbeat("a", 1, "x"), Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_not_heard(request_: ConsumerGroupHeartbeat, error: Error) -> None:
    group = group_of_a()
    assert heartbeat(group, request_, assignor=lambda _: (), parameters=KAFKA) == (group, HeartbeatAnswer(error))


def test_nobody_can_be_in_a_group_that_does_not_exist() -> None:
    assert beats(ConsumerGroup(), "a", 1)[1].error is Error.GROUP_ID_NOT_FOUND
    assert beats(ConsumerGroup(), "a", LEAVE)[1].error is Error.GROUP_ID_NOT_FOUND


def test_a_full_group_takes_nobody_but_its_members() -> None:
    small = GroupParameters(max_size=1)
    assert joins(group_of_a(), "b", {}, parameters=small)[1].error is Error.GROUP_MAX_SIZE_REACHED
    assert beats(group_of_a(), "a", 1, parameters=small)[1].error is Error.NONE


def test_what_a_member_had_is_free_when_it_leaves_or_expires_or_does_not_revoke_in_time() -> None:
    group = group_of_two()
    told = beats(group, "a", 1, owned=BOTH)[0]
    assert rebalance_time_passes(group, "a") is None  # it has not been told to revoke anything
    for after in (beats(group, "a", LEAVE)[0], session_expires(group, "a"), rebalance_time_passes(told, "a")):
        assert after is not None
        assert after.epoch == 3
        assert beats(after, "b", 2, targets={"b": BOTH})[1] == HeartbeatAnswer(Error.NONE, "b", 3, BOTH)
        assert beats(after, "a", 1)[1].error is Error.UNKNOWN_MEMBER_ID
    assert session_expires(group, "c") is None


def test_a_static_member_that_left_for_a_while_takes_its_place_again_without_a_rebalance() -> None:
    group = joins(ConsumerGroup(), "a", {"a": BOTH}, instance="x")[0]
    assert joins(group, "b", {}, instance="x")[1].error is Error.UNRELEASED_INSTANCE_ID
    group, answer = beats(group, "a", LEAVE_FOR_A_WHILE, instance="x")
    assert answer == HeartbeatAnswer(Error.NONE, "a", LEAVE_FOR_A_WHILE)
    assert group.partition_epoch(0) != -1  # kept for it
    group, answer = joins(group, "b", {}, instance="x")
    assert answer == HeartbeatAnswer(Error.NONE, "b", 1, BOTH)
    assert group.epoch == 1
    assert beats(group, "a", 1, instance="x")[1].error is Error.FENCED_INSTANCE_ID
    assert beats(group, "a", LEAVE, instance="x")[1].error is Error.FENCED_INSTANCE_ID
    assert beats(group, "b", LEAVE, instance="x")[0].members == ()


@pytest.mark.parametrize(("version", "epoch"), [("3.9.2", 2), ("4.1.2", 2), ("4.3.1", 1)])
def test_whether_a_revocation_raises_the_epoch_when_there_is_more_to_revoke(version: str, epoch: int) -> None:
    member = member_of(told_to_revoke_twice(version), "a")
    assert (member.epoch, member.state) == (epoch, MemberState.UNREVOKED_PARTITIONS)
    assert partitions(member.revoking) == P0


@pytest.mark.parametrize(("version", "given"), [("3.9.2", P0), ("4.0.2", BOTH), ("4.3.1", BOTH)])
def test_whether_what_was_not_yet_revoked_can_be_taken_back(version: str, given: frozenset[int]) -> None:
    parameters = counted_from_0(version)
    told = beats(group_of_two(parameters), "a", 1, owned=BOTH, parameters=parameters)[0]
    alone = session_expires(told, "b")
    assert alone is not None
    answer = beats(alone, "a", 1, owned=P0, targets={"a": BOTH}, parameters=parameters)[1]
    assert answer.assignment == (None if given == P0 else given)


def test_the_old_coordinator_knows_nothing_of_the_consumer_protocol() -> None:
    request = ConsumerGroupHeartbeat("a", JOIN, owned=NONE, subscription="")
    answers = [
        heartbeat(ConsumerGroup(), request, assignor=None, parameters=parameters)[1].error
        for parameters in (group_parameters_for("3.9.2"), group_parameters_for("3.9.2", consumer_protocol=True))
    ]
    assert answers == [Error.UNSUPPORTED_VERSION, Error.NONE]
