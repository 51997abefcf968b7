"""Real clusters without most of those who vote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.faults.support.roles import controller
from lockstep.plan.targets import WholeCluster
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Mode
from tests.faults.injected import injected
from tests.faults.shapes import COMBINED, GROUP, KRAFT, KRAFT_QUORUM, ZK_ENSEMBLE, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, KRAFT_QUORUM, COMBINED, ZK_ENSEMBLE)
def test_nobody_decides_until_they_are_back(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    voters = [node.name for node in cluster.nodes.values() if node.spec.is_voter or not node.spec.is_broker]
    active = controller(cluster).name

    with injected(cluster, tmp_path, "quorum-loss", WholeCluster()) as seen:
        assert len(seen.bit["crashed"]) > len(voters) / 2
        assert sorted(seen.bit["crashed"] + seen.bit["left"]) == sorted(voters)
        if cluster.spec.mode is Mode.ZK:
            assert seen.bit["serving"] == []
        else:
            assert active in seen.bit["crashed"]
            assert seen.bit["active_controller"] is None

    assert seen.healed["active_controller"] is not None
    assert len(seen.healed["serving"]) == 3
    cluster.wait_in_sync(topic, 1)
