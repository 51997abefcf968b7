"""Who may commit offsets, who may fetch them, and when those of transactions count."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.groups.consumer import LEAVE_FOR_A_WHILE, ConsumerGroup
from lockstep_model.groups.generations import ClassicGroup
from lockstep_model.groups.offsets import (
    FetchedOffset,
    Group,
    OffsetCommit,
    OffsetFetch,
    Offsets,
    commit,
    end_transaction,
    fetch,
)
from lockstep_model.groups.parameters import group_parameters_for
from tests.reference_model.groups import consumer_groups
from tests.reference_model.groups.classic_groups import group_of, joins, static_group
from tests.reference_model.groups.consumer_groups import (
    BOTH,
    P0,
    beats,
    counted_from_0,
    group_of_a,
    group_of_two,
    told_to_revoke_twice,
)

KAFKA = counted_from_0("4.3.1")
NOTHING_YET = Offsets()
EMPTY, STABLE = ClassicGroup(), group_of("a", "b")
PREPARING = joins(STABLE, "a").group
COMPLETING = joins(PREPARING, "b").group


def by(
    member: str = "",
    generation: int = -1,
    *,
    partition: int = 0,
    instance: str | None = None,
    producer: int | None = None,
    version: int = 9,
) -> OffsetCommit:
    return OffsetCommit(((partition, 100),), member, generation, instance, producer, version)


def commits(group: Group | None, request: OffsetCommit, version: str = "4.3.1") -> Error:
    result = commit(group, Offsets(), request, parameters=group_parameters_for(version))
    taken = result.offsets != Offsets()
    assert taken == (result.error is Error.NONE)
    return result.error


@pytest.mark.parametrize(
    ("group", "member", "generation", "error"),
    [
        (STABLE, "a", 1, Error.NONE),
        (STABLE, "a", 0, Error.ILLEGAL_GENERATION),
        (STABLE, "a", 2, Error.ILLEGAL_GENERATION),
        (STABLE, "c", 1, Error.UNKNOWN_MEMBER_ID),
        (PREPARING, "b", 1, Error.NONE),  # the last word of the generation that ends
        (COMPLETING, "b", 2, Error.REBALANCE_IN_PROGRESS),
        (COMPLETING, "b", 1, Error.ILLEGAL_GENERATION),
        (EMPTY, "a", 0, Error.UNKNOWN_MEMBER_ID),
        (EMPTY, "", -1, Error.NONE),
        (STABLE, "", -1, Error.UNKNOWN_MEMBER_ID),
        (PREPARING, "", -1, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_in_a_classic_group(group: ClassicGroup, member: str, generation: int, error: Error) -> None:
    assert commits(group, by(member, generation)) is error


def test_a_static_member_that_was_replaced_cannot_commit_in_the_same_generation() -> None:
    replaced = joins(static_group(), "", "x", new="b").group
    assert commits(replaced, by("b", 1, instance="x")) is Error.NONE
    assert commits(replaced, by("a", 1, instance="x")) is Error.FENCED_INSTANCE_ID
    assert commits(replaced, by("a", 1)) is Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (by(), Error.NONE),
        (by("a", 0), Error.GROUP_ID_NOT_FOUND),
        (by("a", 0, version=8), Error.ILLEGAL_GENERATION),
        (by("a", 0, producer=7), Error.ILLEGAL_GENERATION),
    ],
)
def test_commits_to_a_group_that_does_not_exist(request_: OffsetCommit, error: Error) -> None:
    assert commits(None, request_) is error


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (by(), Error.NONE),
        (by("a", 0), Error.ILLEGAL_GENERATION),
        (by("a", 0, version=8), Error.ILLEGAL_GENERATION),
        (by("a", 0, producer=7), Error.UNKNOWN_MEMBER_ID),
        (by("a", -1, producer=7), Error.NONE),
    ],
)
def test_commits_to_a_group_that_the_old_coordinator_does_not_know(request_: OffsetCommit, error: Error) -> None:
    """It is the default in 3.9; with the consumer protocol enabled 3.9 has the new one, too."""
    assert commits(None, request_, "3.9.2") is error
    new = group_parameters_for("3.9.2", consumer_protocol=True)
    assert commit(None, Offsets(), by("a", 0), parameters=new).error is Error.GROUP_ID_NOT_FOUND


def test_a_simple_commit_makes_a_group() -> None:
    assert commit(None, Offsets(), by(), parameters=KAFKA).group == ClassicGroup()


@pytest.mark.parametrize(
    ("group", "request_", "error"),
    [
        (STABLE, by(producer=7), Error.NONE),  # a producer may not know for whom it commits
        (STABLE, by("a", 0, producer=7), Error.ILLEGAL_GENERATION),
        (STABLE, by("c", 1, producer=7), Error.UNKNOWN_MEMBER_ID),
        (COMPLETING, by("b", 2, producer=7), Error.NONE),
        (group_of_a(), by("a", 1, producer=7), Error.NONE),
        (group_of_a(), by("a", 7, producer=7), Error.ILLEGAL_GENERATION),
        (group_of_a(), by(producer=7), Error.NONE),
    ],
)
def test_commits_of_producers(group: Group, request_: OffsetCommit, error: Error) -> None:
    assert commits(group, request_) is error


def test_before_4_0_a_producer_had_to_name_a_member_of_a_consumer_group() -> None:
    assert commits(group_of_a(), by(producer=7), "3.9.2") is Error.UNKNOWN_MEMBER_ID


def in_epoch_2() -> ConsumerGroup:
    """A keeps 0 since epoch 1, and has let go of 1; it is in epoch 2."""
    return beats(group_of_two(), "a", 1, owned=P0)[0]


@pytest.mark.parametrize(
    ("version", "member", "epoch", "partition", "error"),
    [
        ("4.3.1", "a", 2, 0, Error.NONE),
        ("4.3.1", "a", 1, 0, Error.NONE),  # it has had 0 ever since
        ("4.1.2", "a", 1, 0, Error.STALE_MEMBER_EPOCH),
        ("4.3.1", "a", 0, 0, Error.STALE_MEMBER_EPOCH),
        ("4.3.1", "a", 3, 0, Error.STALE_MEMBER_EPOCH),
        ("4.3.1", "a", 1, 1, Error.STALE_MEMBER_EPOCH),
        ("4.1.2", "a", 2, 1, Error.NONE),  # nobody looks whose partition it is
        ("4.3.1", "a", 2, 1, Error.NONE),
        ("4.3.1", "c", 2, 0, Error.UNKNOWN_MEMBER_ID),
        ("4.3.1", "", -1, 0, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_commits_in_a_consumer_group(version: str, member: str, epoch: int, partition: int, error: Error) -> None:
    assert commits(in_epoch_2(), by(member, epoch, partition=partition), version) is error


def test_a_partition_that_shall_be_revoked_can_be_committed_until_it_is() -> None:
    told = beats(group_of_two(), "a", 1, owned=BOTH)[0]
    assert commits(told, by("a", 1, partition=1)) is Error.NONE


def test_members_of_a_consumer_group_need_version_9_and_simple_consumers_an_empty_group() -> None:
    assert commits(group_of_a(), by("a", 1, version=8)) is Error.UNSUPPORTED_VERSION
    left = beats(group_of_a(), "a", -1)[0]
    assert commits(left, by()) is Error.NONE


def test_a_static_member_that_is_back_commits_under_its_new_id_only() -> None:
    group = consumer_groups.joins(ConsumerGroup(), "a", {"a": BOTH}, instance="x")[0]
    group = beats(group, "a", LEAVE_FOR_A_WHILE, instance="x")[0]
    assert commits(group, by("a", 1)) is Error.STALE_MEMBER_EPOCH
    group = consumer_groups.joins(group, "b", {}, instance="x")[0]
    assert commits(group, by("a", 1)) is Error.UNKNOWN_MEMBER_ID
    assert commits(group, by("b", 1)) is Error.NONE


@pytest.mark.parametrize(("version", "error"), [("4.1.2", Error.STALE_MEMBER_EPOCH), ("4.3.1", Error.NONE)])
def test_since_4_3_a_late_commit_can_overwrite_that_of_the_next_owner(version: str, error: Error) -> None:
    """A stays in epoch 1 though it let go of partition 1, so a commit for it that is still on its way is taken when C
    has the partition, and has committed in epoch 3; before 4.3 the epoch of A had risen with the revocation."""
    parameters = counted_from_0(version)
    group, answer = beats(told_to_revoke_twice(version), "c", 3, parameters=parameters)
    assert answer.assignment == frozenset({1})
    assert commits(group, by("c", 3, partition=1), version) is Error.NONE
    assert commits(group, by("a", 1, partition=1), version) is error


def test_all_of_a_commit_is_taken_or_nothing() -> None:
    request = OffsetCommit(((0, 100), (1, 100)), "a", 1)
    result = commit(in_epoch_2(), Offsets(), request, parameters=KAFKA)
    assert (result.error, result.offsets) == (Error.STALE_MEMBER_EPOCH, Offsets())


def pending(offsets: Offsets, *, producer: int = 7, offset: int = 100) -> Offsets:
    return commit(EMPTY, offsets, OffsetCommit(((0, offset),), producer=producer), parameters=KAFKA).offsets


def plain(offsets: Offsets, offset: int) -> Offsets:
    return commit(EMPTY, offsets, OffsetCommit(((0, offset),)), parameters=KAFKA).offsets


def ends(offsets: Offsets, *, producer: int = 7, committed: bool = True) -> Offsets:
    return end_transaction(offsets, producer, committed=committed, parameters=KAFKA)


def fetched(offsets: Offsets, *, stable: bool = False) -> FetchedOffset:
    return fetch(EMPTY, offsets, OffsetFetch(0, require_stable=stable), parameters=KAFKA)


def test_offsets_of_a_transaction_count_when_its_marker_is_there() -> None:
    before = pending(plain(NOTHING_YET, 50))
    assert fetched(before) == FetchedOffset(Error.NONE, 50)
    assert fetched(before, stable=True) == FetchedOffset(Error.UNSTABLE_OFFSET_COMMIT)
    for stable in (False, True):
        assert fetched(ends(before), stable=stable) == FetchedOffset(Error.NONE, 100)
        assert fetched(ends(before, committed=False), stable=stable) == FetchedOffset(Error.NONE, 50)


def test_an_offset_that_was_never_committed() -> None:
    assert fetched(NOTHING_YET) == FetchedOffset(Error.NONE, -1)
    assert fetched(ends(pending(NOTHING_YET), committed=False)) == FetchedOffset(Error.NONE, -1)


def test_the_offset_of_the_latest_record_counts_whichever_marker_comes_first() -> None:
    assert fetched(ends(plain(pending(NOTHING_YET, offset=100), 50))) == FetchedOffset(Error.NONE, 50)
    both = pending(pending(NOTHING_YET, producer=7, offset=100), producer=8, offset=60)
    assert fetched(ends(ends(both, producer=8), producer=7)) == FetchedOffset(Error.NONE, 60)
    assert fetched(ends(ends(both, producer=7), producer=8)) == FetchedOffset(Error.NONE, 60)
    again = pending(both, producer=7, offset=70)  # a producer's later offset comes in the place of its earlier one
    assert fetched(ends(ends(again, producer=7), producer=8)) == FetchedOffset(Error.NONE, 70)


def test_a_marker_ends_only_its_own_transaction() -> None:
    both = pending(pending(NOTHING_YET, producer=7), producer=8)
    assert fetched(ends(both, producer=8), stable=True) == FetchedOffset(Error.UNSTABLE_OFFSET_COMMIT)
    assert ends(both, producer=9) == both


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        (None, -1, Error.NONE),
        ("a", 1, Error.NONE),
        ("a", 2, Error.STALE_MEMBER_EPOCH),
        ("c", 1, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_fetch_in_a_consumer_group(member: str | None, epoch: int, error: Error) -> None:
    request = OffsetFetch(0, member=member, epoch=epoch)
    assert fetch(group_of_a(), Offsets(), request, parameters=KAFKA).error is error
    assert fetch(STABLE, Offsets(), request, parameters=KAFKA).error is Error.NONE
