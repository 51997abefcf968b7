"""A node's sidecar: the container that owns its network namespace and carries its links.

The node's own container joins the namespace, so that killing and starting it changes neither its address nor its
links. Inside, the node listens on the sidecar's address in the run's network, and each peer's name means a loopback
alias on which the sidecar's Toxiproxy listens: a link between nodes is cut at its source, and only there. Clients are
outside, so their links are at the destination, on ports that are published on the host's loopback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.models.containers import Container
from docker.models.networks import Network

from lockstep.cluster.docker.engine import engine_errors
from lockstep.cluster.docker.node import state_of
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError
from lockstep.network.topology import Address
from lockstep.network.toxiproxy import ProxyServer
from lockstep.spec.cluster import CLIENT_LISTENERS, Listener, NodeSpec
from lockstep.wait import wait_until

HOST = "127.0.0.1"
ANYWHERE = "0.0.0.0"  # noqa: S104 - of the namespace, which only the run's network and the host's loopback reach
BINARY = "/toxiproxy-server"
LOG = "toxiproxy.log"
READY_S = 30.0

API_PORT = 8474
LISTENER_PORTS = {listener: 9092 + step for step, listener in enumerate(Listener)}
CLIENT_LINK_PORTS = {listener: 19092 + step for step, listener in enumerate(CLIENT_LISTENERS)}

COMMAND = [BINARY, "-host", ANYWHERE, "-port", str(API_PORT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A running sidecar."""

    node: NodeSpec
    container: Container
    host: str
    """Its address, and with it the node's, in the run's network."""
    published: Mapping[int, Address]
    """Where the host finds a port of the namespace."""

    @property
    def server(self) -> ProxyServer:
        api = self.published[API_PORT]
        return ProxyServer(api.host, api.port)

    @property
    def direct(self) -> Address:
        return self.published[LISTENER_PORTS[self.node.direct_listener]]

    def bind(self, listener: Listener) -> Address:
        """Where the node itself listens."""
        return Address(host=self.host, port=LISTENER_PORTS[listener])

    def meaning_of(self, peer: NodeSpec) -> str:
        """What a peer's name means in this namespace."""
        return self.host if peer == self.node else f"127.0.1.{peer.octet}"


def publications(node: NodeSpec) -> dict[str, Any]:
    """Ports to publish, on the host's loopback only: the API, the clients' links, and the way past all links."""
    links = [CLIENT_LINK_PORTS[listener] for listener in node.listeners if listener in CLIENT_LISTENERS]
    ports = [API_PORT, LISTENER_PORTS[node.direct_listener], *links]
    return {f"{port}/tcp": (HOST, None) for port in ports}


def start_sidecar(node: NodeSpec, container: Container, network: Network, log: Path) -> Sidecar:
    """Start a sidecar's container and wait until its Toxiproxy answers."""
    with engine_errors(f"starting the sidecar of {node.name}"):
        container.start()
        container.reload()
    settings = container.attrs["NetworkSettings"]
    published = {
        int(port.partition("/")[0]): Address(host=HOST, port=int(bindings[0]["HostPort"]))
        for port, bindings in settings["Ports"].items()
        if bindings  # a port that only the image exposes has none
    }
    address = settings["Networks"][network.name]["IPAddress"]
    sidecar = Sidecar(node=node, container=container, host=address, published=published)

    def answers() -> bool:
        if state_of(container) is NodeState.STOPPED:
            output = log.read_text(errors="replace").strip() if log.exists() else "no output"
            raise ClusterError(f"the sidecar of {node.name} ended at once: {output}")
        return sidecar.server.answers()

    wait_until(answers, timeout_s=READY_S, what=f"the sidecar of {node.name} to answer (log: {log})")
    return sidecar
