"""Everything that can happen to a controller within small bounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.controller.standalone import Bounds, last_leader_known, machine
from lockstep_model.parameters import Parameters
from lockstep_model.search import explore, names_of
from tests.reference_model.partitions import ELR, KRAFT, NOBODY, ZK, controller, unclean

KIP_903 = "candidates-proven"
"""The only one that ZooKeeper's controller breaks: nobody asks there under which epoch a member was seen."""

TWO = Bounds(partition_epochs=3, registrations=1, moves=1)
THREE = Bounds(partition_epochs=2, registrations=1)
REASSIGNED = Bounds(partition_epochs=2, registrations=0, assignments=((0,), (2, 1), (0, 1, 2)))


def of(parameters: Parameters, brokers: int) -> Parameters:
    return replace(parameters, replication=brokers)


@pytest.mark.parametrize(
    ("parameters", "bounds"),
    [
        pytest.param(of(KRAFT, 2), TWO, id="kraft-2"),
        pytest.param(of(ELR, 2), TWO, id="elr-2"),
        pytest.param(of(unclean(KRAFT), 2), TWO, id="kraft-2-unclean"),
        pytest.param(of(unclean(ELR), 2), TWO, id="elr-2-unclean"),
        pytest.param(KRAFT, THREE, id="kraft-3"),
        pytest.param(ELR, THREE, id="elr-3"),
        pytest.param(KRAFT, replace(THREE, partition_epochs=3), id="kraft-3-further", marks=pytest.mark.long),
        pytest.param(ELR, replace(THREE, partition_epochs=3), id="elr-3-further", marks=pytest.mark.long),
        pytest.param(KRAFT, REASSIGNED, id="kraft-reassigned"),
    ],
)
def test_kraft_keeps_every_invariant(parameters: Parameters, bounds: Bounds) -> None:
    exploration = explore(machine(parameters, bounds))
    assert exploration.complete
    assert exploration.violations == {}


@pytest.mark.parametrize(
    ("parameters", "bounds"),
    [
        pytest.param(of(ZK, 2), TWO, id="zk-2"),
        pytest.param(of(unclean(ZK), 2), TWO, id="zk-2-unclean"),
        pytest.param(ZK, THREE, id="zk-3", marks=pytest.mark.long),
        pytest.param(ZK, REASSIGNED, id="zk-reassigned"),
    ],
)
def test_zookeeper_keeps_every_other_invariant(parameters: Parameters, bounds: Bounds) -> None:
    exploration = explore(machine(parameters, bounds))
    assert exploration.complete
    assert exploration.violations.keys() <= {KIP_903}


def test_zookeeper_takes_a_broker_that_restarted_since_it_was_seen() -> None:
    """The loss that KIP-903 describes: the broker was out of the ISR, so its restart changed no epoch."""
    violation = explore(machine(of(ZK, 2), TWO), depth=5).violations[KIP_903]
    assert violation.trace == (
        "0 proposes an ISR",
        "0 sees 1 catch up",
        "1 crashes",
        "1 starts",
        "0 proposes an ISR",
    )


def test_who_holds_no_replica_stays_eligible() -> None:
    """What the published specification rules out, and Kafka's code does not."""
    violation = explore(machine(ELR, REASSIGNED), depth=1).violations["valid-isr-and-elr"]
    assert violation.trace == ("to be reassigned to (0,)",)


def test_what_is_looked_at() -> None:
    names = names_of(machine(KRAFT, TWO))
    assert set(names) == {
        "epochs-rise",
        "leader-in-isr",
        "leader-is-there",
        "no-fenced-member",
        "valid-isr-and-elr",
        "a-replica-may-lead",
        "candidates-proven",
    }
    assert set(names_of(machine(ELR, TWO))) == set(names) - {"a-replica-may-lead"} | {"last-leader-known"}


def test_the_last_leader_is_known_where_nobody_is_complete() -> None:
    assert last_leader_known(controller("", NOBODY, last_known="1"))
    assert last_leader_known(controller("", NOBODY, elr="1"))
    assert not last_leader_known(controller("", NOBODY))
    assert not last_leader_known(controller("", NOBODY, last_known="12"))
