from __future__ import annotations

import socket

import pytest

from lockstep.errors import EnvironmentError_, UsageError
from lockstep.network.loopback import PORT_BASE_VARIABLE, PORT_BASES, Subnet, free_subnet
from lockstep.network.topology import Link, links_of
from lockstep.spec.cluster import ClusterSpec, Listener

SPEC = ClusterSpec()


def test_every_directed_link_has_an_address_of_its_own() -> None:
    subnet = Subnet(7, 9092, SPEC)
    links = list(links_of(SPEC))
    own = [subnet.bind(node, listener) for node in SPEC.nodes for listener in node.listeners]
    addresses = [*map(subnet.egress, links), *own, subnet.api]
    assert len(set(addresses)) == len(links) + len(own) + 1
    assert all(address.host.startswith("127.7.") for address in addresses)


def test_links_are_those_that_kafka_uses() -> None:
    named = {str(link) for link in links_of(ClusterSpec(brokers=2))}
    assert named == {
        "broker-1 > controller-100 CONTROLLER",
        "broker-2 > controller-100 CONTROLLER",
        "broker-1 > broker-2 REPL",
        "broker-2 > broker-1 REPL",
        "clients > broker-1 CLIENT",
        "clients > broker-2 CLIENT",
        "clients-b > broker-1 CLIENT_B",
        "clients-b > broker-2 CLIENT_B",
    }


def test_a_node_finds_itself_directly_and_its_peers_through_its_links() -> None:
    subnet = Subnet(7, 9092, SPEC)
    broker = next(node for node in SPEC.nodes if node.name == "broker-1")
    hosts = subnet.hosts(broker)
    assert hosts["broker-1"] == subnet.bind(broker, Listener.REPL).host
    link = Link(source="broker-1", destination="broker-2", listener=Listener.REPL)
    assert hosts["broker-2"] == subnet.egress(link).host


def test_a_range_that_others_use_is_left_for_the_next() -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("lockstep.network.loopback.PORT_BASES", (taken, *PORT_BASES))
            with free_subnet(SPEC) as subnet:
                assert subnet.port_base != taken


def test_occupied_ports_are_said_in_a_sentence_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        monkeypatch.setenv(PORT_BASE_VARIABLE, str(other.getsockname()[1]))
        with pytest.raises(EnvironmentError_, match="other programs listen on ports Lockstep needs"), free_subnet(SPEC):
            pass


@pytest.mark.parametrize("wrong", ["http", "80", "70000"])
def test_a_wrong_port_range_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv(PORT_BASE_VARIABLE, wrong)
    with pytest.raises(UsageError, match="is a port from 1024"), free_subnet(SPEC):
        pass
