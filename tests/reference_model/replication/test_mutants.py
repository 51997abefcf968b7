"""Guards of replication that are not needed where another one is, or only after many steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep.exploration.ours import CONTROLLER, REPLICATION
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.replication import mutants
from lockstep_model.replication.machine import replication_machine
from lockstep_model.replication.state import Bounds
from lockstep_model.search import explore
from tests.reference_model.walks import ALL_LEARN, follow

ZK = parameters_for("3.9.2", "zk")
KRAFT = parameters_for("3.9.2", "kraft")

TWO = Bounds(brokers=2, in_sync=2, leader_epochs=1, partition_epochs=1, fencings=0, delays=0)
ALONE = replace(TWO, in_sync=1, leader_epochs=0)
"""The leader is alone in the ISR, and the other one has yet to join."""


def without(parameters: Parameters, *guards: str) -> Parameters:
    return replace(parameters, dropped=frozenset(guards))


DOUBLED = [
    (mutants.RESPONSE_OFFSET, KRAFT, replace(TWO, records=2, fencings=1, delays=1)),
    (mutants.PARTITION_EPOCH_OF_ISR, ZK, replace(ALONE, leader_epochs=2, partition_epochs=3, fencings=1)),
]


@pytest.mark.parametrize(("guard", "parameters", "bounds"), DOUBLED)
def test_what_another_guard_would_catch(guard: str, parameters: Parameters, bounds: Bounds) -> None:
    """As their docstrings say. That nothing breaks here is what shall be noticed if it changes."""
    exploration = explore(replication_machine(without(parameters, guard), bounds))

    assert exploration.complete
    assert exploration.violations == {}


def test_no_guard_is_forgotten() -> None:
    """Each is tried where it shows (`tests/exploration`), or here where that takes too many steps for a search."""
    named = {value for name, value in vars(mutants).items() if name.isupper()}
    shown = {guard for specification in (*REPLICATION, *CONTROLLER) for guard in specification.mutants}
    by_hand = {mutants.RESPONSE_LEADER_EPOCH, mutants.RESPONSE_OFFSET}  # in the last two tests

    assert named == shown | by_hand


LONG = Bounds(records=9, leader_epochs=9, partition_epochs=9, fencings=9, delays=9)


def joins(broker: int, leader: int) -> list[str]:
    """A broker that was fenced fetches what it lacks, and is in the ISR again."""
    return [
        f"{broker} is heard again",
        ALL_LEARN,
        *[f"{broker} fetches from {leader}"] * 3,
        f"the controller answers the AlterPartition of {leader}",
        f"the answer to the AlterPartition of {leader} arrives",
        ALL_LEARN,
    ]


def test_an_answer_that_outlasts_two_elections() -> None:
    """Kafka compares the offset only, which is the same again: the follower truncates what was committed."""
    steps = [
        "a record is written to 2",
        "the session of 2 ends",
        ALL_LEARN,
        "2 sends a fetch to 0",
        "0 answers the fetch of 2",  # that its log is another one
        "the session of 0 ends",
        ALL_LEARN,
        "a record is written to 1",
        *joins(2, leader=1),
        *joins(0, leader=1),
        "the session of 1 ends",
        ALL_LEARN,
        "the answer of 0 reaches 2",
    ]
    for guards, broken in (((), set()), ((mutants.RESPONSE_LEADER_EPOCH,), {"leader-candidate-completeness"})):
        machine = replication_machine(without(KRAFT, *guards), replace(LONG, leader=2))
        assert machine.broken(follow(machine, *steps)) == broken


def test_an_answer_with_records_that_outlasts_two_elections() -> None:
    """Where epochs are not compared, the offset must be: else records come to where they were not asked for."""
    steps = [
        "a record is written to 0",
        "2 sends a fetch to 0",
        "0 answers the fetch of 2",  # with the record at offset 0
        "1 fetches from 0",
        "the session of 0 ends",
        ALL_LEARN,
        "a record is written to 1",
        *["2 fetches from 1"] * 3,
        *joins(0, leader=1),
        "the session of 1 ends",
        ALL_LEARN,
        "the answer of 0 reaches 2",
        "2 fetches from 0",
    ]
    kafka = without(KRAFT, mutants.RESPONSE_LEADER_EPOCH)
    for parameters, broken in (
        (kafka, set()),
        (without(KRAFT, mutants.RESPONSE_LEADER_EPOCH, mutants.RESPONSE_OFFSET), {"leader-candidate-completeness"}),
    ):
        machine = replication_machine(parameters, LONG)
        assert machine.broken(follow(machine, *steps)) == broken
