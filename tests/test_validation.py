"""What cannot work is refused before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.checker import SparkStarter
from lockstep.cluster.backends import Backend
from lockstep.errors import UsageError
from lockstep.plan.plan import Heal, Inject, Plan, Step, TopicPlan
from lockstep.plan.targets import LeaderOf
from lockstep.progress import Progress
from lockstep.run import run
from lockstep.spec.cluster import ClusterSpec


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([Inject(step=1, fault="kil", target=LeaderOf(topic="t", partition=0))], "no fault 'kil'; did you mean 'kill'"),
        ([Inject(step=1, fault="kill", target=LeaderOf(topic="t", partition=9))], "there is no t-9"),
        ([Inject(step=1, fault="kill", target=LeaderOf(topic="u", partition=0))], "there is no u-0"),
        ([Heal(step=1, of=7)], "nothing broken by step 7"),
    ],
)
def test_a_step_that_cannot_work(tmp_path: Path, steps: list[Step], sentence: str) -> None:
    topic = TopicPlan(name="t", partitions=1, replication=3, min_isr=2)
    plan = Plan(scenario="mine", seed=1, topics=(topic,), workloads=(), steps=tuple(steps))
    with pytest.raises(UsageError, match=sentence):
        run(
            plan,
            spec=ClusterSpec(),
            backend=Backend.PROCESS,
            runs=tmp_path / "runs",
            progress=Progress(quiet=True),
            spark=SparkStarter(),
        )
    assert not (tmp_path / "runs").exists()
