"""One idempotent producer and one leader, in every order in which batches can arrive."""

from __future__ import annotations

import pytest

from lockstep_model.parameters import Parameters
from lockstep_model.partition.idempotent_producer import KEPT, NOT_REFUSED, ONCE_IN_ORDER, IdempotenceBounds, machine
from lockstep_model.partition.producer_state import BATCHES_RETAINED
from lockstep_model.search import Exploration, explore
from lockstep_model.transactions import mutants


def explored(bounds: IdempotenceBounds, *dropped: str, depth: int | None = None) -> Exploration:
    return explore(machine(Parameters(dropped=frozenset(dropped)), bounds), depth=depth)


@pytest.mark.parametrize(
    ("bounds", "states"),
    [
        pytest.param(IdempotenceBounds(batches=7, elections=1), 50, id="one-in-flight"),
        pytest.param(IdempotenceBounds(batches=7, in_flight=BATCHES_RETAINED, elections=1), 678, id="five-in-flight"),
        pytest.param(IdempotenceBounds(restarts=1), 28, id="one-in-flight-restarted"),
        pytest.param(IdempotenceBounds(known=False, elections=1), 26, id="unknown-producer"),
    ],
)
def test_every_batch_is_taken_once_and_in_order(bounds: IdempotenceBounds, states: int) -> None:
    exploration = explored(bounds)
    assert exploration.violations == {}
    assert (exploration.complete, exploration.states) == (True, states)


@pytest.mark.parametrize(
    ("bounds", "depth"),
    [
        # Six repeated batches are one more than the leader remembers
        pytest.param(IdempotenceBounds(batches=8, in_flight=BATCHES_RETAINED + 1), 13, id="six-in-flight"),
        # An unknown producer may begin anywhere, so its second batch keeps its first one out
        pytest.param(IdempotenceBounds(in_flight=2, known=False), 4, id="two-in-flight-unknown"),
        # A snapshot has the last batch only
        pytest.param(IdempotenceBounds(in_flight=2, restarts=1), 6, id="two-in-flight-restarted"),
    ],
)
def test_where_kafka_refuses_a_producer_that_keeps_the_order(bounds: IdempotenceBounds, depth: int) -> None:
    violations = explored(bounds).violations
    assert {name: violation.depth for name, violation in violations.items()} == {NOT_REFUSED: depth}


def test_without_the_sequence_check_a_batch_is_taken_again_when_it_is_late_by_more_than_the_leader_remembers() -> None:
    """With batches that overtake each other it shows at once: see tests/exploration."""
    violation = explored(IdempotenceBounds(batches=6), mutants.SEQUENCE_CHECK, depth=19).violations[ONCE_IN_ORDER]
    assert violation.depth == 19


def test_a_mutant_without_both_guards_writes_a_repeated_batch_twice() -> None:
    violation = explored(IdempotenceBounds(), mutants.SEQUENCE_CHECK, mutants.DUPLICATE_WINDOW, depth=4).violations[
        ONCE_IN_ORDER
    ]
    assert violation.trace[-1] == "batch 0 arrives"
    assert (
        KEPT not in explored(IdempotenceBounds(), mutants.SEQUENCE_CHECK, mutants.DUPLICATE_WINDOW, depth=6).violations
    )
