"""The scenarios that stay, on every shape and version they are promised for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lockstep.pytest_plugin import RunScenario

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.long, pytest.mark.xdist_group("whole-run")]

ZK_OLD = {"kafka": "3.6.2", "mode": "zk"}
ZK = {"kafka": "3.9.2", "mode": "zk"}
KRAFT = {"kafka": "4.3.1", "mode": "kraft"}
DOCKER = {"backend": "docker"}
in_docker = pytest.mark.docker


def status_of(finished: Any, name: str) -> tuple[str, int]:
    (result,) = [guarantee for guarantee in finished.verdict.guarantees if guarantee.name == name]
    return result.status, result.count


@pytest.mark.parametrize(
    "spec",
    [
        ZK_OLD,
        ZK,
        {"kafka": "3.9.2", "mode": "kraft"},
        {"kafka": "4.0.2", "mode": "kraft"},
        {"kafka": "4.1.2", "mode": "kraft"},
        {"kafka": "4.3.1", "mode": "kraft-combined"},
        pytest.param(ZK | DOCKER, marks=in_docker),
        pytest.param(KRAFT | DOCKER, marks=in_docker),
    ],
    ids=str,
)
def test_a_killed_leader_loses_nothing(spec: dict[str, Any], lockstep_run: RunScenario) -> None:
    finished = lockstep_run("leader-kill", seed=7, **spec)
    assert finished.verdict.verdict == "pass", finished.verdict.guarantees


@pytest.mark.parametrize(
    "spec",
    [ZK, KRAFT, pytest.param(ZK | DOCKER, marks=in_docker), pytest.param(KRAFT | DOCKER, marks=in_docker)],
    ids=str,
)
def test_acks_decide_whether_a_loss_is_permitted(spec: dict[str, Any], lockstep_run: RunScenario) -> None:
    lost = lockstep_run("acks-one-loss", seed=7, **spec)
    assert lost.verdict.verdict == "pass", lost.verdict.guarantees
    status, count = status_of(lost, "no-lost-acks")
    assert status == "permitted"
    assert count > 0
    kept = lockstep_run("acks-all-survives", seed=7, **spec)
    assert kept.verdict.verdict == "pass", kept.verdict.guarantees
    assert status_of(kept, "no-lost-acks") == ("held", 0)
