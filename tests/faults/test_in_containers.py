"""What operators and clients do bites a cluster in containers as it does one of processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.docker import engine_available
from lockstep.plan.targets import LeaderOf, OneTopic, WholeCluster
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]


@pytest.fixture
def cluster(lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(backend="docker")


@pytest.mark.parametrize("fault", ["config-change", "partition-growth", "reassignment", "topic-recreate"])
def test_of_operators(cluster: Cluster, tmp_path: Path, fault: str) -> None:
    topic = f"in-containers-{fault}"
    cluster.create_topic(topic, partitions=1, replication=2, config={})
    target = LeaderOf(topic=topic, partition=0) if fault == "reassignment" else OneTopic(topic=topic)
    with injected(cluster, tmp_path, fault, target) as seen:
        assert seen.bit
    assert seen.healed


@pytest.mark.parametrize(
    "fault",
    [
        "client-crash",
        "client-pause",
        "duplicate-transactional-id",
        "unclean-election",
        "zombie-consumer",
        "zombie-producer",
    ],
)
def test_with_a_topic_of_its_own(cluster: Cluster, tmp_path: Path, fault: str) -> None:
    with injected(cluster, tmp_path, fault, WholeCluster()) as seen:
        assert seen.bit
    assert seen.healed["deletion"] == "done"
