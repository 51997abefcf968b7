"""Nodes of a real cluster that go and come back at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import FaultError
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import ActiveController, OneBroker, OneZooKeeper, Target, WholeCluster
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK)
def test_a_leader_is_missed_and_is_another_process_afterwards(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = cluster.leader(topic, 0)

    with injected(cluster, tmp_path, "restart", leader_of(topic)) as seen:
        assert seen.bit["node_before"] != seen.bit["node"]
        assert seen.bit["incarnation"] == seen.bit["incarnation_before"] + 1
        assert seen.bit["missed_by"] == [id_ for id_ in cluster.broker_ids if id_ != before.leader]
        assert seen.bit["leader_epoch_after"] > before.leader_epoch

    assert f"{topic}-0" in seen.healed["in_isr_of"]
    assert seen.healed["identity"] == seen.bit["node"]


@pytest.mark.long
@pytest.mark.parametrize(("shape", "target"), [(KRAFT, ActiveController()), (ZK, OneZooKeeper(id=1))])
def test_who_decides_is_restarted_as_well(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any], target: Target
) -> None:
    cluster = lockstep_clusters.get(**shape)

    with injected(cluster, tmp_path, "restart", target) as seen:
        assert seen.bit["node_before"] != seen.bit["node"]

    cluster.wait_ready()


def test_a_node_that_does_not_run_is_not_restarted(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get()
    fault = get_fault("restart").instance(cluster, OneBroker(id=3), {})
    cluster.broker(3).pause()
    try:
        with pytest.raises(FaultError, match="broker-3 is paused already"):
            fault.inject()
    finally:
        cluster.broker(3).resume()


@shapes(KRAFT, ZK)
def test_every_broker_has_its_turn(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = {cluster.broker(id_).name: cluster.incarnation(id_) for id_ in cluster.broker_ids}

    with injected(cluster, tmp_path, "rolling-restart", WholeCluster()) as seen:
        assert seen.bit["restarted"] == sorted(before)
        assert seen.bit["incarnation"] == {name: started + 1 for name, started in before.items()}
        assert all(len(others) == 2 for others in seen.bit["missed_by"].values())

    assert seen.healed == {"in_sync": [1, 2, 3]}
    cluster.wait_in_sync(topic, 1)
