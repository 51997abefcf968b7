"""Several processes find what one does."""

from __future__ import annotations

import pytest

from lockstep.exploration import explore
from lockstep.exploration import workers as workers_
from lockstep.exploration.specifications import chosen
from lockstep_model.search import Exploration
from lockstep_model.state_machine import Machine, Transition
from tests.reference_model.test_search import glasses


def summary(found: Exploration) -> tuple[object, ...]:
    depths = {name: (violation.depth, len(violation.trace)) for name, violation in found.violations.items()}
    return found.states, found.generated, found.diameter, found.complete, depths


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """These machines are small: the first few states are shared out."""
    monkeypatch.setattr(workers_, "ALONE", 5)
    monkeypatch.setattr(workers_, "SPREAD", 2)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("variant", ["truncate-to-hw", "kip320"])
def test_two_workers_find_what_one_finds(variant: str, symmetric: bool) -> None:
    machine = chosen(variant, None, {"replicas": 2, "epochs": 1})
    alone, together = (explore(machine, workers=workers, symmetric=symmetric) for workers in (1, 2))
    assert summary(together) == summary(alone)


def test_three_workers_find_the_way_to_a_violation() -> None:
    machine = chosen("async-isr", "maximal-isr", {})
    found = explore(machine, workers=3)
    violation = found.violations["valid-high-watermark"]
    state = machine.initial
    for name, after in zip(violation.trace, violation.states[1:], strict=True):
        assert (name, after) in {(action.rule, next_) for action, next_ in machine.enabled(state)}
        state = after
    assert machine.broken(state) == {"valid-high-watermark"}


def test_a_search_that_ends_early_says_so_with_workers_too() -> None:
    machine = chosen("kip320", None, {"replicas": 2})
    alone, together = (explore(machine, workers=workers, depth=5) for workers in (1, 2))
    assert summary(together) == summary(alone)


def test_a_search_that_is_done_before_there_is_anything_to_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_, "ALONE", 1_000)
    alone, together = (explore(spilling(), workers=workers) for workers in (1, 2))
    assert summary(together) == summary(alone)


def spilling() -> Machine:
    return glasses(3, Transition(name="stays-full", place=1, holds=_stays_full))


def _stays_full(was: object, now: object) -> bool:
    return not getattr(was, "full", False) or getattr(now, "full", False)


def test_steps_that_must_not_be_are_found_with_workers_too() -> None:
    alone, together = (explore(spilling(), workers=workers) for workers in (1, 2))
    assert summary(together) == summary(alone)
    assert together.violations["stays-full"].trace == ("fill 1", "spill 1")
