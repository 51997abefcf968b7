"""What becomes of a partition when its brokers fall silent, come back, restart and shut down."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from lockstep_model.controller import Controller, fence, move, register, shut_down, unfence
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.registration import Register
from lockstep_model.replication.mutants import (
    ELECT_IN_SYNC,
    ELR_FORGETS_UNCLEAN,
    LAST_KNOWN_LEADER_ACTIVE,
    LAST_MEMBER_STAYS,
)
from tests.reference_model.partitions import (
    ALL,
    ELR,
    KRAFT,
    NOBODY,
    ZK,
    ExpectedPartition,
    broker_epoch,
    controller,
    everywhere,
    told,
    unclean,
    without,
)

KAFKA_39 = parameters_for("3.9.2", "kraft", min_isr=2)


class Case(NamedTuple):
    what: str
    before: Controller
    broker: int
    told: ExpectedPartition


def each(cases: list[Case]) -> pytest.MarkDecorator:
    parameters = [pytest.param(mode, case, id=f"{name}-{case.what}") for case in cases for name, mode in MODES.items()]
    return pytest.mark.parametrize(("parameters", "case"), parameters)


MODES = dict(zip(("zk", "kraft", "elr"), ALL, strict=True))

FENCED = [
    Case(
        "a follower",
        controller("123", 1),
        3,
        ExpectedPartition(zk="isr 12, leader 1; +1 +1", kraft="isr 12, leader 1; +0 +1", elr="isr 12, leader 1; +0 +1"),
    ),
    Case("the leader", controller("123", 1), 1, everywhere("isr 23, leader 2; +1 +1")),
    Case(
        "a leader whose next replica is out of sync",
        controller("13", 1),
        1,
        ExpectedPartition(
            zk="isr 3, leader 3; +1 +1", kraft="isr 3, leader 3; +1 +1", elr="isr 3, leader 3, elr 1; +1 +1"
        ),
    ),
    Case("who is out of sync", controller("12", 1), 3, everywhere("isr 12, leader 1; +0 +0")),
    Case(
        "below the minimum",
        controller("12", 1, fenced="3"),
        2,
        ExpectedPartition(
            zk="isr 1, leader 1; +1 +1", kraft="isr 1, leader 1; +0 +1", elr="isr 1, leader 1, elr 2; +0 +1"
        ),
    ),
    Case(
        "the last member",
        controller("1", 1, fenced="23"),
        1,
        ExpectedPartition(
            zk="isr 1, leader -; +1 +1",
            kraft="isr 1, leader -; +1 +1",
            elr="isr -, leader -, elr 1, last known 1; +1 +1",
        ),
    ),
    Case(
        "the last member, others out of sync",
        controller("1", 1),
        1,
        ExpectedPartition(
            zk="isr 1, leader -; +1 +1",
            kraft="isr 1, leader -; +1 +1",
            elr="isr -, leader -, elr 1, last known 1; +1 +1",
        ),
    ),
    Case("who is fenced already", controller("12", 1, fenced="3"), 3, everywhere("isr 12, leader 1; +0 +0")),
]


@pytest.mark.parametrize("parameters", [ZK, KRAFT], ids=["zk", "kraft"])
def test_nobody_is_fenced_twice(parameters: Parameters) -> None:
    before = controller("1", NOBODY, fenced="1")
    assert fence(parameters, before, 1) == before
    assert fence(parameters, before, 9) == before


def test_a_controller_that_raises_no_epoch_for_a_follower_is_not_zookeepers() -> None:
    other = replace(ZK, epoch_bump_on_isr_shrink=False)
    assert told(fence(other, controller("123", 1), 3)) == "isr 12, leader 1; +0 +1"
    assert told(fence(other, controller("1", 1), 1)) == "isr 1, leader -; +1 +1"


@each(FENCED)
def test_fencing(parameters: Parameters, case: Case) -> None:
    after = fence(parameters, case.before, case.broker)
    assert told(after) == case.told.of(parameters)
    assert not after.active(case.broker)


FENCED_UNCLEAN = [
    Case(
        "the leader, with others in sync",
        controller("12", 1),
        1,
        ExpectedPartition(
            zk="isr 2, leader 2; +1 +1", kraft="isr 2, leader 2; +1 +1", elr="isr 2, leader 2, elr 1; +1 +1"
        ),
    ),
    Case("the last member, with others there", controller("1", 1), 1, everywhere("isr 2, leader 2, recovering; +1 +1")),
    Case(
        "the last member, with nobody there",
        controller("1", 1, fenced="23"),
        1,
        ExpectedPartition(
            zk="isr 1, leader -; +1 +1",
            kraft="isr 1, leader -; +1 +1",
            elr="isr -, leader -, elr 1, last known 1; +1 +1",
        ),
    ),
]


@each(FENCED_UNCLEAN)
def test_fencing_with_unclean_elections(parameters: Parameters, case: Case) -> None:
    assert told(fence(unclean(parameters), case.before, case.broker)) == case.told.of(parameters)


def test_eligible_replica_leads_before_an_unclean_one() -> None:
    before = controller("2", 2, elr="3")
    assert told(fence(unclean(ELR), before, 2)) == "isr 3, leader 3, elr 2; +1 +1"


def test_kraft_raised_the_leader_epoch_with_every_smaller_isr_before_3_6() -> None:
    before = controller("123", 1)
    assert told(fence(parameters_for("3.5.2", "kraft", min_isr=2), before, 3)) == "isr 12, leader 1; +1 +1"
    assert told(fence(parameters_for("3.6.0", "kraft", min_isr=2), before, 3)) == "isr 12, leader 1; +0 +1"


UNFENCED = [
    Case("where somebody leads", controller("12", 1, fenced="3"), 3, everywhere("isr 12, leader 1; +0 +0")),
    Case("the last member", controller("1", NOBODY, fenced="123"), 1, everywhere("isr 1, leader 1; +1 +1")),
    Case("not the last member", controller("1", NOBODY, fenced="123"), 2, everywhere("isr 1, leader -; +0 +0")),
]


@each(UNFENCED)
def test_unfencing(parameters: Parameters, case: Case) -> None:
    """With ZooKeeper a broker that is heard again has registered again."""
    again = Register(case.broker, broker_epoch(case.broker) + 1)
    after = (
        register(parameters, case.before, again)[0]
        if parameters is ZK
        else unfence(parameters, case.before, case.broker)
    )
    assert told(after) == case.told.of(parameters)
    assert after.active(case.broker)


UNFENCED_ELR = [
    (controller("", NOBODY, elr="12", last_known="1", fenced="123"), 2, "isr 2, leader 2, elr 1; +1 +1"),
    (controller("", NOBODY, elr="12", last_known="1", fenced="123"), 3, "isr -, leader -, elr 12, last known 1; +0 +0"),
    (controller("", NOBODY, last_known="1", fenced="123"), 1, "isr 1, leader 1, recovering; +1 +1"),
    (controller("", NOBODY, last_known="1", fenced="123"), 2, "isr -, leader -, last known 1; +0 +0"),
    (controller("", NOBODY, last_known="12", fenced="123"), 1, "isr -, leader -, last known 1; +0 +0"),
]


@pytest.mark.parametrize(("before", "broker", "expected"), UNFENCED_ELR)
def test_unfencing_with_an_empty_isr(before: Controller, broker: int, expected: str) -> None:
    """An eligible replica leads; where there is none, the last known leader, which is unclean; and nobody else."""
    assert told(unfence(ELR, before, broker)) == expected


def test_the_last_leader_is_known_from_when_nobody_leads() -> None:
    """Though the ISR is not empty: its member has yet to come back after eligible leader replicas were enabled."""
    before = controller("12", 1, fenced="2")
    assert told(fence(ELR, before, 1)) == "isr 2, leader -, elr 1, last known 1; +1 +1"
    later = controller("2", NOBODY, elr="1", last_known="1", fenced="12")
    assert told(unfence(ELR, later, 2)) == "isr 2, leader 2, elr 1; +1 +1"


def test_unfencing_elects_uncleanly_where_that_is_allowed() -> None:
    before = controller("1", NOBODY, fenced="123")
    assert told(unfence(unclean(KRAFT), before, 2)) == "isr 2, leader 2, recovering; +1 +1"
    assert told(unfence(KRAFT, before, 2)) == "isr 1, leader -; +0 +0"


def test_who_is_shutting_down_is_not_unfenced() -> None:
    before = controller("1", NOBODY, fenced="1", leaving="1")
    assert unfence(KRAFT, before, 1) == before


RESTARTED_UNCLEANLY = [
    Case(
        "in sync",
        controller("12", 1, leaving="2"),
        2,
        ExpectedPartition(zk="isr 1, leader 1; +1 +1", kraft="isr 1, leader 1; +0 +1", elr="isr 1, leader 1; +0 +1"),
    ),
    Case("out of sync", controller("12", 1, fenced="3"), 3, everywhere("isr 12, leader 1; +0 +0")),
]


@each(RESTARTED_UNCLEANLY)
def test_restart(parameters: Parameters, case: Case) -> None:
    """Fast enough not to be fenced in between: the new process is out of the ISR all the same."""
    again = Register(case.broker, broker_epoch(case.broker) + 1, incarnation=1)
    after, error = register(parameters, case.before, again, session_over=True)
    assert (told(after), error) == (case.told.of(parameters), Error.NONE)
    restarted = after.broker(case.broker)
    assert restarted is not None
    assert (restarted.epoch, restarted.shutting_down) == (again.epoch, False)


def test_another_process_is_refused_while_the_first_has_a_session() -> None:
    before, again = controller("12", 1), Register(2, 21, incarnation=1)
    for parameters in (KRAFT, KAFKA_39):
        assert register(parameters, before, again) == (before, Error.DUPLICATE_BROKER_REGISTRATION)
        assert register(parameters, before, again, session_over=True)[1] is Error.NONE
    assert told(register(KRAFT, before, again, session_over=True)[0]) == "isr 1, leader 1; +0 +1"


def test_who_leaves_has_a_session_until_it_is_fenced() -> None:
    before, again = controller("1", 1, leaving="2"), Register(2, 21, incarnation=1)
    for parameters in (KRAFT, KAFKA_39):
        assert register(parameters, before, again) == (before, Error.DUPLICATE_BROKER_REGISTRATION)


def test_from_4_0_a_session_lasts_its_time_though_its_broker_left_in_good_order() -> None:
    before, again = controller("1", 1, leaving="2", fenced="2"), Register(2, 21, incarnation=1)
    assert register(KAFKA_39, before, again)[1] is Error.NONE
    assert register(KRAFT, before, again) == (before, Error.DUPLICATE_BROKER_REGISTRATION)
    assert register(KRAFT, before, again, session_over=True)[1] is Error.NONE


def test_before_4_0_another_process_stays_in_the_isr_until_it_is_fenced() -> None:
    after, _ = register(KAFKA_39, controller("12", 1), Register(2, 21, incarnation=1), session_over=True)
    assert told(after) == "isr 12, leader 1; +0 +0"


def test_the_same_process_registers_again_and_stays_who_it_is() -> None:
    before = controller("12", 1)
    assert register(KRAFT, before, Register(2, 21)) == (before, Error.NONE)


def test_zookeeper_takes_another_process_for_a_failure_and_a_start() -> None:
    before = controller("12", 1)
    after, _ = register(ZK, before, Register(1, 11))
    assert told(after) == "isr 2, leader 2; +1 +1"
    assert register(ZK, before, Register(1, broker_epoch(1))) == (before, Error.NONE)


@pytest.mark.parametrize(
    ("before", "clean", "unclean_end"),
    [
        (controller("1", 1, elr="2", fenced="2"), "isr 1, leader 1, elr 2; +0 +0", "isr 1, leader 1; +0 +1"),
        (
            controller("", NOBODY, elr="12", last_known="1", fenced="12"),
            "isr -, leader -, elr 12, last known 1; +0 +0",
            "isr -, leader -, elr 1, last known 1; +0 +1",
        ),
        (
            controller("", NOBODY, elr="2", last_known="1", fenced="2"),
            "isr -, leader -, elr 2, last known 1; +0 +0",
            "isr 1, leader 1, recovering; +1 +1",
        ),
    ],
)
def test_eligible_only_after_a_clean_end(before: Controller, clean: str, unclean_end: str) -> None:
    """In the last row the last known leader is there, and leads as soon as nobody else may."""
    again = Register(2, 21, incarnation=1)
    cleanly = again._replace(previous_epoch=broker_epoch(2))
    assert told(register(ELR, before, cleanly, session_over=True)[0]) == clean
    for wrong_epoch in (-1, broker_epoch(2) - 1, 21):
        uncleanly = again._replace(previous_epoch=wrong_epoch)
        assert told(register(ELR, before, uncleanly, session_over=True)[0]) == unclean_end


def test_who_comes_back_uncleanly_does_not_lead_before_it_is_unfenced() -> None:
    before, again = controller("2", 2, fenced="13"), Register(2, 21, incarnation=1)
    after, _ = register(unclean(ELR), before, again, session_over=True)
    assert told(after) == "isr -, leader -, last known 2; +1 +1"
    assert told(unfence(unclean(ELR), after, 2)) == "isr 2, leader 2, recovering; +2 +2"


def test_a_clean_end_keeps_nobody_in_the_isr() -> None:
    """Who is in the ISR when it registers again did not leave in good order, but it lost nothing and is eligible."""
    before = controller("12", 1)
    again = Register(2, 21, incarnation=1, previous_epoch=broker_epoch(2))
    assert told(register(ELR, before, again, session_over=True)[0]) == "isr 1, leader 1, elr 2; +0 +1"
    again = again._replace(previous_epoch=-1)
    assert told(register(ELR, before, again, session_over=True)[0]) == "isr 1, leader 1; +0 +1"


def test_a_new_broker_waits_for_being_unfenced_but_not_with_zookeeper() -> None:
    nobody = Controller()
    assert not register(KRAFT, nobody, Register(1, 10))[0].active(1)
    assert register(ZK, nobody, Register(1, 10))[0].active(1)


class Shutdown(NamedTuple):
    what: str
    before: Controller
    zk: tuple[str, bool]
    kraft: tuple[str, bool]
    elr: tuple[str, bool]


SHUTDOWNS = [
    Shutdown(
        "a leader among others",
        controller("123", 1),
        zk=("isr 23, leader 2; +1 +1", True),
        kraft=("isr 23, leader 2; +1 +1", False),
        elr=("isr 23, leader 2; +1 +1", False),
    ),
    Shutdown(
        "a follower",
        controller("123", 2),
        zk=("isr 23, leader 2; +1 +1", True),
        kraft=("isr 23, leader 2; +0 +1", True),
        elr=("isr 23, leader 2; +0 +1", True),
    ),
    Shutdown(
        "the last member",
        controller("1", 1),
        zk=("isr 1, leader 1; +0 +0", False),
        kraft=("isr 1, leader -; +1 +1", False),
        elr=("isr -, leader -, elr 1, last known 1; +1 +1", False),
    ),
]


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
@pytest.mark.parametrize("case", SHUTDOWNS, ids=[case.what for case in SHUTDOWNS])
def test_controlled_shutdown(parameters: Parameters, case: Shutdown) -> None:
    after, answer = shut_down(parameters, case.before, 1, broker_epoch(1))
    expected = case.zk if parameters is ZK else case.elr if parameters is ELR else case.kraft
    assert (told(after), answer.granted) == expected
    assert answer.error is Error.NONE
    assert not after.active(1)


def test_kraft_lets_a_leader_go_when_all_know() -> None:
    leaving, _ = shut_down(KRAFT, controller("123", 1), 1, broker_epoch(1))
    waits, answer = shut_down(KRAFT, leaving, 1, broker_epoch(1), others_know=False)
    assert (waits, answer.granted) == (leaving, False)
    gone, answer = shut_down(KRAFT, leaving, 1, broker_epoch(1))
    assert answer.granted
    assert gone.partition == leaving.partition
    assert gone == leaving.marked(1, fenced=True)
    assert shut_down(KRAFT, gone, 1, broker_epoch(1)) == (gone, answer)


def test_kraft_lets_nobody_go_who_leads_another_partition() -> None:
    """BrokersToIsrs.hasLeaderships is about all partitions."""
    leaving, answer = shut_down(KRAFT, controller("123", 2), 1, broker_epoch(1), leads_elsewhere=True)
    assert (told(leaving), answer.granted) == ("isr 23, leader 2; +0 +1", False)
    assert leaving.partition == fence(KRAFT, controller("123", 2), 1).partition
    assert shut_down(KRAFT, leaving, 1, broker_epoch(1), leads_elsewhere=True) == (leaving, answer)
    assert shut_down(KRAFT, leaving, 1, broker_epoch(1)) == (leaving.marked(1, fenced=True), (Error.NONE, True))


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_shutdown_of_an_earlier_process_is_refused(parameters: Parameters) -> None:
    before = controller("123", 1)
    after, answer = shut_down(parameters, before, 1, broker_epoch(1) - 1)
    assert (after, answer) == (before, (Error.STALE_BROKER_EPOCH, False))


def test_zookeeper_knows_no_broker_without_a_znode() -> None:
    before = controller("123", 2, fenced="1")
    assert shut_down(ZK, before, 1, broker_epoch(1))[1].error is Error.BROKER_NOT_AVAILABLE


def test_zookeeper_no_longer_counts_who_has_left_among_those_that_leave() -> None:
    leaving, _ = shut_down(ZK, controller("123", 2), 1, broker_epoch(1))
    assert fence(ZK, leaving, 1) == leaving.marked(1, fenced=True, shutting_down=False)


def test_zookeeper_does_not_wait_for_the_leader_of_a_single_replica() -> None:
    after, answer = shut_down(ZK, controller("1", 1, replicas="1"), 1, broker_epoch(1))
    assert (told(after), answer.granted) == ("isr 1, leader 1; +0 +0", True)
    assert told(fence(ZK, after, 1)) == "isr 1, leader -; +1 +1"


def test_zookeeper_forgets_who_was_shutting_down_when_the_controller_moves() -> None:
    before = controller("12", NOBODY, leaving="12", fenced="3")
    after = move(ZK, before)
    assert (told(after), after.epoch) == ("isr 12, leader 1; +1 +1", 1)
    assert after.active(1)
    assert told(move(ZK, controller("1", NOBODY, fenced="1"))) == "isr 1, leader -; +1 +1"


def test_kraft_forgets_nothing_when_the_controller_moves() -> None:
    before = controller("12", 1, leaving="2", fenced="3")
    assert move(KRAFT, before) == before._replace(epoch=1)


@pytest.mark.parametrize(
    ("guard", "parameters", "before", "with_it", "without_it"),
    [
        (ELECT_IN_SYNC, KRAFT, controller("13", 1), "isr 3, leader 3; +1 +1", "isr 3, leader 2; +1 +1"),
        (ELECT_IN_SYNC, ZK, controller("13", 1), "isr 3, leader 3; +1 +1", "isr 3, leader 2; +1 +1"),
        (LAST_MEMBER_STAYS, KRAFT, controller("1", 1), "isr 1, leader -; +1 +1", "isr -, leader -; +1 +1"),
        (LAST_MEMBER_STAYS, ZK, controller("1", 1), "isr 1, leader -; +1 +1", "isr -, leader -; +1 +1"),
    ],
)
def test_fencing_without_a_guard(
    guard: str, parameters: Parameters, before: Controller, with_it: str, without_it: str
) -> None:
    assert told(fence(parameters, before, 1)) == with_it
    assert told(fence(without(parameters, guard), before, 1)) == without_it


def test_registering_without_forgetting() -> None:
    before, again = controller("1", 1, elr="2", fenced="2"), Register(2, 21, incarnation=1)
    forgetful = without(ELR, ELR_FORGETS_UNCLEAN)
    assert told(register(ELR, before, again, session_over=True)[0]) == "isr 1, leader 1; +0 +1"
    assert told(register(forgetful, before, again, session_over=True)[0]) == "isr 1, leader 1, elr 2; +0 +0"


def test_the_last_known_leader_leads_only_where_it_is() -> None:
    """KAFKA-19522: builds before its fix elect a broker that is not there."""
    before = controller("", NOBODY, last_known="1", fenced="123")
    assert told(unfence(ELR, before, 2)) == "isr -, leader -, last known 1; +0 +0"
    broken = without(ELR, LAST_KNOWN_LEADER_ACTIVE)
    assert told(unfence(broken, before, 2)) == "isr 1, leader 1, recovering; +1 +1"
