"""The active controller of a real cluster, cut off from everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.faults.support.roles import controller
from lockstep.network.conditions import Open
from lockstep.plan.targets import ActiveController
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, KRAFT, KRAFT_QUORUM, ZK, new_topic, shapes

pytestmark = GROUP


@shapes(ZK, KRAFT_QUORUM)
def test_another_one_takes_over(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = controller(cluster)

    with injected(cluster, tmp_path, "controller-isolation", ActiveController()) as seen:
        assert seen.bit["controller_before"] == before.spec.id
        assert seen.bit["active_controller"] not in (None, before.spec.id)
        assert all(before.name in name for name in seen.bit["silent"])

    assert before.name in seen.healed["back"]
    assert len(seen.healed["back"]) == len({before.name, *(cluster.broker(id_).name for id_ in cluster.broker_ids)})
    cluster.wait_in_sync(topic, 1)


@shapes(KRAFT)
def test_nobody_takes_over_from_the_only_one(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    new_topic(cluster)

    with injected(cluster, tmp_path, "controller-isolation", ActiveController()) as seen:
        assert seen.bit["active_controller"] is None

    assert seen.healed["back"] == ["controller-100", "broker-1", "broker-2", "broker-3"]
    assert set(cluster.links.conditions().values()) == {Open()}
