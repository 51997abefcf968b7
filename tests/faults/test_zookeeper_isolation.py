"""Brokers of a real cluster, cut off from ZooKeeper."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.faults.fault import get_fault
from lockstep.plan.targets import OneBroker, Target, WholeCluster
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, ZK, new_topic

pytestmark = GROUP


@pytest.mark.parametrize(
    ("target", "left"),
    [(WholeCluster(), []), pytest.param(OneBroker(id=2), ["1", "3"], marks=pytest.mark.long)],
    ids=str,
)
def test_zookeeper_forgets_them_and_they_serve_on(
    lockstep_clusters: Clusters, tmp_path: Path, target: Target, left: list[str]
) -> None:
    cluster = lockstep_clusters.get(**ZK)
    topic = new_topic(cluster)
    cut_off = [cluster.broker(id_).name for id_ in cluster.broker_ids if str(id_) not in left]

    with injected(cluster, tmp_path, "zookeeper-isolation", target) as seen:
        assert seen.bit["sessions_left"] == left
        assert seen.bit["still_answer"] == cut_off

    assert seen.healed["back"] == cut_off
    cluster.wait_in_sync(topic, 1)


def test_it_needs_zookeeper() -> None:
    kind = get_fault("zookeeper-isolation")

    assert kind.reason(ClusterSpec(), "process") == "needs ZooKeeper mode"
    assert kind.reason(ClusterSpec.of(**ZK), "process") is None
