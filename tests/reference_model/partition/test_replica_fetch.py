"""Followers fetch: how logs that diverged come together, and what each side refuses or ignores."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.partition.log import EpochEnd, Log
from lockstep_model.partition.replica import learn
from lockstep_model.partition.replica_fetch import ReplicaFetchResponse, answer, request, take
from lockstep_model.registration import BrokerRegistration, Registration
from lockstep_model.replication import mutants
from tests.reference_model.partitions import without
from tests.reference_model.replicas import (
    BROKERS,
    KRAFT,
    ZK,
    exchange,
    fetching,
    leading,
    log,
    partition,
    progress,
    replica,
)

CASES = {
    # case: the leader's log, the follower's, what the leader says of divergence, and where it is cut
    "A: behind in the same epoch": (log(1, 1, 1, 1), log(1, 1), None, 4),
    "B: behind by an epoch": (log(1, 1, 2, 2), log(1, 1), None, 4),
    "C: ahead in the same epoch": (log(1, 1), log(1, 1, 1, 1), EpochEnd(1, 2), 2),
    "D: ahead by an epoch": (log(1, 1), log(1, 1, 2, 2), EpochEnd(1, 2), 2),
    "E: another epoch on each side": (log(1, 1, 3, 3), log(1, 1, 2, 2), EpochEnd(1, 2), 2),
    "F: another epoch here, more of the old one there": (log(1, 1), log(1, 2, 2), EpochEnd(1, 2), 1),
    "G: no epoch in common": (log(1, 3), log(2, 2), EpochEnd(1, 1), 0),
}
"""The seven of the prose of the published specification (Vanlightly, 3.3.1 to 3.3.7)."""


@pytest.mark.parametrize("case", CASES)
def test_divergence(case: str) -> None:
    leaders, followers, diverging, end = CASES[case]
    now = partition(epoch=4)
    leader, follower = replica(0, now, has=leaders), replica(1, now, has=followers)

    leader, fetched = fetching(leader, follower)
    after = take(KRAFT, follower, fetched)

    assert fetched.diverging == diverging
    assert after.log.end == end
    if diverging is not None:
        assert progress(leader, 1).end == -1  # it does not count as having fetched
    while after.log != leader.log.truncate(leader.log.end):
        before = after
        leader, after = exchange(leader, after)
        assert after != before
    assert progress(leader, 1).end <= after.log.end


def test_without_the_check_a_diverging_follower_stays_as_it_is() -> None:
    careless = without(KRAFT, mutants.DIVERGENCE_CHECK)
    now = partition(epoch=4)
    leader, follower = replica(0, now, has=log(1, 3)), replica(1, now, has=log(2, 2))

    leader, after = exchange(leader, follower, careless)

    assert after.log == follower.log
    assert progress(leader, 1).end == 2


@pytest.mark.parametrize(
    ("leader", "follower", "error"),
    [
        (partition(epoch=2), partition(epoch=1), Error.FENCED_LEADER_EPOCH),
        (partition(epoch=1), partition(epoch=2), Error.UNKNOWN_LEADER_EPOCH),
        (partition(leader=2, epoch=1), partition(epoch=1), Error.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_refusals(leader: Registration, follower: Registration, error: Error) -> None:
    asked = replica(0, leader)
    after, fetched = fetching(asked, replica(1, follower))

    assert (after, fetched.error) == (asked, error)
    assert take(KRAFT, replica(1, follower), fetched) == replica(1, follower)


def test_a_broker_that_is_no_replica_as_far_as_the_leader_knows_is_to_ask_again() -> None:
    leader = replica(0, partition()._replace(replicas=(0, 2), isr=frozenset({0, 2})))

    assert fetching(leader, replica(1))[1].error is Error.UNKNOWN_LEADER_EPOCH


def test_an_earlier_incarnation_is_not_counted_once_the_new_one_is_active() -> None:
    restarted = (BROKERS[0], (1, BrokerRegistration(epoch=11)), BROKERS[2])
    fenced = (BROKERS[0], (1, BrokerRegistration(epoch=11, fenced=True)), BROKERS[2])
    stale = replica(1, has=log(0))

    for brokers, error in ((restarted, Error.NOT_LEADER_OR_FOLLOWER), (fenced, Error.NONE)):
        leader = learn(KRAFT, replica(0, has=log(0)), partition(version=1), brokers)
        assert fetching(leader, stale)[1].error is error
    leader = learn(KRAFT, replica(0, has=log(0)), partition(version=1), restarted)
    assert fetching(leader, stale, without(KRAFT, mutants.FETCH_BROKER_EPOCH))[1].error is Error.NONE
    assert fetching(leader, stale, ZK)[1].error is Error.NONE


def test_records_come_with_the_high_watermark_of_before() -> None:
    """What is read at once was read before the fetch counts; the next one, without records, tells the new one."""
    leader, one = replica(0, partition("01"), has=log(0)), replica(1, partition("01"))

    leader, one = exchange(leader, one)
    assert (one.log.end, one.high_watermark, leader.high_watermark) == (1, 0, 0)
    leader, one = exchange(leader, one)
    assert (leader.high_watermark, one.high_watermark) == (1, 1)


def test_a_followers_high_watermark_may_go_down() -> None:
    now = partition(epoch=1)
    leader, follower = replica(0, now, has=log(0, 0)), replica(1, now, has=log(0, 0), high_watermark=2)

    assert exchange(leader, follower)[1].high_watermark == 0


def test_truncation_takes_the_high_watermark_with_it() -> None:
    now = partition(epoch=2)
    leader, follower = replica(0, now, has=log(0)), replica(1, now, has=log(0, 1), high_watermark=2)

    assert exchange(leader, follower)[1].high_watermark == 1


def test_an_offset_below_the_leaders_start_is_out_of_range_and_begins_anew() -> None:
    now = partition(epoch=1)
    leader = replica(0, now, has=log(0, 0, 0).delete_before(2), high_watermark=3)
    follower = replica(1, now, has=log(0))

    leader, fetched = fetching(leader, follower)
    after = take(KRAFT, follower, fetched)

    assert fetched.error is Error.OFFSET_OUT_OF_RANGE
    assert (after.log, after.high_watermark) == (Log(start=2), 2)
    assert exchange(leader, after)[1].log == leader.log.truncate(3)


def test_an_offset_above_the_leaders_end_is_out_of_range_and_cut() -> None:
    """Only a log without epochs gets that far: with them it is told that it diverges."""
    careless = without(KRAFT, mutants.DIVERGENCE_CHECK)
    leader, follower = replica(0, has=log(0)), replica(1, has=log(0, 0))

    leader, fetched = fetching(leader, follower, careless)

    assert fetched.error is Error.OFFSET_OUT_OF_RANGE
    assert take(KRAFT, follower, fetched).log == log(0)


def answered(known: int = 1) -> ReplicaFetchResponse:
    """The answer, with a record, to a follower with an empty log."""
    return fetching(replica(0, partition(epoch=known), has=log(0)), replica(1, partition(epoch=known)))[1]


def test_an_answer_is_taken_only_by_who_waits_for_it() -> None:
    waits = replica(1, partition(epoch=1))
    assert take(KRAFT, waits, answered()).log == log(0)

    for moved_on in (
        replica(1, partition(epoch=1), has=log(0)),  # another offset
        replica(1, partition(epoch=2)),  # another epoch
        replica(1, partition(leader=2, epoch=1)),  # another leader
        waits._replace(broker_epoch=99),  # another process
        replica(1, partition(leader=1, epoch=2)),  # leads itself
    ):
        assert take(KRAFT, moved_on, answered()) == moved_on


def test_guards_of_an_answer_one_by_one() -> None:
    truncated = replica(1, partition(epoch=1), has=log(0))
    later = replica(1, partition(epoch=2))

    assert take(without(KRAFT, mutants.RESPONSE_OFFSET), truncated, answered()).log.end == 2
    assert take(without(KRAFT, mutants.RESPONSE_LEADER_EPOCH), later, answered()).log == log(0)


def test_nobody_asks_without_a_leader_or_asks_himself() -> None:
    assert request(replica(1, partition(leader=-1))) is None
    assert request(replica(1, partition(leader=1))) is None


def test_a_limit_of_records() -> None:
    fetch = request(replica(1))
    assert fetch is not None
    assert len(answer(KRAFT, replica(0, has=log(0, 0)), fetch, limit=1)[1].records) == 1


def test_a_fetch_of_a_new_member_asks_for_it() -> None:
    leader, _ = fetching(replica(0, partition("0")), replica(1))

    pending = leading(leader).pending
    assert pending is not None
    assert (pending.isr, pending.epochs) == (frozenset({0, 1}), ((0, 0), (1, 10)))
