"""Containers are let in on the secrets of their cluster, and on nothing in the run directory."""

from __future__ import annotations

import os

import pytest

from lockstep.clients.wire.connection import Connection
from lockstep.cluster.docker import engine_available
from lockstep.pytest_plugin import Clusters
from tests.cluster.security.attempts import SCRAM_OVER_TLS, TOPIC, produce
from tests.cluster.security.secret_search import found_below, needles

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]


def test_clients_and_harness_reach_every_container(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(backend="docker", brokers=1, security=SCRAM_OVER_TLS)
    cluster.create_topic(TOPIC, partitions=1, replication=1, config={})
    assert produce(cluster.access()) is None
    for node in cluster.nodes.values():
        Connection(node.direct, cluster.access_to(node)).close()
    assert found_below(cluster.directory, needles(cluster.secrets)) == []
