"""Every claim script holds on a real cluster, and a wrong model diverges from the cluster in one of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.conformance import SCRIPT_OVERRIDES, ClaimScript, Finding, Ran, find_scripts, run_script
from lockstep.stepper.controls.wrong_models import WRONG_MODELS, judge
from lockstep.stepper.walk.runner import parameters_of

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

Play = Callable[[ClaimScript], Ran]

SCRIPTS = find_scripts()
by_name = {script.name: script for script in SCRIPTS}
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=by_name)
SLOW = ("last-leader", "unclean-election")
"""Scripts of a claim that a quicker script shows as well."""
quick_scripts = pytest.mark.parametrize(
    "script",
    [pytest.param(one, marks=[pytest.mark.long] if one.name in SLOW else []) for one in SCRIPTS],
    ids=by_name,
)
SHAPES = {
    "3.9.2-zk": {"kafka": "3.9.2", "mode": "zk"},
    "3.9.2-kraft": {"kafka": "3.9.2"},
}


@pytest.fixture
def cluster(lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(kafka="4.3.1", overrides=SCRIPT_OVERRIDES)


@pytest.fixture(scope="module")
def kept() -> dict[str, Ran]:
    return {}


@pytest.fixture
def play(cluster: Cluster, kept: dict[str, Ran]) -> Play:
    """Run a script on the newest Kafka, once for all tests."""

    def played(script: ClaimScript) -> Ran:
        if script.name not in kept:
            kept[script.name] = run_script(cluster, script)
        return kept[script.name]

    return played


@quick_scripts
def test_it_holds(script: ClaimScript, play: Play) -> None:
    ran = play(script)
    assert ran.finding is Finding.HOLDS, ran.evidence


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@every_script
def test_it_holds_for_older_ones(shape: str, script: ClaimScript, lockstep_clusters: Clusters) -> None:
    ran = run_script(lockstep_clusters.get(**SHAPES[shape], overrides=SCRIPT_OVERRIDES), script)
    assert ran.finding is Finding.HOLDS, ran.evidence


@pytest.mark.parametrize(
    ("wrong", "script"),
    [
        ("hw-gate", "two-deaths"),
        ("elr", "complete-leaders"),
        ("min-isr-1", "min-isr"),
        ("elect-anyone", "complete-leaders"),
        pytest.param("unclean-stays", "last-leader", marks=pytest.mark.long),
        ("no-divergence", "epochs"),
        ("acks-1-waits", "acks-one"),
        ("acks-all-hurries", "min-isr"),
        ("acks-0-answers", "leader-writes"),
        ("reads-above-hw", "hidden-above-high-watermark"),
        ("list-to-hw", "acks-one"),
    ],
)
def test_a_wrong_model_does_not_follow_it(wrong: str, script: str, cluster: Cluster, play: Play) -> None:
    model = next(model for model in WRONG_MODELS if model.name == wrong)
    events = play(by_name[script]).walked.events
    assert judge(events, parameters_of(cluster)).divergence is None
    assert judge(events, model.parameters(parameters_of(cluster)), model.reading).divergence is not None
