"""What a spec may say, in which words it is refused, and that its options ask for the same spec again."""

from __future__ import annotations

from typing import Any

import click
import javaproperties
import pytest

from lockstep.cli.options import Chosen, cluster_options
from lockstep.cluster.config import NodeAddresses, Stage, properties, render
from lockstep.errors import UsageError
from lockstep.network.topology import Address, links_of
from lockstep.spec.arguments import arguments
from lockstep.spec.cluster import ClusterSpec, Listener, Mechanism, Mode, NodeRole, Security


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"brokers": 0}, "1 to 5 brokers, not 0"),
        ({"brokers": 6}, "1 to 5 brokers, not 6"),
        ({"controllers": 2}, "1 or 3 controllers, not 2"),
        ({"zookeepers": 2, "mode": "zk"}, "1 or 3 servers, not 2"),
        ({"log_dirs": 0}, "1 to 4 log directories, not 0"),
        ({"log_dirs": 2, "kafka": "3.6.2"}, "several log directories in ZooKeeper mode only"),
        ({"mode": "zk", "kafka": "4.3.1"}, "no ZooKeeper mode, which ended with 3.9"),
        ({"mode": "zk", "node_kafka": {"broker-1": "4.0.2"}}, "Kafka 4.0.2 has no ZooKeeper mode"),
        ({"mode": "zk", "features": {"transaction.version": 2}}, "a ZooKeeper cluster has none"),
        ({"mode": "zk", "controllers": 2}, "migrates to 1 or 3 controllers, not 2"),
        ({"mode": "kraft-combined", "brokers": 4}, "1, 3 or 5 nodes, not 4"),
        ({"mode": "kraft-combined", "controllers": 1}, "no separate controllers"),
        ({"node_overrides": {"broker-4": {}}}, "there is no node broker-4"),
        ({"node_kafka": {"zookeeper-1": "3.9.2"}}, "there is no node zookeeper-1"),
        ({"mode": "raft"}, "Invalid enum value 'raft'"),
        ({"brocers": 3}, "a cluster has no brocers"),
        ({"overrides": {"ssl.keystore.password": "x"}}, "ssl.keystore.password is a secret"),
        ({"node_overrides": {"broker-1": {"sasl.jaas.config": "x"}}}, "sasl.jaas.config is a secret"),
        ({"security": {"users": ["alice"]}}, "users need a SASL mechanism"),
        ({"security": {"sasl": "PLAIN", "users": ["Al ice"]}}, "'Al ice' is not a user name"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ClusterSpec.of(**fields)


def test_nodes_start_in_the_order_in_which_they_need_each_other() -> None:
    assert [node.name for node in ClusterSpec.of(mode="zk", brokers=2, zookeepers=3, controllers=1).nodes] == [
        "zookeeper-1", "zookeeper-2", "zookeeper-3", "controller-100", "broker-1", "broker-2",
    ]  # fmt: skip
    assert [node.name for node in ClusterSpec.of(brokers=2, controllers=3).nodes] == [
        "controller-100", "controller-101", "controller-102", "broker-1", "broker-2",
    ]  # fmt: skip
    assert [node.name for node in ClusterSpec.of(mode="kraft-combined").nodes] == [
        "combined-1", "combined-2", "combined-3",
    ]  # fmt: skip


def test_brokers_are_spread_over_racks() -> None:
    spec = ClusterSpec(brokers=5, racks=("a", "b"))
    assert {node.name: node.rack for node in spec.nodes} == {
        "controller-100": None, "broker-1": "a", "broker-2": "b", "broker-3": "a", "broker-4": "b", "broker-5": "a",
    }  # fmt: skip


def test_a_mixed_cluster_is_formatted_for_its_oldest_version() -> None:
    spec = ClusterSpec(kafka="4.3.1", node_kafka={"broker-2": "3.9.2"})
    assert spec.versions == ("3.9.2", "4.3.1")
    assert spec.oldest == "3.9.2"
    assert spec.node("broker-2").kafka == "3.9.2"


@pytest.mark.parametrize(
    ("spec", "listener", "sources"),
    [
        (ClusterSpec.of(mode="zk"), Listener.ZOOKEEPER, {NodeRole.BROKER}),
        (ClusterSpec.of(mode="zk"), Listener.CONTROL, {NodeRole.BROKER}),
        (ClusterSpec.of(mode="zk", zookeepers=3), Listener.ZK_ELECTION, {NodeRole.ZOOKEEPER}),
        (ClusterSpec.of(mode="zk", controllers=1), Listener.ZOOKEEPER, {NodeRole.BROKER, NodeRole.CONTROLLER}),
        (ClusterSpec.of(mode="zk", controllers=1), Listener.REPL, {NodeRole.BROKER, NodeRole.CONTROLLER}),
        (ClusterSpec.of(), Listener.REPL, {NodeRole.BROKER}),
        (ClusterSpec.of(controllers=3), Listener.CONTROLLER, {NodeRole.BROKER, NodeRole.CONTROLLER}),
        (ClusterSpec.of(mode="kraft-combined"), Listener.CONTROLLER, {NodeRole.COMBINED}),
    ],
)
def test_there_is_a_link_for_everyone_who_connects(
    spec: ClusterSpec, listener: Listener, sources: set[NodeRole]
) -> None:
    found = {spec.node(link.source).role for link in links_of(spec) if link.listener is listener}
    assert found == sources


@pytest.mark.parametrize(
    "spec",
    [
        ClusterSpec(),
        ClusterSpec.of(mode="zk", zookeepers=3, controllers=1, kafka="3.6.2"),
        ClusterSpec.of(mode="kraft-combined", brokers=5, racks=("a", "b")),
        ClusterSpec.of(mode="zk", log_dirs=2),
        ClusterSpec(
            overrides={"num.io.threads": "8"},
            node_overrides={"broker-1": {"log.retention.ms": "1=2"}},
            node_kafka={"broker-2": "4.1.2"},
            features={"eligible.leader.replicas.version": 0, "transaction.version": 2},
        ),
        ClusterSpec(security=Security(tls=True, sasl=Mechanism.SCRAM_512, users=("alice", "bob"))),
    ],
)
def test_the_options_of_a_spec_ask_for_the_same_spec(spec: ClusterSpec) -> None:
    @click.command()
    @cluster_options
    def command(chosen: Chosen) -> ClusterSpec:
        return chosen.spec()

    assert command.main(arguments(spec), standalone_mode=False) == spec


def test_what_a_scenario_needs_counts_where_the_user_asks_for_nothing() -> None:
    @click.command()
    @cluster_options
    def command(chosen: Chosen) -> ClusterSpec:
        return chosen.spec({"mode": "zk", "kafka": "3.9.2", "controllers": 1})

    assert command.main([], standalone_mode=False).mode is Mode.ZK
    asked = command.main(["--mode", "kraft", "--kafka", "4.0.2"], standalone_mode=False)
    assert (asked.mode, asked.kafka, asked.controllers) == (Mode.KRAFT, "4.0.2", 1)


def test_every_field_that_a_scenario_needs_counts_and_what_the_user_asks_for_comes_on_top() -> None:
    needs = {
        "racks": ["a", "b"],
        "overrides": {"num.io.threads": "2", "num.network.threads": "2"},
        "features": {"transaction.version": 0},
        "security": Security(tls=True),
    }

    @click.command()
    @cluster_options
    def command(chosen: Chosen) -> ClusterSpec:
        return chosen.spec(needs)

    asked = command.main(["--set", "num.io.threads=8", "--brokers", "5"], standalone_mode=False)
    assert asked == ClusterSpec.of(
        **needs | {"brokers": 5, "overrides": {"num.io.threads": "8", "num.network.threads": "2"}}
    )


def test_nodes_that_are_gone_take_what_was_said_of_them_along() -> None:
    spec = ClusterSpec.of(
        mode="zk", controllers=1, node_overrides={"zookeeper-1": {"tickTime": "400"}, "broker-1": {"x": "y"}}
    )
    assert spec.without_gone(mode=Mode.KRAFT).node_overrides == {"broker-1": {"x": "y"}}


def test_brokers_of_mixed_versions_talk_as_the_oldest_does() -> None:
    spec = ClusterSpec.of(mode="zk", kafka="3.9.2", node_kafka={"broker-2": "3.6.2", "zookeeper-1": "3.6.2"})
    addresses = NodeAddresses(
        bind={listener: Address(host="h", port=1) for listener in Listener},
        clients={},
        ports=dict.fromkeys(Listener, 1),
    )
    written = properties(spec, spec.node("broker-1"), addresses, "data", stage=Stage.ZK, security={})
    assert written["inter.broker.protocol.version"] == "3.6"


def test_properties_are_written_as_java_reads_them() -> None:
    awkward = {"a": "back\\slash", "b": "two\nlines", "c": "josé: =#!"}
    assert javaproperties.loads(render(awkward)) == awkward


def test_a_spec_in_words() -> None:
    assert ClusterSpec().in_words() == "3 brokers and 1 controller (Kafka 4.3.1, kraft)"
    zk = ClusterSpec.of(mode="zk", brokers=1, security=Security(tls=True))
    assert zk.in_words() == "1 broker and 1 ZooKeeper server (Kafka 3.9.2, zk, SSL)"
