"""Storms are drawn from the seed, and never break more than the cluster must survive."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockstep.cluster.backends import Backend
from lockstep.faults.fault import find_faults
from lockstep.faults.storm import ON_CLIENT_LINKS
from lockstep.plan.plan import Heal, Inject, Plan
from lockstep.plan.scenario import get_scenario
from lockstep.plan.targets import ClientSide
from lockstep.spec.cluster import ClusterSpec
from lockstep.validation import require_fit
from tests.command import Lockstep

SPECS = [ClusterSpec(), ClusterSpec.of(mode="zk"), ClusterSpec.of(mode="kraft-combined")]
SEEDS = range(1, 11)


def storm(seed: int, spec: ClusterSpec, *, beyond: bool = False) -> Plan:
    return get_scenario("storm").plan(seed, spec=spec, seconds=60, beyond=beyond)


def taken_at_once(plan: Plan) -> int:
    """How many brokers are out of service at the worst moment."""
    kinds, out, worst = find_faults(), dict[int, int](), 0
    for step in plan.steps:
        match step:
            case Inject():
                out[step.step] = kinds[step.fault].takes
            case Heal():
                del out[step.of]
        worst = max(worst, sum(out.values()))
    return worst


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.mode)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_storm_stays_within_what_the_guarantees_assume(seed: int, spec: ClusterSpec) -> None:
    plan = storm(seed, spec)
    require_fit(plan, spec, Backend.PROCESS)
    assert any(isinstance(step, Inject) for step in plan.steps)
    assert taken_at_once(plan) <= 1
    kinds = find_faults()
    assert not [step for step in plan.steps if isinstance(step, Inject) and kinds[step.fault].beyond]


def test_a_second_fault_is_on_the_links_of_clients_where_the_first_is_not() -> None:
    pairs = []
    for seed in range(60):
        active: dict[int, Inject] = {}
        for step in storm(seed, SPECS[0]).steps:
            match step:
                case Inject():
                    pairs += [(first, step) for first in active.values()]
                    active[step.step] = step
                case Heal():
                    del active[step.of]
    assert pairs
    for first, second in pairs:
        assert second.target == ClientSide()
        assert first.fault not in ON_CLIENT_LINKS


def test_faults_on_the_links_of_clients_are_all_known() -> None:
    known = {
        kind.name for kind in find_faults().values() if ClientSide in kind.targets or "frames" in kind.make.__module__
    }
    assert known <= set(ON_CLIENT_LINKS)


def test_the_same_seed_draws_the_same_storm_and_another_seed_another() -> None:
    assert storm(1, SPECS[0]) == storm(1, SPECS[0])
    assert len({msgspec.json.encode(storm(seed, SPECS[0])) for seed in SEEDS}) == len(SEEDS)


def test_every_fault_that_can_be_had_is_drawn_sooner_or_later() -> None:
    drawn = {step.fault for seed in range(60) for step in storm(seed, SPECS[0]).steps if isinstance(step, Inject)}
    mild = {
        kind.name
        for kind in find_faults().values()
        if kind.reason(SPECS[0], "process") is None and kind.beyond is None and kind.takes <= 1
    }
    assert drawn == mild


def test_a_dry_run_tells_what_would_happen_and_makes_nothing(lockstep: Lockstep, tmp_path: Path) -> None:
    told = lockstep("run", "storm", "--seed", "7", "--for", "20s", "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "storm, seed 7: 3 brokers and 1 controller (Kafka 4.3.1, kraft), process" in told.stdout
    assert "topic      orders: 3 partitions, 3 replicas, min ISR 2" in told.stdout
    assert "1. hold for" in told.stdout
    plan = lockstep("run", "storm", "--seed", "7", "--for", "20s", "--dry-run", "--json")
    assert msgspec.json.decode(plan.stdout, type=Plan).seed == 7
    assert not list(tmp_path.iterdir())


def test_a_plan_that_does_not_fit_is_refused_in_a_dry_run_too(lockstep: Lockstep) -> None:
    refused = lockstep("run", "leader-kill", "--brokers", "1", "--dry-run")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert "wants 3 replicas and the cluster has 1 broker" in refused.stderr
