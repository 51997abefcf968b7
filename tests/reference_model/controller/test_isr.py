"""Which ISRs a controller accepts, and what it says to the others."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lockstep_model.controller import Controller, alter_partition
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters, parameters_for
from lockstep_model.registration import AlterPartition
from lockstep_model.replication.mutants import BROKER_EPOCH_OF_MEMBERS, FENCED_CANNOT_JOIN, PARTITION_EPOCH_OF_ISR
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
    without,
)


def asks(
    broker: int,
    isr: str,
    *,
    leader_epoch: int = LEADER_EPOCH,
    partition_epoch: int = PARTITION_EPOCH,
    restarted: str = "",
    recovering: bool = False,
) -> AlterPartition:
    """A request with the epochs of its members, of which some have restarted since."""
    return AlterPartition(
        broker=broker,
        broker_epoch=broker_epoch(broker),
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        isr=ids(isr),
        epochs=tuple((member, broker_epoch(member) - (member in ids(restarted))) for member in sorted(ids(isr))),
        recovering=recovering,
    )


class AcceptedIsr(NamedTuple):
    what: str
    before: Controller
    request: AlterPartition
    told: str
    elr: str = ""
    """Where it is different."""


ACCEPTED = [
    AcceptedIsr("one more", controller("12", 1), asks(1, "123"), "isr 123, leader 1; +0 +1"),
    AcceptedIsr("one less", controller("123", 1), asks(1, "13"), "isr 13, leader 1; +0 +1"),
    AcceptedIsr(
        "less than the minimum",
        controller("123", 1),
        asks(1, "1"),
        "isr 1, leader 1; +0 +1",
        elr="isr 1, leader 1, elr 23; +0 +1",
    ),
    AcceptedIsr("the same", controller("12", 1), asks(1, "12"), "isr 12, leader 1; +0 +0"),
    AcceptedIsr(
        "the end of a recovery",
        controller("1", 1, recovering=True),
        asks(1, "1"),
        "isr 1, leader 1; +0 +1",
    ),
    AcceptedIsr(
        "a recovery that goes on",
        controller("1", 1, recovering=True),
        asks(1, "1", recovering=True),
        "isr 1, leader 1, recovering; +0 +0",
    ),
    AcceptedIsr(
        "more, with the end of a recovery",
        controller("1", 1, recovering=True),
        asks(1, "12"),
        "isr 12, leader 1; +0 +1",
    ),
]


@pytest.mark.parametrize("parameters", ALL, ids=["zk", "kraft", "elr"])
@pytest.mark.parametrize("case", ACCEPTED, ids=[case.what for case in ACCEPTED])
def test_accepted(parameters: Parameters, case: AcceptedIsr) -> None:
    after, error = alter_partition(parameters, case.before, case.request)
    assert (told(after), error) == (case.elr if case.elr and parameters is ELR else case.told, Error.NONE)


def test_enough_members_make_the_eligible_ones_forgotten() -> None:
    before = controller("1", 1, elr="3")
    assert told(alter_partition(ELR, before, asks(1, "12"))[0]) == "isr 12, leader 1; +0 +1"


def test_an_eligible_replica_that_joins_is_a_member_and_no_longer_eligible() -> None:
    three = parameters_for("4.1.0", "kraft", min_isr=3)
    before = controller("1", 1, elr="23")
    assert told(alter_partition(three, before, asks(1, "12"))[0]) == "isr 12, leader 1, elr 3; +0 +1"


def test_kraft_before_3_6_raised_the_leader_epoch_when_a_leader_made_its_isr_smaller() -> None:
    before, old = controller("123", 1), parameters_for("3.5.2", "kraft")
    assert told(alter_partition(old, before, asks(1, "12"))[0]) == "isr 12, leader 1; +1 +1"
    assert told(alter_partition(old, controller("12", 1), asks(1, "123"))[0]) == "isr 123, leader 1; +0 +1"
    assert told(alter_partition(ZK, before, asks(1, "12"))[0]) == "isr 12, leader 1; +0 +1"
    recovering = controller("1", 1, recovering=True)
    assert told(alter_partition(old, recovering, asks(1, "1"))[0]) == "isr 1, leader 1; +0 +1"


def test_a_broker_whose_epoch_the_leader_does_not_know_may_join() -> None:
    request = asks(1, "123")._replace(epochs=((1, broker_epoch(1)),))
    assert alter_partition(KRAFT, controller("12", 1), request)[1] is Error.NONE


class RefusedIsr(NamedTuple):
    what: str
    before: Controller
    request: AlterPartition
    kraft: Error
    zk: Error


HEALTHY = controller("12", 1)

REFUSED = [
    RefusedIsr(
        "an earlier process",
        HEALTHY,
        asks(1, "123")._replace(broker_epoch=broker_epoch(1) - 1),
        Error.STALE_BROKER_EPOCH,
        Error.STALE_BROKER_EPOCH,
    ),
    RefusedIsr(
        "a later leader epoch",
        HEALTHY,
        asks(1, "123", leader_epoch=LEADER_EPOCH + 1),
        Error.NOT_CONTROLLER,
        Error.NOT_CONTROLLER,
    ),
    RefusedIsr(
        "a later partition epoch",
        HEALTHY,
        asks(1, "123", partition_epoch=PARTITION_EPOCH + 1),
        Error.NOT_CONTROLLER,
        Error.NOT_CONTROLLER,
    ),
    RefusedIsr(
        "an earlier leader epoch",
        HEALTHY,
        asks(1, "123", leader_epoch=LEADER_EPOCH - 1),
        Error.FENCED_LEADER_EPOCH,
        Error.FENCED_LEADER_EPOCH,
    ),
    RefusedIsr(
        "an earlier partition epoch",
        HEALTHY,
        asks(1, "123", partition_epoch=PARTITION_EPOCH - 1),
        Error.INVALID_UPDATE_VERSION,
        Error.INVALID_UPDATE_VERSION,
    ),
    RefusedIsr(
        "what is so already, with an earlier partition epoch",
        HEALTHY,
        asks(1, "12", partition_epoch=PARTITION_EPOCH - 1),
        Error.INVALID_UPDATE_VERSION,
        Error.NONE,
    ),
    RefusedIsr("not the leader", HEALTHY, asks(2, "123"), Error.INVALID_REQUEST, Error.NONE),
    RefusedIsr("nobody leads", controller("1", NOBODY), asks(1, "12"), Error.INVALID_REQUEST, Error.NONE),
    RefusedIsr("without itself", HEALTHY, asks(1, "2"), Error.INVALID_REQUEST, Error.NONE),
    RefusedIsr("no replica", HEALTHY, asks(1, "14"), Error.INVALID_REQUEST, Error.NONE),
    RefusedIsr(
        "others, while it recovers",
        controller("1", 1, recovering=True),
        asks(1, "12", recovering=True),
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
    ),
    RefusedIsr(
        "a recovery that nobody asked for",
        HEALTHY,
        asks(1, "1", recovering=True),
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
    ),
    RefusedIsr(
        "a fenced broker",
        controller("12", 1, fenced="3"),
        asks(1, "123"),
        Error.INELIGIBLE_REPLICA,
        Error.INELIGIBLE_REPLICA,
    ),
    RefusedIsr(
        "a broker that shuts down",
        controller("12", 1, leaving="3"),
        asks(1, "123"),
        Error.INELIGIBLE_REPLICA,
        Error.INELIGIBLE_REPLICA,
    ),
    RefusedIsr("a broker that restarted", HEALTHY, asks(1, "123", restarted="3"), Error.INELIGIBLE_REPLICA, Error.NONE),
]
"""Where ZooKeeper refuses nothing, it does not look: it must not come to that (2.2.6)."""


@pytest.mark.parametrize("parameters", ALL, ids=["zk", "kraft", "elr"])
@pytest.mark.parametrize("case", REFUSED, ids=[case.what for case in REFUSED])
def test_refused(parameters: Parameters, case: RefusedIsr) -> None:
    after, error = alter_partition(parameters, case.before, case.request)
    assert error is (case.zk if parameters.mode is Mode.ZK else case.kraft)
    assert (after == case.before) or error is Error.NONE


@pytest.mark.parametrize("parameters", ALL, ids=["zk", "kraft", "elr"])
def test_no_such_partition(parameters: Parameters) -> None:
    empty = HEALTHY._replace(partition=Controller().partition)
    assert alter_partition(parameters, empty, asks(1, "12")) == (empty, Error.UNKNOWN_TOPIC_ID)


ORDER = [
    (asks(1, "4", leader_epoch=LEADER_EPOCH + 1)._replace(broker_epoch=0), Error.STALE_BROKER_EPOCH),
    (asks(1, "4", leader_epoch=LEADER_EPOCH - 1, partition_epoch=PARTITION_EPOCH + 1), Error.NOT_CONTROLLER),
    (asks(2, "4", leader_epoch=LEADER_EPOCH - 1, partition_epoch=PARTITION_EPOCH - 1), Error.FENCED_LEADER_EPOCH),
    (asks(2, "3", partition_epoch=PARTITION_EPOCH - 1), Error.INVALID_REQUEST),
    (asks(1, "3", partition_epoch=PARTITION_EPOCH - 1), Error.INVALID_UPDATE_VERSION),
    (asks(1, "34"), Error.INVALID_REQUEST),
    (asks(1, "13", recovering=True), Error.INVALID_REQUEST),
    (asks(1, "13"), Error.INELIGIBLE_REPLICA),
]
"""Each is wrong in all that the ones below it are, and in one thing more, which comes first."""


@pytest.mark.parametrize(("request_", "error"), ORDER)
def test_order_of_refusals_with_kraft(request_: AlterPartition, error: Error) -> None:
    assert alter_partition(KRAFT, controller("12", 1, fenced="34"), request_)[1] is error


def test_zookeeper_believes_who_asks_to_be_the_leader() -> None:
    """It does not look, so it must be that only one broker can know the leader epoch and not lead."""
    after, _ = alter_partition(ZK, HEALTHY, asks(2, "2"))
    assert told(after) == "isr 2, leader 2; +0 +1"


@pytest.mark.parametrize(
    ("guard", "parameters", "before", "request_", "with_it"),
    [
        (
            FENCED_CANNOT_JOIN,
            KRAFT,
            controller("12", 1, fenced="3"),
            asks(1, "123"),
            Error.INELIGIBLE_REPLICA,
        ),
        (FENCED_CANNOT_JOIN, ZK, controller("12", 1, fenced="3"), asks(1, "123"), Error.INELIGIBLE_REPLICA),
        (BROKER_EPOCH_OF_MEMBERS, ELR, HEALTHY, asks(1, "123", restarted="3"), Error.INELIGIBLE_REPLICA),
        (
            PARTITION_EPOCH_OF_ISR,
            KRAFT,
            HEALTHY,
            asks(1, "123", partition_epoch=PARTITION_EPOCH - 1),
            Error.INVALID_UPDATE_VERSION,
        ),
        (
            PARTITION_EPOCH_OF_ISR,
            ZK,
            HEALTHY,
            asks(1, "123", partition_epoch=PARTITION_EPOCH - 1),
            Error.INVALID_UPDATE_VERSION,
        ),
    ],
)
def test_accepted_without_a_guard(
    guard: str, parameters: Parameters, before: Controller, request_: AlterPartition, with_it: Error
) -> None:
    assert alter_partition(parameters, before, request_) == (before, with_it)
    after, error = alter_partition(without(parameters, guard), before, request_)
    assert (told(after), error) == ("isr 123, leader 1; +0 +1", Error.NONE)
