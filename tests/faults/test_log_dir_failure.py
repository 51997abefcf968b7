"""A log directory of a real broker that fails, while the broker goes on with its other one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.cluster.node import NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import OneBroker
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until
from tests.faults.injected import injected, last_fault
from tests.faults.shapes import GROUP, new_topic, shapes

pytestmark = GROUP

KRAFT: dict[str, Any] = {"log_dirs": 2}
ZK: dict[str, Any] = {"mode": "zk", "log_dirs": 2}


@shapes(KRAFT, ZK)
def test_the_broker_loses_what_is_in_it_and_keeps_the_rest(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster, partitions=4)
    node = cluster.broker(1)
    failing = node.directory / "data-2"
    wait_until(lambda: len(list(node.directory.glob(f"data*/{topic}-*"))) == 4, timeout_s=30, what="four logs")
    there = {path.name for path in failing.glob(f"{topic}-*")}
    elsewhere = {path.name for path in (node.directory / "data").glob(f"{topic}-*")}
    assert there
    assert elsewhere

    with injected(cluster, tmp_path, "log-dir-failure", OneBroker(id=1)) as seen:
        assert seen.bit["offline"] == ["data-2"]
        assert there <= set(seen.bit["left_isr_of"])
        assert not elsewhere & set(seen.bit["left_isr_of"])
        assert node.state() is NodeState.RUNNING
        in_isr = {f"{p.topic}-{p.partition}" for p in cluster.ask(2, (topic,)).partitions if 1 in p.isr}
        assert in_isr == elsewhere
        assert last_fault(cluster).fields["undo"] == [
            {"undo": "remove-directory", "path": "nodes/broker-1/data-2/replication-offset-checkpoint.tmp"}
        ]
        with pytest.raises(FaultError, match="data-2 of broker-1 fails already"):
            get_fault("log-dir-failure").instance(cluster, OneBroker(id=1), {}).inject()

    assert seen.healed["offline"] == []
    assert there | elsewhere <= set(seen.healed["in_isr_of"])
    assert not (failing / "replication-offset-checkpoint.tmp").exists()


def test_a_broker_with_one_directory_has_none_to_lose() -> None:
    reason = get_fault("log-dir-failure").reason(ClusterSpec(), "process")
    assert reason == "needs brokers with two log directories: --log-dirs 2"
