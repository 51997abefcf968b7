"""Every guard is needed: without it an invariant breaks, after so many steps within these bounds, and with it none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_model import mutants
from reference_model.cluster import Bounds
from reference_model.machine import Action, Machine, State
from reference_model.parameters import Parameters, parameters_for
from reference_model.replication import replication_machine
from reference_model.search import explore

ZK = parameters_for("3.9.2", "zk")
KRAFT = parameters_for("3.9.2", "kraft")
ELR = parameters_for("4.3.1", "kraft", min_isr=2)


def of_two(parameters: Parameters) -> Parameters:
    return replace(parameters, min_isr=2)


TWO = Bounds(brokers=2, in_sync=2, leader_epochs=1, partition_epochs=1, fencings=0, delays=0)
ALONE = replace(TWO, in_sync=1, leader_epochs=0)
"""The leader is alone in the ISR, and the other one has yet to join."""

MUTANTS = [
    (mutants.ELECT_IN_SYNC, KRAFT, replace(TWO, leader_epochs=2, partition_epochs=2, fencings=2), "leader-in-isr", 3),
    (mutants.ELECT_IN_SYNC, ZK, replace(TWO, leader_epochs=2, partition_epochs=2, fencings=2), "leader-in-isr", 3),
    (mutants.FENCED_CANNOT_JOIN, KRAFT, replace(ALONE, fencings=1), "no-fenced-in-isr", 3),
    (mutants.FENCED_CANNOT_JOIN, ZK, replace(ALONE, fencings=1), "no-fenced-in-isr", 3),
    (
        mutants.PARTITION_EPOCH_OF_ISR,
        KRAFT,
        replace(ALONE, partition_epochs=3, fencings=1),
        "leader-candidate-completeness",
        9,
    ),
    (mutants.BROKER_EPOCH_OF_MEMBERS, KRAFT, replace(ALONE, power_losses=1), "leader-candidate-completeness", 8),
    (mutants.NEW_INCARNATION, KRAFT, replace(TWO, power_losses=1), "leader-completeness", 5),
    (mutants.NEW_INCARNATION, ZK, replace(TWO, power_losses=1), "leader-completeness", 5),
    (
        mutants.ELR_FORGETS_UNCLEAN,
        ELR,
        replace(TWO, leader_epochs=2, partition_epochs=3, fencings=1, power_losses=1, last_replica_falls=True),
        "leader-completeness",
        8,
    ),
    (mutants.MAXIMAL_ISR, KRAFT, ALONE, "maximal-isr-superset", 2),
    (mutants.MAXIMAL_ISR, KRAFT, replace(ALONE, records=2), "leader-candidate-completeness", 5),
    (mutants.MAXIMAL_ISR, ZK, replace(ALONE, records=2), "leader-candidate-completeness", 5),
    (mutants.HIGH_WATERMARK_GATE, of_two(ZK), replace(TWO, fencings=1), "hw-frozen-below-min-isr", 3),
    (mutants.HIGH_WATERMARK_GATE, of_two(KRAFT), replace(TWO, fencings=1), "hw-frozen-below-min-isr", 3),
    (mutants.HIGH_WATERMARK_GATE, ELR, replace(TWO, partition_epochs=2, fencings=1), "leader-completeness", 5),
    (mutants.EXPAND_REACHES_HIGH_WATERMARK, KRAFT, replace(ALONE, records=2), "leader-candidate-completeness", 4),
    (mutants.EXPAND_REACHES_HIGH_WATERMARK, ZK, replace(ALONE, records=2), "leader-candidate-completeness", 4),
    (
        mutants.EXPAND_REACHES_EPOCH_START,
        of_two(KRAFT),
        replace(TWO, partition_epochs=2, power_losses=1, delays=2),
        "leader-candidate-completeness",
        14,
    ),
    (
        mutants.EXPAND_AFTER_FETCH,
        ZK,
        replace(TWO, partition_epochs=3, fencings=1, power_losses=1),
        "leader-candidate-completeness",
        9,
    ),
    (mutants.DIVERGENCE_CHECK, KRAFT, replace(TWO, records=2, fencings=1), "committed-reads-stable", 6),
    (mutants.DIVERGENCE_CHECK, ZK, replace(TWO, records=2, fencings=1), "log-matching", 6),
    (
        mutants.PENDING_OUTLIVES_KNOWN_METADATA,
        KRAFT,
        replace(TWO, leader_epochs=0, partition_epochs=2),
        "maximal-isr-superset",
        8,
    ),
]

FURTHER = [
    (
        mutants.FETCH_BROKER_EPOCH,
        of_two(KRAFT),
        replace(TWO, records=2, leader_epochs=0, partition_epochs=2, power_losses=1, delays=1),
        "leader-candidate-completeness",
        20,
    ),
    (
        mutants.FETCH_LEADER_EPOCH,
        KRAFT,
        Bounds(leader_epochs=2, fencings=2, delays=0),
        "leader-candidate-completeness",
        14,
    ),
]
"""A search of half a million states in all."""


def without(parameters: Parameters, *guards: str) -> Parameters:
    return replace(parameters, dropped=frozenset(guards))


@pytest.mark.parametrize(
    ("guard", "parameters", "bounds", "invariant", "depth"),
    [*MUTANTS, *(pytest.param(*row, marks=pytest.mark.long) for row in FURTHER)],
)
def test_every_guard_is_needed(guard: str, parameters: Parameters, bounds: Bounds, invariant: str, depth: int) -> None:
    missing = explore(replication_machine(without(parameters, guard), bounds), depth=depth)

    assert missing.violations[invariant].depth == depth
    assert explore(replication_machine(parameters, bounds), depth=depth).violations == {}


DOUBLED = [
    (mutants.EXPAND_BROKER_EPOCH, KRAFT, replace(ALONE, power_losses=1)),
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
    named = {value for name, value in vars(mutants).items() if name.isupper()}
    tested = {row[0] for row in (*MUTANTS, *FURTHER)}
    by_hand = {mutants.RESPONSE_LEADER_EPOCH}  # in the last two tests
    of_the_controller_alone = {mutants.LAST_MEMBER_STAYS, mutants.LAST_KNOWN_LEADER_ACTIVE}

    assert named == tested | {row[0] for row in DOUBLED} | by_hand | of_the_controller_alone


ALL_LEARN = "all learn what the controller decided"
LONG = Bounds(records=9, leader_epochs=9, partition_epochs=9, fencings=9, delays=9)


def follow(machine: Machine, *rules: str) -> State:
    """The state after these steps, each of which must be possible."""
    state = machine.initial
    for rule in rules:
        if rule == ALL_LEARN:
            state = all_learn(machine, state)
            continue
        after = machine.apply(state, Action(rule))
        assert after is not None, f"not possible: {rule}"
        state = after
    return state


def all_learn(machine: Machine, state: State) -> State:
    for broker in range(3):
        while (after := machine.apply(state, Action(f"{broker} learns what the controller decided"))) is not None:
            state = after
    return state


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
