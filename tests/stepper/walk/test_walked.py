"""Walks with live clusters: Kafka does what the model permits, and the model follows."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.network.conditions import Open
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.controls.wrong_models import judge
from lockstep.stepper.walk.runner import OVERRIDES, Walked, parameters_of, random_steps, walk

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

LONG = pytest.mark.long


def words(walked: Walked) -> str:
    """What to show of a walk that failed."""
    last = "\n".join(f"{done.step} -> {done.seen}" for done in walked.steps[-10:])
    seen = walked.divergence.seen if walked.divergence is not None else walked.undecided
    return f"{last}\n{walked.diverged_at}: {seen}"


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        pytest.param({}, 60, id="kraft-4.3.1"),
        pytest.param({"mode": "zk"}, 120, id="zk-3.9.2", marks=LONG),
        pytest.param({"kafka": "3.9.2"}, 120, id="kraft-3.9.2", marks=LONG),
    ],
)
def test_a_live_cluster_does_what_the_model_permits(
    lockstep_clusters: Clusters, shape: dict[str, Any], steps: int
) -> None:
    cluster = lockstep_clusters.get(**shape, overrides=OVERRIDES)
    parameters = parameters_of(cluster)

    walked = walk(cluster, random_steps(7, steps), parameters, lambda _: None)

    assert walked.verdict == "pass", words(walked)
    assert len(walked.steps) == steps
    assert judge(walked.events, parameters).divergence is None, "what it was told is enough to follow again"
    assert set(cluster.links.conditions().values()) == {Open()}, "the cluster is as it was"
