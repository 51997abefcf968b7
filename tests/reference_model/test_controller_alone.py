"""Everything that can happen to a controller within small bounds, and what a missing guard leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_model.controller.alone import Bounds, machine
from reference_model.mutants import (
    BROKER_EPOCH_OF_MEMBERS,
    ELECT_IN_SYNC,
    ELR_FORGETS_UNCLEAN,
    FENCED_CANNOT_JOIN,
    LAST_KNOWN_LEADER_ACTIVE,
    LAST_MEMBER_STAYS,
    PARTITION_EPOCH_OF_ISR,
)
from reference_model.parameters import Parameters
from reference_model.search import explore, names_of
from tests.reference_model.partitions import ELR, KRAFT, ZK, unclean, without

KIP_903 = "candidates-proven"
"""The only one that ZooKeeper's controller breaks: nobody asks there under which epoch a member was seen."""

TWO = Bounds(partition_epoch=3, registrations=1, moves=1)
ONE_CONTROLLER = Bounds(partition_epoch=4, registrations=1)
THREE = Bounds(partition_epoch=2, registrations=1)
REASSIGNED = Bounds(partition_epoch=2, registrations=0, assignments=((0,), (2, 1), (0, 1, 2)))


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
        pytest.param(KRAFT, THREE._replace(partition_epoch=3), id="kraft-3-further", marks=pytest.mark.long),
        pytest.param(ELR, THREE._replace(partition_epoch=3), id="elr-3-further", marks=pytest.mark.long),
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


MUTANTS = [
    (FENCED_CANNOT_JOIN, KRAFT, "no-fenced-member", 4),
    (FENCED_CANNOT_JOIN, ELR, "no-fenced-member", 4),
    (FENCED_CANNOT_JOIN, ZK, "no-fenced-member", 4),
    (BROKER_EPOCH_OF_MEMBERS, KRAFT, "candidates-proven", 7),
    (PARTITION_EPOCH_OF_ISR, KRAFT, "candidates-proven", 3),
    (PARTITION_EPOCH_OF_ISR, ELR, "candidates-proven", 5),
    (ELR_FORGETS_UNCLEAN, ELR, "candidates-proven", 3),
    (ELECT_IN_SYNC, KRAFT, "leader-in-isr", 2),
    (ELECT_IN_SYNC, ELR, "leader-in-isr", 4),
    (ELECT_IN_SYNC, ZK, "leader-in-isr", 2),
    (LAST_KNOWN_LEADER_ACTIVE, ELR, "leader-is-there", 6),
    (LAST_MEMBER_STAYS, KRAFT, "somebody-may-lead", 2),
    (LAST_MEMBER_STAYS, ZK, "somebody-may-lead", 2),
]


@pytest.mark.parametrize(("guard", "parameters", "invariant", "depth"), MUTANTS)
def test_every_guard_is_needed(guard: str, parameters: Parameters, invariant: str, depth: int) -> None:
    """The shortest way to what goes wrong without it; with it, nothing does as far as that."""
    missing = machine(of(without(parameters, guard), 2), ONE_CONTROLLER)
    assert explore(missing, depth=depth).violations[invariant].depth == depth
    assert invariant not in explore(machine(of(parameters, 2), ONE_CONTROLLER), depth=depth).violations


def test_what_is_looked_at() -> None:
    names = names_of(machine(KRAFT, TWO))
    assert set(names) == {
        "epochs-rise",
        "leader-in-isr",
        "leader-is-there",
        "no-fenced-member",
        "valid-isr-and-elr",
        "somebody-may-lead",
        "candidates-proven",
    }
    assert "somebody-may-lead" not in names_of(machine(ELR, TWO))
