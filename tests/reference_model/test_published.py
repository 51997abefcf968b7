"""The search finds what the published specifications are known to do: states, diameters, and what they break when."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lockstep_model.published import async_isr
from lockstep_model.published.replication import MUTANTS, VARIANTS, Bounds, replication
from lockstep_model.search import Exploration, explore


class Figures(NamedTuple):
    """Of one search: how many states, how deep, and the depths at which invariants are first broken."""

    states: int
    diameter: int
    weak: int | None = None
    strong: int | None = None
    mismatch: int | None = None


def figures(found: Exploration) -> Figures:
    depths = {name: violation.depth for name, violation in found.violations.items()}
    assert "leader-in-isr" not in depths
    assert found.complete
    return Figures(
        found.states, found.diameter, depths.get("weak-isr"), depths.get("strong-isr"), depths.get("log-mismatch")
    )


WITH_TWO = {
    "truncate-to-hw": Figures(10_131, 19, weak=8, strong=9, mismatch=14),
    "kip101": Figures(9_045, 17, weak=11, strong=11),
    "kip279": Figures(9_027, 17),
    "kip320-first-try": Figures(8_429, 17),
    "kip320": Figures(5_973, 17),
    "kip320-unfenced": Figures(6_765, 17),
}
"""Two replicas; the diameters are our own."""

WITH_THREE = {
    "truncate-to-hw": Figures(1_988_158, 27, weak=8, strong=8, mismatch=13),
    "kip101": Figures(1_613_089, 25, weak=10, strong=10, mismatch=17),
    "kip279": Figures(1_616_461, 25, weak=10, strong=10, mismatch=17),
    "kip320-first-try": Figures(1_437_076, 27, weak=11, strong=12),
    "kip320": Figures(737_794, 25),
    "kip320-unfenced": Figures(873_256, 25, weak=13, strong=13),
}
SYMMETRIC = {
    "truncate-to-hw": 332_037,
    "kip101": 269_488,
    "kip279": 270_050,
    "kip320-first-try": 240_028,
    "kip320": 123_311,
    "kip320-unfenced": 145_899,
}
WITHOUT_A_GUARD = {
    "hw-reached-epoch": {"strong-isr": 11, "weak-isr": 13, "log-mismatch": 17},
    "hw-epoch": {"weak-isr": 12, "strong-isr": 12},
    "fetch-epoch": {"weak-isr": 12},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_replicas(variant: str) -> None:
    assert figures(explore(replication(VARIANTS[variant], Bounds(replicas=2)))) == WITH_TWO[variant]


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS)
def test_three_replicas(variant: str) -> None:
    assert figures(explore(replication(VARIANTS[variant], Bounds(replicas=3)))) == WITH_THREE[variant]


@pytest.mark.parametrize(
    "variant", [name if name == "kip320" else pytest.param(name, marks=pytest.mark.long) for name in VARIANTS]
)
def test_three_replicas_that_are_interchangeable(variant: str) -> None:
    found = figures(explore(replication(VARIANTS[variant], Bounds(replicas=3)), symmetric=True))
    assert found == WITH_THREE[variant]._replace(states=SYMMETRIC[variant])


@pytest.mark.long
def test_kip320_holds_with_another_epoch() -> None:
    found = explore(replication(VARIANTS["kip320"], Bounds(replicas=3, epochs=3)), symmetric=True)
    assert figures(found) == Figures(1_665_204, 31)


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS)
def test_kip320_needs_each_of_its_guards(mutant: str) -> None:
    found = explore(replication(MUTANTS[mutant], Bounds(replicas=3)), symmetric=True)
    assert {name: violation.depth for name, violation in found.violations.items()} == WITHOUT_A_GUARD[mutant]


def test_the_shortest_way_to_a_loss_before_kip101_is_the_published_one() -> None:
    """A follower that was taken back into the ISR learns of the epoch, and cuts off what was just committed."""
    found = explore(replication(VARIANTS["truncate-to-hw"], Bounds(replicas=2)))
    violation = found.violations["weak-isr"]
    assert len(violation.trace) == 8
    *_, (_, _, *replicas, _, _, _) = violation.states
    assert sorted(len(replica.log) for replica in replicas) == [0, 1], "one has the committed record, the other not"


def test_asynchronous_isr_changes() -> None:
    found = explore(async_isr.async_isr(async_isr.Bounds()))
    assert (found.states, found.violations) == (4_088, {})


def test_the_committed_isr_is_not_enough() -> None:
    found = explore(async_isr.async_isr(async_isr.Bounds(), maximal=False))
    assert found.violations["valid-high-watermark"].depth == 6
