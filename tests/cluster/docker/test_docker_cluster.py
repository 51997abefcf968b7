"""A real cluster in containers: it serves, nodes die and come back, links are directed, and nothing is left of it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep.clients.wire.metadata import ask_metadata
from lockstep.cluster.backends import Backend, prepare
from lockstep.cluster.distribution import Distribution, distribution
from lockstep.cluster.docker import DockerCluster, engine_available, prepare_image
from lockstep.cluster.docker.engine import connect
from lockstep.cluster.docker.resources import RUN_LABEL
from lockstep.cluster.node import NodeState
from lockstep.host.java import find_java
from lockstep.network.topology import Link
from lockstep.progress import Progress
from lockstep.recovery.ledger import Ledger, read_ledger
from lockstep.spec.cluster import ClusterSpec, Listener
from lockstep.wait import wait_until

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]

VERSION = ClusterSpec().kafka


@pytest.fixture(scope="module")
def kafka() -> Distribution:
    return distribution(VERSION, find_java(), Progress(quiet=True))


@pytest.fixture(scope="module")
def image(kafka: Distribution) -> str:
    return prepare_image(VERSION, kafka, Progress(quiet=True))


def docker_cluster(spec: ClusterSpec, directory: Path, ledger: Ledger) -> DockerCluster:
    cluster = prepare(spec, Backend.DOCKER, find_java(), Progress(quiet=True))(directory, ledger)
    assert isinstance(cluster, DockerCluster)
    return cluster


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerCluster]:
    directory = tmp_path_factory.mktemp("shared") / _unique()
    with Ledger(directory) as ledger, docker_cluster(ClusterSpec(), directory, ledger) as cluster:
        cluster.start()
        yield cluster


@pytest.fixture
def cluster(shared: DockerCluster) -> DockerCluster:
    """The shared cluster, whole again whatever the test before did to it."""
    for link in shared.links:
        shared.links.mend(link)
    for node in shared.nodes.values():
        if node.state() is not NodeState.RUNNING:
            node.kill()
            node.start()
    shared.wait_ready()
    return shared


@pytest.fixture
def topic(cluster: DockerCluster, request: pytest.FixtureRequest) -> str:
    """A topic whose three partitions are led by three brokers, each with a copy of everything."""
    name: str = request.node.name
    cluster.create_topic(name, partitions=3, replication=3, config={"min.insync.replicas": "2"})
    assert {cluster.leader(name, partition).leader for partition in range(3)} == {1, 2, 3}
    return name


@pytest.mark.parametrize("listener", [Listener.CLIENT, Listener.CLIENT_B])
def test_clients_write_and_read_through_their_links(cluster: DockerCluster, listener: Listener) -> None:
    name = f"orders-{listener.value}"
    cluster.create_topic(name, partitions=3, replication=3, config={})
    values = {f"value-{number}".encode() for number in range(30)}
    _write(cluster, name, values, listener)
    assert _read(cluster, name, len(values), listener) == values


def test_a_killed_leader_loses_its_partitions_and_comes_back(cluster: DockerCluster, topic: str) -> None:
    before = cluster.leader(topic, 0)
    node = cluster.broker(before.leader)
    incarnation, identity = node.incarnation, node.identity
    node.kill()
    assert node.state() is NodeState.STOPPED
    wait_until(lambda: cluster.leader(topic, 0).leader != before.leader, timeout_s=30, what="another leader")
    assert cluster.leader(topic, 0).leader_epoch > before.leader_epoch
    node.start()
    cluster.wait_in_sync(topic, 3)
    assert node.state() is NodeState.RUNNING
    assert (node.incarnation, node.identity) == (incarnation + 1, identity)


def test_a_node_is_paused_resumed_and_stopped_gracefully(cluster: DockerCluster) -> None:
    node = cluster.broker(3)
    node.pause()
    assert node.state() is NodeState.PAUSED
    node.resume()
    assert node.state() is NodeState.RUNNING
    node.stop()
    assert node.state() is NodeState.STOPPED
    node.kill()  # of what is gone already is no error
    last = (node.directory / "server.log").read_text().splitlines()[-1]
    assert "kafka.server for 3 unregistered" in last, "only a controlled shutdown gets that far"
    node.start()
    cluster.wait_ready()


def test_a_cut_link_stops_one_direction_only(cluster: DockerCluster, topic: str) -> None:
    cluster.wait_in_sync(topic, 3)
    leader = cluster.leader(topic, 0).leader
    follower, bystander = (id_ for id_ in cluster.spec.broker_ids if id_ != leader)
    link = Link(source=f"broker-{follower}", destination=f"broker-{leader}", listener=Listener.REPL)
    cluster.links.cut(link)
    try:
        assert [other for other in cluster.links if cluster.links.is_cut(other)] == [link]
        _write(cluster, topic, {b"x%d" % number for number in range(30)}, Listener.CLIENT, acks="1")
        wait_until(
            lambda: set(cluster.leader(topic, 0).isr) == {leader, bystander},
            timeout_s=30,
            what="the follower that cannot fetch to leave the ISR",
        )
        # All three partitions have had writes since, so whoever could not fetch would have left those ISRs too.
        led_by_follower = next(p for p in range(3) if cluster.leader(topic, p).leader == follower)
        assert set(cluster.leader(topic, led_by_follower).isr) == {1, 2, 3}
        assert cluster.ask(leader).brokers == {1, 2, 3}
    finally:
        cluster.links.mend(link)
    cluster.wait_in_sync(topic, 3)


def test_a_cut_client_link_hides_a_broker_from_one_side(cluster: DockerCluster) -> None:
    link = Link(source="clients", destination="broker-1", listener=Listener.CLIENT)
    other = Link(source="clients-b", destination="broker-1", listener=Listener.CLIENT_B)
    cluster.links.cut(link)
    with pytest.raises(OSError):  # noqa: PT011 - refused or closed, as the kernel has it
        ask_metadata(cluster.links.address(link))
    assert ask_metadata(cluster.links.address(other)).brokers == {1, 2, 3}
    assert cluster.ask(1).brokers == {1, 2, 3}, "the harness itself asks past all links"
    cluster.links.mend(link)
    assert ask_metadata(cluster.links.address(link)).brokers == {1, 2, 3}


def test_everything_is_labelled_and_published_on_loopback_only(cluster: DockerCluster) -> None:
    found = _of_run(cluster.directory.name)
    assert len(found["containers"]) == 2 * len(cluster.spec.nodes)
    assert len(found["networks"]) == 1
    published = [
        binding
        for container in found["containers"]
        for bindings in container.attrs["NetworkSettings"]["Ports"].values()
        for binding in bindings or ()
    ]
    assert len(published) == 3 * 4 + 2
    assert {binding["HostIp"] for binding in published} == {"127.0.0.1"}


def test_close_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / _unique()
    with Ledger(directory) as ledger:
        cluster = docker_cluster(ClusterSpec(brokers=1), directory, ledger)
        cluster.start()
        assert len(_of_run(directory.name)["containers"]) == 4
        cluster.broker(1).pause()  # what is paused must go too
        cluster.close()
        cluster.close()
        assert _of_run(directory.name) == {"containers": [], "networks": []}
        assert list(ledger.open_entries()) == []
    assert {entry.kind for entry in read_ledger(ledger.path)} == {"container", "network"}
    assert (directory / "nodes" / "broker-1" / "server.log").stat().st_uid == os.getuid()


def _unique() -> str:
    """A run's name: engines outlive test sessions, and temporary directories have the same names every time."""
    return f"run-{uuid.uuid4().hex[:8]}"


def _of_run(run: str) -> dict[str, list[Any]]:
    with closing(connect().client) as client:
        label = f"{RUN_LABEL}={run}"
        return {
            "containers": client.containers.list(all=True, filters={"label": label}, ignore_removed=True),
            "networks": client.networks.list(filters={"label": label}),
        }


def _write(cluster: DockerCluster, topic: str, values: set[bytes], listener: Listener, acks: str = "all") -> None:
    """Write to all three partitions in turn."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap(listener), "acks": acks})
    for number, value in enumerate(sorted(values)):
        producer.produce(topic, value, partition=number % 3)
    assert producer.flush(30) == 0


def _read(cluster: DockerCluster, topic: str, count: int, listener: Listener) -> set[bytes]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap(listener), "group.id": "test"})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        return {message.value() or b"" for message in consumer.consume(count, timeout=30)}
    finally:
        consumer.close()
