"""The process backend on real brokers."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.network.topology import Link
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]


def topic(cluster: Cluster, name: str) -> str:
    if not any(view.partitions for view in cluster.ask_all((name,)).values()):
        cluster.create_topic(name, partitions=1, replication=3, config={"min.insync.replicas": "2"})
    return name


@pytest.mark.parametrize("listener", [Listener.CLIENT, Listener.CLIENT_B])
def test_both_client_sides_write_and_read(lockstep_cluster: Cluster, listener: Listener) -> None:
    name = topic(lockstep_cluster, f"side-{listener.lower().replace('_', '-')}")
    producer = Producer({"bootstrap.servers": lockstep_cluster.bootstrap(listener)})
    producer.produce(name, b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": lockstep_cluster.bootstrap(listener), "group.id": "g"})
    consumer.assign([TopicPartition(name, 0, 0)])
    message = wait_until(lambda: consumer.poll(0.5), timeout_s=30, what="the record")
    consumer.close()
    assert message is not None
    assert message.value() == b"hello"


def test_a_client_side_can_be_cut_off_alone(lockstep_cluster: Cluster) -> None:
    link = Link(source="clients", destination="broker-1", listener=Listener.CLIENT)
    other = Link(source="clients-b", destination="broker-1", listener=Listener.CLIENT_B)
    lockstep_cluster.links.cut(link)
    try:
        assert lockstep_cluster.links.is_cut(link)
        assert not lockstep_cluster.links.is_cut(other)
    finally:
        lockstep_cluster.links.mend(link)
    assert not lockstep_cluster.links.is_cut(link)


def test_cutting_one_direction_of_replication_shrinks_the_isr_and_mending_restores_it(
    lockstep_cluster: Cluster,
) -> None:
    name = topic(lockstep_cluster, "replicated")
    leader = lockstep_cluster.leader(name, 0)
    follower = next(id_ for id_ in leader.replicas if id_ != leader.leader)
    link = Link(source=f"broker-{follower}", destination=f"broker-{leader.leader}", listener=Listener.REPL)
    producer = Producer({"bootstrap.servers": lockstep_cluster.bootstrap()})
    lockstep_cluster.links.cut(link)
    try:
        producer.produce(name, b"not for everyone")
        wait_until(
            lambda: follower not in lockstep_cluster.leader(name, 0).isr, timeout_s=60, what="the follower to leave"
        )
        assert producer.flush(30) == 0
    finally:
        lockstep_cluster.links.mend(link)
    lockstep_cluster.wait_in_sync(name, 1)


def test_a_node_can_be_paused_stopped_killed_and_started_again(lockstep_cluster: Cluster) -> None:
    node = lockstep_cluster.broker(3)
    node.pause()
    assert node.state() is NodeState.PAUSED
    node.resume()
    assert node.state() is NodeState.RUNNING
    for end in (node.stop, node.kill):
        before = node.identity
        end()
        assert node.state() is NodeState.STOPPED
        assert 3 not in lockstep_cluster.ask_all()
        node.start()
        lockstep_cluster.wait_ready()
        assert node.identity != before


@pytest.mark.lockstep(brokers=1)
def test_two_clusters_at_once_do_not_meet(lockstep_cluster: Cluster, lockstep_clusters: Clusters) -> None:
    other = lockstep_clusters.get(brokers=1, controllers=1)
    assert other is not lockstep_cluster
    assert other.bootstrap() != lockstep_cluster.bootstrap()
    lockstep_cluster.create_topic("here", partitions=1, replication=1, config={})
    assert [p.topic for p in lockstep_cluster.ask(1, None).partitions if p.topic == "here"] == ["here"]
    assert "here" not in {p.topic for p in other.ask(1, None).partitions}
