"""One idempotent producer and one leader, in every order in which batches can arrive."""

from __future__ import annotations

import pytest

from reference_model.idempotence import KEPT, NOT_REFUSED, ONCE_IN_ORDER, Bounds, machine
from reference_model.parameters import Parameters
from reference_model.producer_state import BATCHES_RETAINED
from reference_model.search import Exploration, explore
from reference_model.transactions import mutants


def explored(bounds: Bounds, *dropped: str, depth: int | None = None) -> Exploration:
    return explore(machine(Parameters(dropped=frozenset(dropped)), bounds), depth=depth)


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(Bounds(batches=7, elections=1), 50, id="one-in-flight"),
        pytest.param(Bounds(batches=7, in_flight=BATCHES_RETAINED, elections=1), 678, id="five-in-flight"),
        pytest.param(Bounds(restarts=1), 28, id="one-in-flight-restarted"),
        pytest.param(Bounds(known=False, elections=1), 26, id="unknown-producer"),
    ],
)
def test_every_batch_is_taken_once_and_in_order(bounds: Bounds, states: int) -> None:
    exploration = explored(bounds)
    assert exploration.violations == {}
    assert (exploration.complete, exploration.states) == (True, states)


@pytest.mark.parametrize(
    ("bounds", "depth"),
    [
        # Six repeated batches are one more than the leader remembers
        pytest.param(Bounds(batches=8, in_flight=BATCHES_RETAINED + 1), 13, id="six-in-flight"),
        # An unknown producer may begin anywhere, so its second batch keeps its first one out
        pytest.param(Bounds(in_flight=2, known=False), 4, id="two-in-flight-unknown"),
        # A snapshot has the last batch only
        pytest.param(Bounds(in_flight=2, restarts=1), 6, id="two-in-flight-restarted"),
    ],
)
def test_where_kafka_refuses_a_producer_that_keeps_the_order(bounds: Bounds, depth: int) -> None:
    violations = explored(bounds).violations
    assert {name: violation.depth for name, violation in violations.items()} == {NOT_REFUSED: depth}


@pytest.mark.parametrize(
    ("guard", "bounds", "broken", "depth"),
    [
        (mutants.SEQUENCE_CHECK, Bounds(in_flight=2), ONCE_IN_ORDER, 3),
        (mutants.SEQUENCE_CHECK, Bounds(batches=6), ONCE_IN_ORDER, 19),  # late by more than the leader remembers
        (mutants.DUPLICATE_WINDOW, Bounds(), NOT_REFUSED, 3),
    ],
)
def test_every_guard_is_needed(guard: str, bounds: Bounds, broken: str, depth: int) -> None:
    assert explored(bounds).violations == {}
    violation = explored(bounds, guard, depth=depth).violations[broken]
    assert violation.depth == depth == len(violation.trace)


def test_a_mutant_without_both_guards_writes_a_repeated_batch_twice() -> None:
    violation = explored(Bounds(), mutants.SEQUENCE_CHECK, mutants.DUPLICATE_WINDOW, depth=4).violations[ONCE_IN_ORDER]
    assert violation.trace[-1] == "batch 0 arrives"
    assert KEPT not in explored(Bounds(), mutants.SEQUENCE_CHECK, mutants.DUPLICATE_WINDOW, depth=6).violations
