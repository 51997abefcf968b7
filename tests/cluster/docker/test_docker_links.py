"""Links of a cluster in containers do what those of processes do; all conditions are in tests/network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.docker import engine_available
from lockstep.network.conditions import BlackHole, Condition, Cut, OneWay
from lockstep.network.topology import Link
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener
from tests.network.effects import (
    CONDITIONS,
    NARROW,
    Outcomes,
    broker_is_missed,
    client_notices,
    replication_outcomes,
    together,
)

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]

SILENCING: tuple[Condition, ...] = (Cut(), BlackHole())


@pytest.fixture(scope="module")
def cluster(lockstep_clusters: Clusters) -> Iterator[Cluster]:
    cluster = lockstep_clusters.get(backend="docker")
    cluster.wait_all_in_sync()
    yield cluster
    cluster.wait_all_in_sync()


@pytest.fixture(scope="module")
def replication(cluster: Cluster) -> Outcomes:
    return replication_outcomes(cluster)


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_node_to_node(replication: Outcomes, condition: Condition) -> None:
    replication[condition].result()


@pytest.fixture(scope="module")
def control(cluster: Cluster) -> Outcomes:
    links = {
        condition: Link(source=f"broker-{id_}", destination="controller-100", listener=Listener.CONTROLLER)
        for id_, condition in enumerate(SILENCING, start=1)
    }
    return together(
        {condition: partial(broker_is_missed, cluster, link, condition, 3) for condition, link in links.items()}
    )


@pytest.mark.parametrize("condition", SILENCING, ids=str)
def test_node_to_controller(control: Outcomes, condition: Condition) -> None:
    control[condition].result()


@pytest.mark.parametrize(("listener", "condition"), [(Listener.CLIENT, OneWay()), (Listener.CLIENT_B, NARROW)], ids=str)
def test_client_to_broker(cluster: Cluster, listener: Listener, condition: Condition) -> None:
    topic = f"links-{listener.lower().replace('_', '-')}"
    cluster.create_topic(topic, partitions=1, replication=3, config={})
    client_notices(cluster, listener, topic, condition)
