"""Leading, following, and the high watermark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_model import mutants
from reference_model.in_sync import lag_passes
from reference_model.log import EpochStart, Record
from reference_model.parameters import Parameters
from reference_model.registration import BrokerRegistration, Registration
from reference_model.replica import UNKNOWN, Progress, Replica, append, learn, maximal_isr, restart
from tests.reference_model.partitions import without
from tests.reference_model.replicas import BROKERS, KRAFT, ZK, exchange, leading, log, partition, progress, replica

MIN_TWO = replace(KRAFT, min_isr=2)


def written(leader: Replica, parameters: Parameters = KRAFT, *, records: int = 1) -> Replica:
    return append(parameters, leader, [Record(leader.leader_epoch, value) for value in range(records)])


def test_the_high_watermark_is_the_lowest_end_in_the_isr() -> None:
    leader, one, two = written(replica(0)), replica(1), replica(2)

    for _ in range(2):
        leader, one = exchange(leader, one)
    assert (leader.high_watermark, one.log.end) == (0, 1)
    for _ in range(2):
        leader, two = exchange(leader, two)
    assert leader.high_watermark == 1


def test_alone_in_the_isr_a_leader_commits_at_once() -> None:
    assert written(replica(0, partition("0"))).high_watermark == 1


def test_below_the_minimum_nothing_is_committed() -> None:
    alone = replica(0, partition("0"), parameters=MIN_TWO)

    assert written(alone, MIN_TWO).high_watermark == 0
    assert written(alone, replace(MIN_TWO, hw_gate=False)).high_watermark == 1
    assert written(alone, without(MIN_TWO, mutants.HIGH_WATERMARK_GATE)).high_watermark == 1


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    single = Registration(replicas=(0,), isr=frozenset({0}), leader=0)

    assert written(replica(0, single, parameters=MIN_TWO), MIN_TWO).high_watermark == 1


def test_a_caught_up_follower_outside_the_isr_is_waited_for_until_it_lags() -> None:
    leader, _ = exchange(replica(0, partition("02")), replica(1))
    leader = leader._replace(leadership=leading(leader)._replace(isr=frozenset({0}), pending=None))

    waits = written(leader)
    assert waits.high_watermark == 0
    assert written(lag_passes(waits, 1)).high_watermark == 2


def test_a_fenced_follower_outside_the_isr_is_not_waited_for() -> None:
    leader, _ = exchange(replica(0, partition("0")), replica(1))
    fenced = (BROKERS[0], (1, BrokerRegistration(epoch=10, fenced=True)), BROKERS[2])
    leader = learn(KRAFT, leader, partition("0", version=1), fenced)

    assert written(leader).high_watermark == 1


def test_the_high_watermark_waits_for_whom_the_leader_asked_for() -> None:
    leader, _ = exchange(replica(0, partition("0")), replica(1))

    lags = lag_passes(written(leader), 1)
    assert maximal_isr(KRAFT, leading(lags)) == {0, 1}
    assert written(lags).high_watermark == 0
    careless = without(KRAFT, mutants.MAXIMAL_ISR)
    assert written(lags, careless).high_watermark == 2


def test_a_new_leader_enters_its_epoch_and_knows_nothing_of_its_followers() -> None:
    follower = replica(1, has=log(0, 0), high_watermark=1)

    leads = learn(KRAFT, follower, partition("12", leader=1, epoch=1, version=1), BROKERS)

    assert (leading(leads).epoch_start, leads.high_watermark) == (2, 1)
    assert leads.log.epochs[-1] == EpochStart(1, 2)
    assert progress(leads, 2) == Progress(recent=True)
    assert progress(leads, 0) == Progress(recent=False)


def test_a_leader_that_is_elected_again_goes_on_with_what_it_knew() -> None:
    leader, _ = exchange(replica(0), replica(1, has=log()))

    again = learn(KRAFT, leader, partition("02", epoch=1, version=1), BROKERS)

    assert progress(again, 1) == Progress(end=0, start=0, recent=False, broker_epoch=10)
    assert progress(again, 2) == Progress(end=UNKNOWN, recent=True)


def test_a_deposed_leader_forgets_what_it_knew() -> None:
    deposed = learn(KRAFT, replica(0, has=log(0)), partition("12", leader=1, epoch=1, version=1), BROKERS)

    assert (deposed.leadership, deposed.leader, deposed.log) == (None, 1, replica(0, has=log(0)).log)


@pytest.mark.parametrize(("parameters", "taken"), [(KRAFT, True), (ZK, False)])
def test_an_isr_of_the_same_leader_epoch_comes_with_metadata_in_kraft_only(parameters: Parameters, taken: bool) -> None:
    leader = replica(0, parameters=parameters)

    after = learn(parameters, leader, partition("01", version=1), BROKERS)

    assert (leading(after).isr == {0, 1}) is taken


def test_what_a_leader_knows_from_its_answer_leaves_its_next_request_pending() -> None:
    leader, _ = exchange(replica(0, partition("0", version=3)), replica(1))

    known = learn(KRAFT, leader, partition("0", version=3), BROKERS)
    assert leading(known).pending == leading(leader).pending is not None
    as_kafka_does = learn(
        without(KRAFT, mutants.PENDING_OUTLIVES_KNOWN_METADATA), leader, partition("0", version=3), BROKERS
    )
    assert leading(as_kafka_does).pending is None


def test_old_metadata_changes_only_which_brokers_are_there() -> None:
    leader = replica(0, partition("01", version=3))
    fenced = (BROKERS[0], BROKERS[1], (2, BrokerRegistration(epoch=20, fenced=True)))

    after = learn(KRAFT, leader, partition("012", version=2), fenced)

    assert (leading(after).isr, leading(after).brokers) == (leading(leader).isr, fenced)


def test_a_broker_that_is_no_replica_any_more_deletes_its_log() -> None:
    reassigned = partition()._replace(replicas=(0, 1), isr=frozenset({0, 1}), partition_epoch=1)

    assert learn(KRAFT, replica(2, has=log(0)), reassigned, BROKERS) == Replica(2, 20)


@pytest.mark.parametrize(
    ("end", "checkpoint", "left"),
    [(2, 2, (2, 2)), (2, 0, (2, 0)), (1, 2, (1, 1))],
    ids=["clean", "killed", "power loss"],
)
def test_a_restart(end: int, checkpoint: int, left: tuple[int, int]) -> None:
    before = replica(0, partition(epoch=1), has=log(0, 0), high_watermark=2)

    after = restart(before, 7, end=end, high_watermark=checkpoint)

    assert (after.log.end, after.high_watermark) == left
    assert (after.leadership, after.leader_epoch, after.broker_epoch) == (None, -1, 7)
    assert after.log.latest_epoch == 0  # that of its leadership, in which it wrote nothing, is forgotten
