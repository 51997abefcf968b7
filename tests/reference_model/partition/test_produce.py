"""What a producer is answered, at once or later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.errors import Error
from lockstep_model.partition.produce import (
    EXPIRED,
    Acks,
    DelayedProduce,
    Produce,
    Produced,
    ProduceOutcome,
    Unanswered,
    complete,
    outcome,
    produce,
)
from lockstep_model.partition.producer_state import Batch, Marker
from lockstep_model.partition.replica import Replica, learn
from lockstep_model.registration import NO_LEADER
from tests.reference_model.replicas import BROKERS, KRAFT, exchange, leading, log, partition, replica

MIN_TWO = replace(KRAFT, min_isr=2)
ALL, LEADER, NONE = Produce(Acks.ALL, (1,)), Produce(Acks.LEADER, (1,)), Produce(Acks.NONE, (1,))


def test_one_copy_is_answered_at_once_and_all_when_committed() -> None:
    leader = replica(0, has=log(0))

    assert produce(KRAFT, leader, LEADER)[1] == Produced(Error.NONE, 1)
    assert produce(KRAFT, leader, NONE)[1] == Unanswered()
    assert produce(KRAFT, leader, ALL)[1] == DelayedProduce(1, until=2)
    assert produce(KRAFT, replica(0, partition("0")), ALL)[1] == Produced(Error.NONE, 0)
    for request in (LEADER, NONE, ALL):
        assert produce(KRAFT, leader, request)[0].log.end == 2


@pytest.mark.parametrize("leader", [1, NO_LEADER])
def test_who_does_not_lead_takes_nothing(leader: int) -> None:
    follower = replica(0, partition("12", leader=leader))

    assert produce(KRAFT, follower, LEADER) == (follower, Produced(Error.NOT_LEADER_OR_FOLLOWER))
    assert produce(KRAFT, follower, NONE) == (follower, Unanswered(closed=True))


def test_the_minimum_counts_for_all_only_and_the_committed_isr_only() -> None:
    leader, _ = exchange(replica(0, partition("0"), parameters=MIN_TWO), replica(1), MIN_TWO)
    assert leading(leader).pending is not None  # the second member is asked for, but not committed

    assert produce(MIN_TWO, leader, ALL) == (leader, Produced(Error.NOT_ENOUGH_REPLICAS))
    assert produce(MIN_TWO, leader, LEADER)[1] == Produced(Error.NONE, 0)


def waiting(isr: str = "01") -> tuple[Replica, DelayedProduce]:
    leader, reply = produce(MIN_TWO, replica(0, partition(isr), parameters=MIN_TWO), ALL)
    assert isinstance(reply, DelayedProduce)
    return leader, reply


def test_who_waits_is_answered_when_all_have_it() -> None:
    leader, waits = waiting()
    follower = replica(1, partition("01"))

    assert complete(MIN_TWO, leader, waits) is None
    for _ in range(2):
        leader, follower = exchange(leader, follower, MIN_TWO)
    assert complete(MIN_TWO, leader, waits) == Produced(Error.NONE, 0)


def test_who_waits_is_told_when_the_leader_is_deposed() -> None:
    leader, waits = waiting()
    deposed = learn(MIN_TWO, leader, partition("1", leader=1, epoch=1, version=1), BROKERS)

    assert complete(MIN_TWO, deposed, waits) == Produced(Error.NOT_LEADER_OR_FOLLOWER)


def test_an_isr_that_shrank_meanwhile_ends_in_a_time_out_or_without_the_gate_in_an_error() -> None:
    leader, waits = waiting()
    shrunk = partition("0", version=1)

    gated = learn(MIN_TWO, leader, shrunk, BROKERS)
    assert complete(MIN_TWO, gated, waits) is None
    assert outcome(ALL, EXPIRED) is ProduceOutcome.UNKNOWN
    ungated = replace(MIN_TWO, hw_gate=False)
    committed = learn(ungated, leader, shrunk, BROKERS)
    assert complete(ungated, committed, waits) == Produced(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def test_which_answers_leave_it_open() -> None:
    assert outcome(ALL, Produced(Error.NONE, 0)) is ProduceOutcome.APPENDED
    assert outcome(NONE, Unanswered()) is ProduceOutcome.UNKNOWN
    assert outcome(NONE, Unanswered(closed=True)) is ProduceOutcome.UNKNOWN
    for code in (7, 20, 6):
        assert outcome(ALL, Produced(Error(code))) is ProduceOutcome.UNKNOWN
    for code in (19, 45, 47):
        assert outcome(ALL, Produced(Error(code))) is ProduceOutcome.REFUSED
    assert outcome(LEADER, Produced(Error.NOT_LEADER_OR_FOLLOWER)) is ProduceOutcome.REFUSED


def idempotent(sequence: int, *, acks: Acks = Acks.LEADER, epoch: int = 0, values: tuple[int, ...] = (1, 2)) -> Produce:
    return Produce(acks, values, Batch(7, epoch, sequence, len(values)))


def test_a_batch_that_comes_again_is_answered_like_the_first() -> None:
    leader, first = produce(KRAFT, replica(0, has=log(0)), idempotent(0))
    assert first == Produced(Error.NONE, 1)

    assert produce(KRAFT, leader, idempotent(0)) == (leader, first)
    assert produce(KRAFT, leader, idempotent(0, acks=Acks.ALL)) == (leader, DelayedProduce(1, until=3))
    assert produce(KRAFT, leader, idempotent(5)) == (leader, Produced(Error.OUT_OF_ORDER_SEQUENCE_NUMBER))
    after, next_one = produce(KRAFT, leader, idempotent(2))
    assert (next_one, after.log.end) == (Produced(Error.NONE, 3), 5)


def test_an_old_producer_epoch_is_refused() -> None:
    leader, _ = produce(KRAFT, replica(0), idempotent(0, epoch=1))

    assert produce(KRAFT, leader, idempotent(2))[1] == Produced(Error.INVALID_PRODUCER_EPOCH)


def test_the_minimum_is_looked_at_before_the_sequence() -> None:
    leader, _ = produce(MIN_TWO, replica(0, partition("0"), parameters=MIN_TWO), idempotent(0))

    assert produce(MIN_TWO, leader, idempotent(0, acks=Acks.ALL))[1] == Produced(Error.NOT_ENOUGH_REPLICAS)


def test_producers_are_known_from_the_log_alone() -> None:
    leader, _ = produce(KRAFT, replica(0), idempotent(0))
    fenced = leader._replace(log=leader.log.append([leader.log.records[0]._replace(batch=Marker(7, 3, commit=True))]))

    assert produce(KRAFT, fenced, idempotent(2))[1] == Produced(Error.INVALID_PRODUCER_EPOCH)


@pytest.mark.parametrize("acks", [2, -2, 3])
def test_acks_of_no_kind_are_refused_by_everybody(acks: int) -> None:
    for broker in (replica(0), replica(1)):
        assert produce(KRAFT, broker, Produce(acks, (1,))) == (broker, Produced(Error.INVALID_REQUIRED_ACKS))


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (Error.KAFKA_STORAGE_ERROR, ProduceOutcome.UNKNOWN),  # the disk may have failed after it took the record
        (Error.NETWORK_EXCEPTION, ProduceOutcome.UNKNOWN),  # the connection ended before the answer
        (Error.UNKNOWN_SERVER_ERROR, ProduceOutcome.UNKNOWN),
        (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, ProduceOutcome.REFUSED),
        (Error.INVALID_REQUIRED_ACKS, ProduceOutcome.REFUSED),
    ],
)
def test_what_an_error_tells_of_the_records(error: Error, known: ProduceOutcome) -> None:
    assert outcome(LEADER, Produced(error)) is known


def test_a_damaged_batch_is_refused_by_who_would_append_it() -> None:
    """After the leader and the ISR were looked at, before the producer is (UnifiedLog.append)."""
    leader, _ = produce(KRAFT, replica(0), idempotent(0))
    alone, follower = replica(0, partition("0"), parameters=MIN_TWO), replica(1)
    assert produce(KRAFT, leader, LEADER._replace(corrupt=True)) == (leader, Produced(Error.CORRUPT_MESSAGE))
    assert produce(KRAFT, leader, NONE._replace(corrupt=True)) == (leader, Unanswered(closed=True))
    assert produce(KRAFT, follower, LEADER._replace(corrupt=True))[1] == Produced(Error.NOT_LEADER_OR_FOLLOWER)
    assert produce(MIN_TWO, alone, ALL._replace(corrupt=True))[1] == Produced(Error.NOT_ENOUGH_REPLICAS)
    for sequence in (0, 5):  # a duplicate, and one that is out of order
        assert produce(KRAFT, leader, idempotent(sequence)._replace(corrupt=True))[1] == Produced(Error.CORRUPT_MESSAGE)


def test_before_3_7_more_in_sync_may_be_wanted_than_there_are_replicas() -> None:
    alone = replica(0, partition("0")._replace(replicas=(0,)), parameters=MIN_TWO)
    before = replace(MIN_TWO, hw_gate=False, min_isr_within_replicas=False)
    assert produce(MIN_TWO, alone, ALL)[1] == Produced(Error.NONE, 0)
    assert produce(before, alone, ALL)[1] == Produced(Error.NOT_ENOUGH_REPLICAS)
