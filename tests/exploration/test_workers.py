"""Several processes find what one does."""

from __future__ import annotations

from functools import partial

import pytest

from harness.exploration import explore
from harness.exploration.specifications import machine
from reference_model.machine import Machine, Transition
from reference_model.published.async_isr import Bounds as AsyncIsrBounds
from reference_model.published.replication import Bounds
from reference_model.search import Exploration
from tests.reference_model.test_search import glasses


def summary(found: Exploration) -> tuple[object, ...]:
    depths = {name: (violation.depth, len(violation.trace)) for name, violation in found.violations.items()}
    return found.states, found.generated, found.diameter, found.complete, depths


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("variant", ["truncate-to-hw", "kip320"])
def test_two_workers_find_what_one_finds(variant: str, symmetric: bool) -> None:
    make = partial(machine, variant, None, Bounds(replicas=2, epochs=1))
    alone, together = (explore(make, workers=workers, symmetric=symmetric) for workers in (1, 2))
    assert summary(together) == summary(alone)


def test_three_workers_find_the_way_to_a_violation() -> None:
    make = partial(machine, "async-isr", "maximal-isr", AsyncIsrBounds())
    found = explore(make, workers=3)
    violation = found.violations["valid-high-watermark"]
    state = make().initial
    for name, after in zip(violation.trace, violation.states[1:], strict=True):
        assert (name, after) in {(action.rule, next_) for action, next_ in make().enabled(state)}
        state = after
    assert make().broken(state) == {"valid-high-watermark"}


def test_a_search_that_ends_early_says_so_with_workers_too() -> None:
    make = partial(machine, "kip320", None, Bounds(replicas=2))
    alone, together = (explore(make, workers=workers, depth=5) for workers in (1, 2))
    assert summary(together) == summary(alone)


def spilling() -> Machine:
    return glasses(3, Transition(name="stays-full", place=1, holds=_stays_full))


def _stays_full(was: object, now: object) -> bool:
    return not getattr(was, "full", False) or getattr(now, "full", False)


def test_steps_that_must_not_be_are_found_with_workers_too() -> None:
    alone, together = (explore(spilling, workers=workers) for workers in (1, 2))
    assert summary(together) == summary(alone)
    assert together.violations["stays-full"].trace == ("fill 1", "spill 1")
