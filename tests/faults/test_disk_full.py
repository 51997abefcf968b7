"""A real broker whose logs cannot grow any more."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from lockstep.cluster.node import NodeState
from lockstep.cluster.process import ProcessNode
from lockstep.faults import disk_full
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import FollowerOf
from lockstep.pytest_plugin import Clusters
from lockstep.wait import WaitTimeout
from tests.faults.injected import injected, last_fault, writing
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK)
def test_a_leader_without_space_exits_and_comes_back(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    leader = cluster.broker(cluster.leader(topic, 0).leader)
    assert isinstance(leader, ProcessNode)

    with writing(cluster, topic), injected(cluster, tmp_path, "disk-full", leader_of(topic), left_kb=1) as seen:
        assert seen.bit["exit_code"] == 1
        assert leader.state() is NodeState.STOPPED
        assert cluster.leader(topic, 0).leader != leader.spec.id

    assert f"{topic}-0" in seen.healed["in_isr_of"]
    assert seen.healed["file_size_limit"] == "none"
    assert leader.state() is NodeState.RUNNING


@pytest.mark.long
def test_with_another_log_directory_the_broker_goes_on_without_this_one(
    lockstep_clusters: Clusters, tmp_path: Path
) -> None:
    cluster = lockstep_clusters.get(mode="zk", log_dirs=2)
    topic = new_topic(cluster)
    target = FollowerOf(topic=topic, partition=0)

    # What is left is enough for the small files of the other directory.
    with writing(cluster, topic), injected(cluster, tmp_path, "disk-full", target, left_kb=8) as seen:
        node = cluster.nodes[last_fault(cluster).fields["target_resolved"]]
        (offline,) = seen.bit["offline"]
        assert (node.directory / offline / f"{topic}-0").is_dir()
        assert node.state() is NodeState.RUNNING

    assert seen.healed["offline"] == []


@pytest.mark.long
def test_a_log_that_does_not_grow_needs_no_space(lockstep_clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_full, "BIT_S", 1.0)
    cluster = lockstep_clusters.get(**KRAFT)
    topic = new_topic(cluster)
    fault = get_fault("disk-full").instance(cluster, leader_of(topic), {"left_kb": 1_000_000})
    fault.inject()
    try:
        node = cluster.nodes[fault.resolved]
        assert isinstance(node, ProcessNode)
        limit, lifted = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
        assert limit == 1_000_000_000
        assert lifted > limit or lifted == resource.RLIM_INFINITY
        with pytest.raises(WaitTimeout, match="to need more space"):
            fault.bit()
    finally:
        fault.heal()
