"""Every shape of cluster from one spec, on real nodes."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from lockstep.clients.wire.features import ask_features
from lockstep.clients.wire.quorum import active_controller
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.config import Stage
from lockstep.cluster.node import NodeState
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Mode
from lockstep.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

IDLE_MB = 200
ELR = "eligible.leader.replicas.version"
TRANSACTIONS = "transaction.version"


def broker_setting(cluster: Cluster, broker: int, name: str) -> str:
    admin = AdminClient({**cluster.access().librdkafka()})
    resource = ConfigResource(ResourceType.BROKER, str(broker))
    value = admin.describe_configs([resource])[resource].result(30)[name].value
    assert isinstance(value, str)
    return value


@pytest.mark.lockstep(mode="zk")
def test_zookeeper_mode_registers_brokers_with_zookeeper(lockstep_cluster: Cluster) -> None:
    with lockstep_cluster.znodes() as session:
        assert session.children("/brokers/ids") == ["1", "2", "3"]
        controller = session.get("/controller")
    assert controller is not None
    assert {view.controller for view in lockstep_cluster.ask_all().values()} == {controller.json()["brokerid"]}
    assert lockstep_cluster.stage("broker-1") is Stage.ZK


@pytest.mark.lockstep(mode="zk")
def test_a_killed_zookeeper_mode_broker_waits_for_its_last_session_to_end(lockstep_cluster: Cluster) -> None:
    """Without that wait it would find its own id taken, and exit."""
    node = lockstep_cluster.broker(2)
    node.kill()
    node.start()
    lockstep_cluster.wait_serving(2)
    assert node.state() is NodeState.RUNNING
    lockstep_cluster.wait_ready()


@pytest.mark.lockstep(mode="zk")
def test_a_topic_is_created_once_the_controller_sees_enough_brokers(lockstep_cluster: Cluster) -> None:
    controller = lockstep_cluster.ask(1).controller
    away = next(id_ for id_ in lockstep_cluster.broker_ids if id_ != controller)
    lockstep_cluster.broker(away).pause()
    try:
        wait_until(
            lambda: away not in lockstep_cluster.ask(controller).brokers, timeout_s=60, what="the session to be lost"
        )
    finally:
        lockstep_cluster.broker(away).resume()

    lockstep_cluster.create_topic("for-everyone", partitions=1, replication=3, config={})

    assert set(lockstep_cluster.leader("for-everyone", 0).replicas) == set(lockstep_cluster.broker_ids)


@pytest.mark.lockstep(
    mode="kraft-combined", racks=("east", "west"), node_overrides={"combined-2": {"num.io.threads": "5"}}
)
def test_combined_nodes_are_brokers_and_quorum_in_one(lockstep_cluster: Cluster) -> None:
    node = lockstep_cluster.broker(1)
    assert active_controller(node.direct, lockstep_cluster.access_to(node)) in (1, 2, 3)
    assert [broker_setting(lockstep_cluster, id_, "broker.rack") for id_ in (1, 2, 3)] == ["east", "west", "east"]
    assert [broker_setting(lockstep_cluster, id_, "num.io.threads") for id_ in (1, 2, 3)] == ["4", "5", "4"]


@pytest.mark.lockstep(brokers=1, features={ELR: 0, TRANSACTIONS: 0}, overrides={"num.io.threads": "6"})
def test_feature_levels_are_those_it_was_formatted_with(lockstep_cluster: Cluster) -> None:
    node = lockstep_cluster.broker(1)
    finalized = ask_features(node.direct, lockstep_cluster.access_to(node)).finalized
    assert ELR not in finalized
    assert TRANSACTIONS not in finalized
    assert broker_setting(lockstep_cluster, 1, "num.io.threads") == "6"


def test_feature_levels_are_the_newest_by_default(lockstep_cluster: Cluster) -> None:
    node = lockstep_cluster.broker(1)
    finalized = ask_features(node.direct, lockstep_cluster.access_to(node)).finalized
    assert (finalized[ELR], finalized[TRANSACTIONS]) == (1, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    "spec",
    [
        {"mode": "zk", "kafka": "3.6.2"},
        {"mode": "zk", "zookeepers": 3, "brokers": 5},
        {"kafka": "3.6.2"},
        {"kafka": "3.9.2", "controllers": 3},
        {"kafka": "4.0.2"},
        {"kafka": "4.1.2", "mode": "kraft-combined"},
        {"kafka": "4.3.1", "node_kafka": {"broker-2": "3.9.2"}},
        {"mode": "kraft-combined", "brokers": 5},
    ],
    ids=str,
)
def test_it_serves_and_survives_the_loss_of_a_broker(spec: dict[str, object], lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(**spec)
    sizes = {node.name: node.memory_mb() for node in cluster.nodes.values()}
    assert all(size is not None and size < IDLE_MB for size in sizes.values()), sizes
    cluster.create_topic("t", partitions=3, replication=3, config={"min.insync.replicas": "2"})
    victim = cluster.broker(cluster.leader("t", 0).leader)
    before = cluster.leader("t", 0)
    victim.stop()
    after = cluster.leader("t", 0)
    assert after.leader != before.leader
    assert after.leader_epoch > before.leader_epoch
    victim.start()
    cluster.wait_ready()
    cluster.wait_in_sync("t", 3)
    for node in cluster.nodes.values():
        node.kill()  # so that it is not kept for the next test


@pytest.mark.lockstep(brokers=1)
def test_a_node_of_a_mixed_cluster_runs_its_own_version(lockstep_clusters: Clusters) -> None:
    mixed = lockstep_clusters.get(brokers=1, node_kafka={"broker-1": "4.1.2"})
    broker, controller = mixed.nodes["broker-1"], mixed.nodes["controller-100"]
    levels = [
        ask_features(node.direct, mixed.access_to(node)).supported["metadata.version"] for node in (broker, controller)
    ]
    assert levels[0] < levels[1]
    assert mixed.spec.mode is Mode.KRAFT
