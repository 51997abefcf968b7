"""Whom a leader wants in the ISR, and what it makes of the controller's answer."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.in_sync import expand, lag_passes, sent_again, settle, shrink
from lockstep_model.partition.log import Record
from lockstep_model.partition.replica import BrokerRegistrations, Progress, Replica, append, learn, maximal_isr
from lockstep_model.registration import AlterPartition, BrokerRegistration
from lockstep_model.replication import mutants
from tests.reference_model.partitions import without
from tests.reference_model.replicas import BROKERS, KRAFT, ZK, exchange, leading, log, partition, replica


def asked(leader: Replica) -> AlterPartition | None:
    return leading(leader).pending


def knowing(end: int, *, epoch_start: int, high_watermark: int, brokers: BrokerRegistrations = BROKERS) -> Replica:
    """A leader alone in the ISR that knows a follower to be at this end."""
    leader = replica(0, partition("0"), has=log(0, 0))._replace(high_watermark=high_watermark)
    leadership = leading(leader)._replace(epoch_start=epoch_start, brokers=brokers)
    followed = leadership.with_progress(1, Progress(end, start=0, recent=True, broker_epoch=10))
    return leader._replace(leadership=followed)


def test_a_follower_joins_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    assert asked(expand(KRAFT, knowing(1, epoch_start=1, high_watermark=1), 1)) is not None
    for end, guard in ((0, mutants.EXPAND_REACHES_HIGH_WATERMARK), (1, mutants.EXPAND_REACHES_EPOCH_START)):
        start, high_watermark = (0, 1) if end == 0 else (2, 1)
        lags = knowing(end, epoch_start=start, high_watermark=high_watermark)
        assert asked(expand(KRAFT, lags, 1)) is None
        assert asked(expand(without(KRAFT, guard), lags, 1)) is not None


@pytest.mark.parametrize(
    ("registered", "parameters", "joins"),
    [
        (BrokerRegistration(epoch=10), KRAFT, True),
        (BrokerRegistration(epoch=10, fenced=True), KRAFT, False),
        (BrokerRegistration(epoch=10, shutting_down=True), KRAFT, False),
        (BrokerRegistration(epoch=11), KRAFT, False),
        (BrokerRegistration(epoch=11), without(KRAFT, mutants.EXPAND_BROKER_EPOCH), True),
        (BrokerRegistration(epoch=11), ZK, True),
        (BrokerRegistration(epoch=10, shutting_down=True), ZK, True),  # the controller refuses it
        (BrokerRegistration(epoch=10, fenced=True), ZK, False),
    ],
)
def test_who_may_join(registered: BrokerRegistration, parameters: Parameters, joins: bool) -> None:
    brokers = (BROKERS[0], (1, registered), BROKERS[2])
    leader = knowing(2, epoch_start=0, high_watermark=0, brokers=brokers)

    assert (asked(expand(parameters, leader, 1)) is not None) is joins


def test_one_request_at_a_time() -> None:
    leader, _ = exchange(replica(0, partition("0")), replica(1))
    again, _ = exchange(leader, replica(2))

    assert asked(again) == asked(leader)
    assert shrink(KRAFT, again) == again


def test_who_lags_is_removed_but_waited_for_until_that_is_committed() -> None:
    leader, _ = exchange(replica(0), replica(1))
    leader = append(KRAFT, leader, [Record(0, 1)])
    for follower in (1, 2):
        leader = lag_passes(leader, follower)

    leader = shrink(KRAFT, leader)

    pending = asked(leader)
    assert pending is not None
    assert pending.isr == {0}
    assert maximal_isr(KRAFT, leading(leader)) == {0, 1, 2}


def test_who_is_at_the_end_does_not_lag_until_something_is_appended() -> None:
    leader, _ = exchange(replica(0, partition("01")), replica(1))
    silent = lag_passes(leader, 1)

    assert asked(shrink(KRAFT, silent)) is None
    assert asked(shrink(KRAFT, append(KRAFT, leader, [Record(0, 1)]))) is None
    assert asked(shrink(KRAFT, append(KRAFT, silent, [Record(0, 1)]))) is not None


@pytest.mark.parametrize(("silent", "reached", "stays"), [(False, 1, True), (False, 0, False), (True, 1, False)])
def test_who_reached_the_end_of_its_last_fetch_was_caught_up_then(silent: bool, reached: int, stays: bool) -> None:
    """A leader that always appends is never reached, but its followers do not lag (updateFetchStateOrThrow)."""
    leader, follower = append(KRAFT, replica(0, partition("01")), [Record(0, 1)]), replica(1)
    leader, ahead = exchange(leader, follower)  # at offset 0, where the leader ends at 1
    leader = lag_passes(append(KRAFT, leader, [Record(0, 2)]), 1, silent=silent)

    leader, _ = exchange(leader, ahead if reached else follower)

    assert (asked(shrink(KRAFT, leader)) is None) is stays


def pending(parameters: Parameters = KRAFT) -> tuple[Replica, AlterPartition]:
    """A leader that asked for an ISR without 2 after it had written something that only 1 has."""
    leader, one = append(parameters, replica(0), [Record(0, 1)]), replica(1)
    for _ in range(2):
        leader, one = exchange(leader, one)
    leader = shrink(parameters, lag_passes(leader, 2))
    request = asked(leader)
    assert request is not None
    return leader, request


def test_a_committed_isr_moves_the_high_watermark() -> None:
    leader, request = pending()

    after = settle(KRAFT, leader, request, partition("01", version=1))

    assert (leading(after).isr, asked(after)) == (frozenset({0, 1}), None)
    assert (after.partition_epoch, after.high_watermark) == (1, 1)


@pytest.mark.parametrize("error", [Error.INELIGIBLE_REPLICA, Error.OPERATION_NOT_ATTEMPTED])
def test_these_errors_take_it_back(error: Error) -> None:
    leader, request = pending()

    after = settle(KRAFT, leader, request, error)

    assert (leading(after).isr, asked(after), after.high_watermark) == (frozenset({0, 1, 2}), None, 0)
    assert not sent_again(error)


@pytest.mark.parametrize("code", [74, 95, 42, 3, 100, 108])
def test_these_errors_leave_it_pending(code: int) -> None:
    leader, request = pending()

    assert settle(KRAFT, leader, request, Error(code)) == leader
    assert not sent_again(Error(code))


@pytest.mark.parametrize("error", [Error.NOT_CONTROLLER, Error.STALE_BROKER_EPOCH, Error.REQUEST_TIMED_OUT])
def test_after_other_errors_it_is_sent_again(error: Error) -> None:
    leader, request = pending()

    assert settle(KRAFT, leader, request, error) == leader
    assert sent_again(error)
    assert not sent_again(Error.NONE)


def test_an_answer_to_something_else_is_ignored() -> None:
    leader, request = pending()
    elsewhere = learn(KRAFT, leader, partition("01", epoch=1, version=1), BROKERS)

    assert settle(KRAFT, elsewhere, request, partition("01", version=1)) == elsewhere
    assert settle(KRAFT, replica(0, partition(leader=1)), request, partition()) == replica(0, partition(leader=1))


def test_a_leader_knows_that_metadata_has_yet_to_tell_what_its_answer_did() -> None:
    leader, request = pending()
    assert leading(settle(KRAFT, leader, request, partition("01", version=1))).ahead
    assert not leading(settle(KRAFT, leader, request, partition("01", version=0))).ahead
    at_zookeeper, request = pending(ZK)
    assert not leading(settle(ZK, at_zookeeper, request, partition("01", version=1))).ahead


def test_a_success_of_another_leader_epoch_or_an_older_one_is_left_to_metadata() -> None:
    leader, request = pending()
    ahead = leader._replace(partition_epoch=5)

    assert settle(KRAFT, leader, request, partition("01", epoch=1, version=1)) == leader
    assert settle(KRAFT, ahead, request, partition("01", version=1)) == ahead


def test_zookeeper_is_not_told_incarnations() -> None:
    leader, _ = exchange(replica(0, partition("0"), parameters=ZK), replica(1), ZK)

    request = asked(leader)
    assert request is not None
    assert request.epochs == ()
