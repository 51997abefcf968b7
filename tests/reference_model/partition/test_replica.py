"""Leading, following, and the high watermark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.in_sync import lag_passes
from lockstep_model.partition.log import EpochStart, Record
from lockstep_model.partition.replica import (
    UNKNOWN,
    BrokerRegistrations,
    HostedPartition,
    Progress,
    Replica,
    advance_high_watermark,
    append,
    hear,
    learn,
    maximal_isr,
    refusal,
    restart,
)
from lockstep_model.registration import NO_LEADER, BrokerRegistration, Registration
from lockstep_model.replication import mutants
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
    assert progress(again, 2) == Progress(end=UNKNOWN, recent=True, fetched=True, leader_end=0)


def test_a_deposed_leader_forgets_what_it_knew() -> None:
    deposed = learn(KRAFT, replica(0, has=log(0)), partition("12", leader=1, epoch=1, version=1), BROKERS)

    assert (deposed.leadership, deposed.leader, deposed.log) == (None, 1, replica(0, has=log(0)).log)


@pytest.mark.parametrize(("parameters", "taken"), [(KRAFT, True), (ZK, False)])
def test_an_isr_of_the_same_leader_epoch_comes_with_metadata_in_kraft_only(parameters: Parameters, taken: bool) -> None:
    leader = replica(0, parameters=parameters)

    after = learn(parameters, leader, partition("01", version=1), BROKERS)

    assert (leading(after).isr == {0, 1}) is taken


def test_a_leader_forgets_what_it_asked_for_when_metadata_tells_what_its_answer_did() -> None:
    """As Kafka does (Partition.makeLeader): it takes a partition epoch that it has, if that is new in metadata."""
    leader, _ = exchange(replica(0, partition("0", version=3)), replica(1))
    answered = leader._replace(leadership=leading(leader)._replace(ahead=True))
    assert leading(leader).pending is not None

    assert leading(learn(KRAFT, answered, partition("0", version=3), BROKERS)).pending is None
    assert leading(learn(KRAFT, answered, partition("0", version=2), BROKERS)) == leading(answered)
    assert leading(learn(KRAFT, leader, partition("0", version=3), BROKERS)) == leading(leader)  # another broker's news


def test_old_metadata_changes_only_which_brokers_are_there() -> None:
    leader = replica(0, partition("01", version=3))
    fenced = (BROKERS[0], BROKERS[1], (2, BrokerRegistration(epoch=20, fenced=True)))

    after = learn(KRAFT, leader, partition("012", version=2), fenced)

    assert (leading(after).isr, leading(after).brokers) == (leading(leader).isr, fenced)


def test_a_broker_that_is_no_replica_any_more_deletes_its_log() -> None:
    reassigned = partition()._replace(replicas=(0, 1), isr=frozenset({0, 1}), partition_epoch=1)

    after = learn(KRAFT, replica(2, has=log(0)), reassigned, BROKERS)

    assert after == Replica(2, 20, hosting=HostedPartition.ELSEWHERE)


@pytest.mark.parametrize("leader_epoch", [None, 0, 5])
def test_who_has_no_replica_says_so_whatever_it_is_asked(leader_epoch: int | None) -> None:
    """ReplicaManager.getPartitionOrError, before any epoch is looked at."""
    moved = learn(KRAFT, replica(2), partition()._replace(replicas=(0, 1), isr=frozenset({0, 1})), BROKERS)

    assert refusal(moved, leader_epoch) is Error.NOT_LEADER_OR_FOLLOWER
    assert refusal(Replica(2, 20), leader_epoch) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(Replica(2, 20), leader_epoch, leader_only=False) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(replica(2), 5) is Error.UNKNOWN_LEADER_EPOCH


def test_who_has_only_heard_of_a_partition_has_no_replica_of_it() -> None:
    started = Replica(2, 20, log=log(0))

    assert refusal(hear(started), 5) is Error.NOT_LEADER_OR_FOLLOWER
    assert hear(replica(2)) == replica(2)


GONE = (BROKERS[0], (1, BrokerRegistration(epoch=10, fenced=True)), BROKERS[2])


@pytest.mark.parametrize(
    ("decided", "brokers"),
    [(partition("0", leader=NO_LEADER, epoch=1, version=1), BROKERS), (partition("1", leader=1, epoch=1), GONE)],
    ids=["nobody", "somebody who is not there"],
)
@pytest.mark.parametrize("broker", [0, 2])
def test_nobody_is_followed_who_is_not_there(decided: Registration, brokers: BrokerRegistrations, broker: int) -> None:
    """In ZooKeeper mode a broker stays as it was, even as the leader (ReplicaManager.makeFollowers)."""
    before = replica(broker, has=log(0), parameters=ZK)

    after = learn(ZK, before, decided, brokers)

    assert (after.leader, after.leader_epoch, after.leadership is None) == (0, 0, broker != 0)
    in_kraft = learn(KRAFT, replica(broker, has=log(0)), decided._replace(partition_epoch=1), brokers)
    assert (in_kraft.leader, in_kraft.leader_epoch, in_kraft.leadership) == (decided.leader, 1, None)


def test_a_replica_is_there_before_it_has_anybody_to_follow() -> None:
    """In ZooKeeper mode, after a start: it has a log and no leader epoch, and is not asked again who leads."""
    started = Replica(1, 10, log=log(0))
    after = learn(ZK, started, partition("0", leader=NO_LEADER, epoch=4), BROKERS)

    assert after == started._replace(hosting=HostedPartition.HERE)
    assert refusal(after, 4) is Error.UNKNOWN_LEADER_EPOCH
    assert refusal(after, None) is Error.NOT_LEADER_OR_FOLLOWER


def test_no_high_watermark_is_above_the_end_of_the_leaders_own_log() -> None:
    leader = replica(0, partition("01"), has=log(0))
    beyond = leading(leader).with_progress(1, Progress(end=5, recent=True, broker_epoch=10))

    assert advance_high_watermark(KRAFT, leader._replace(leadership=beyond)).high_watermark == 1


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
