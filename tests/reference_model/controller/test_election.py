"""Elections that somebody asks for, and what forgets the eligible leader replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import pytest

from lockstep_model.controller import (
    Controller,
    alter_partition,
    elect_preferred,
    elect_unclean,
    fence,
    min_isr_changed,
    scan_leaderless,
    unclean_enabled,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters, parameters_for
from lockstep_model.registration import AlterPartition
from tests.reference_model.partitions import (
    ALL,
    ELR,
    KRAFT,
    LEADER_EPOCH,
    NOBODY,
    PARTITION_EPOCH,
    ZK,
    broker_epoch,
    controller,
    ids,
    told,
    unclean,
)

MODES = ["zk", "kraft", "elr"]

Election: TypeAlias = Callable[[Parameters, Controller], tuple[Controller, Error]]


class Case(NamedTuple):
    what: str
    before: Controller
    kraft: tuple[str, Error]
    zk: tuple[str, Error] | None = None
    """Where it is different."""

    def expected(self, parameters: Parameters) -> tuple[str, Error]:
        return self.zk if self.zk is not None and parameters.mode is Mode.ZK else self.kraft


PREFERRED = [
    Case("in sync", controller("123", 2), ("isr 123, leader 1; +1 +1", Error.NONE)),
    Case("leads already", controller("123", 1), ("isr 123, leader 1; +0 +0", Error.ELECTION_NOT_NEEDED)),
    Case("out of sync", controller("23", 2), ("isr 23, leader 2; +0 +0", Error.PREFERRED_LEADER_NOT_AVAILABLE)),
    Case(
        "shutting down",
        controller("23", 2, leaving="1"),
        ("isr 23, leader 2; +0 +0", Error.PREFERRED_LEADER_NOT_AVAILABLE),
    ),
    Case(
        "nobody leads, and it is not there",
        controller("1", NOBODY, fenced="1"),
        ("isr 1, leader -; +0 +0", Error.PREFERRED_LEADER_NOT_AVAILABLE),
    ),
    Case(
        "another one could lead where nobody does",
        controller("2", NOBODY),
        ("isr 2, leader 2; +1 +1", Error.NONE),
        zk=("isr 2, leader -; +0 +0", Error.PREFERRED_LEADER_NOT_AVAILABLE),
    ),
]


@pytest.mark.parametrize("parameters", ALL[:2], ids=MODES[:2])
@pytest.mark.parametrize("case", PREFERRED, ids=[case.what for case in PREFERRED])
def test_preferred(parameters: Parameters, case: Case) -> None:
    after, error = elect_preferred(parameters, case.before)
    assert (told(after), error) == case.expected(parameters)


UNCLEAN = [
    Case(
        "nobody in sync",
        controller("1", NOBODY, fenced="1"),
        ("isr 2, leader 2, recovering; +1 +1", Error.NONE),
    ),
    Case(
        "somebody in sync comes first",
        controller("3", NOBODY, fenced="1"),
        ("isr 3, leader 3; +1 +1", Error.NONE),
    ),
    Case("somebody leads", controller("1", 1), ("isr 1, leader 1; +0 +0", Error.ELECTION_NOT_NEEDED)),
    Case(
        "nobody there",
        controller("1", NOBODY, fenced="123"),
        ("isr 1, leader -; +0 +0", Error.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ),
    Case(
        "who leads is shutting down, which only ZooKeeper lets a leader do",
        controller("1", 1, leaving="1"),
        ("isr 1, leader 1; +0 +0", Error.ELECTION_NOT_NEEDED),
        zk=("isr 2, leader 2, recovering; +1 +1", Error.NONE),
    ),
]


@pytest.mark.parametrize("parameters", ALL[:2], ids=MODES[:2])
@pytest.mark.parametrize("case", UNCLEAN, ids=[case.what for case in UNCLEAN])
def test_unclean(parameters: Parameters, case: Case) -> None:
    """Whether or not the topic allows unclean elections on their own."""
    after, error = elect_unclean(parameters, case.before)
    assert (told(after), error) == case.expected(parameters)


WITH_ELR = [
    (
        elect_unclean,
        controller("", NOBODY, elr="1", last_known="3", fenced="1"),
        ("isr 2, leader 2, recovering; +1 +1", Error.NONE),
    ),
    (
        elect_unclean,
        controller("", NOBODY, elr="13", last_known="1", fenced="1"),
        ("isr 3, leader 3, elr 1; +1 +1", Error.NONE),
    ),
    (
        elect_unclean,
        controller("", NOBODY, last_known="3", fenced="1"),
        ("isr 3, leader 3, recovering; +1 +1", Error.NONE),
    ),
    (
        elect_unclean,
        controller("", NOBODY, last_known="3", fenced="3"),
        ("isr 1, leader 1, recovering; +1 +1", Error.NONE),
    ),
    (
        elect_preferred,
        controller("", NOBODY, elr="2", last_known="3", fenced="1"),
        ("isr 2, leader 2; +1 +1", Error.NONE),
    ),
    (
        elect_preferred,
        controller("", NOBODY, last_known="3", fenced="1"),
        ("isr 3, leader 3, recovering; +1 +1", Error.NONE),
    ),
    (
        elect_preferred,
        controller("2", 2, elr="1"),
        ("isr 2, leader 2, elr 1; +0 +0", Error.PREFERRED_LEADER_NOT_AVAILABLE),
    ),
]
"""Who is eligible comes first, then the last known leader if it is there, then anybody."""


@pytest.mark.parametrize(("election", "before", "expected"), WITH_ELR)
def test_with_eligible_replicas(election: Election, before: Controller, expected: tuple[str, Error]) -> None:
    after, error = election(ELR, before)
    assert (told(after), error) == expected


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_no_such_partition(parameters: Parameters) -> None:
    empty = controller("12", 1)._replace(partition=Controller().partition)
    for election in (elect_preferred, elect_unclean):
        assert election(parameters, empty) == (empty, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_changed_minimum_forgets_who_was_eligible() -> None:
    before = controller("1", 1, elr="2")
    assert told(min_isr_changed(ELR, before)) == "isr 1, leader 1; +0 +1"
    leaderless = controller("", NOBODY, elr="2", last_known="1")
    assert told(min_isr_changed(ELR, leaderless)) == "isr -, leader -; +0 +1"


@pytest.mark.parametrize("parameters", [ZK, KRAFT, ELR], ids=MODES)
def test_a_changed_minimum_changes_nothing_where_nobody_was_eligible(parameters: Parameters) -> None:
    before = controller("12", 1)
    assert min_isr_changed(parameters, before) == before


LEADERLESS = controller("1", NOBODY, fenced="1")


def test_zookeeper_elects_uncleanly_as_soon_as_it_may_and_kraft_when_it_looks() -> None:
    elected = "isr 2, leader 2, recovering; +1 +1"
    assert told(unclean_enabled(unclean(ZK), LEADERLESS)) == elected
    assert scan_leaderless(unclean(ZK), LEADERLESS) == LEADERLESS
    assert unclean_enabled(unclean(KRAFT), LEADERLESS) == LEADERLESS
    assert told(scan_leaderless(unclean(KRAFT), LEADERLESS)) == elected


@pytest.mark.parametrize("parameters", [ZK, KRAFT], ids=MODES[:2])
def test_nobody_is_elected_uncleanly_where_that_is_not_allowed_or_not_needed(parameters: Parameters) -> None:
    led = controller("1", 1)
    for event in (unclean_enabled, scan_leaderless):
        assert event(parameters, LEADERLESS) == LEADERLESS
        assert event(unclean(parameters), led) == led


def test_kraft_did_not_look_at_unclean_elections_before_3_9() -> None:
    """ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic of 3.6 says no, whatever is set."""
    for version, mode, counts in (("3.6.2", "kraft", False), ("3.9.2", "kraft", True), ("3.6.2", "zk", True)):
        assert parameters_for(version, mode, unclean=True).unclean is counts


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    five = replace(ELR, min_isr=5)
    assert told(fence(five, controller("123", 1), 3)) == "isr 12, leader 1, elr 3; +0 +1"
    whole = AlterPartition(1, broker_epoch(1), LEADER_EPOCH, PARTITION_EPOCH, ids("12"))
    after, _ = alter_partition(five, controller("1", 1, elr="2", replicas="12"), whole)
    assert told(after) == "isr 12, leader 1; +0 +1"
    assert told(fence(replace(five, min_isr=2), controller("123", 1), 3)) == "isr 12, leader 1; +0 +1"
