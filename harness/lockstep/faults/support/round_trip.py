"""Round-trip times of requests through a link, which the harness itself sends from where the source would."""

from __future__ import annotations

import socket
import time

from lockstep.clients.access import Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.features import features
from lockstep.clients.wire.metadata import metadata
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.network.topology import Address, Link
from lockstep.spec.cluster import ClusterSpec, Listener

PATIENCE_S = 10.0
NAME_SIZE = 200
NOT_A_FRAME = b"\xff\xff\xff\xff"
"""A frame of negative size: brokers, controllers and ZooKeeper servers close the connection that sends it."""

MEASURED_ON = ("process",)
"""In containers, the links between nodes listen where only their source finds them."""


def cannot_measure(spec: ClusterSpec, _backend: str) -> str | None:
    """Certificates are for the names that nodes give each other, and not for the addresses of links."""
    return "needs links without TLS, to measure round trips" if spec.security.tls else None


def through_ms(cluster: Cluster, link: Link, *, payload_bytes: int = 0, allowed_ms: float = 0) -> float:
    """How long an answer takes that comes through a link; `allowed_ms` is what the link may take for it.

    With a payload, it is a question about that many bytes of topics that do not exist, and the answer is as long.
    """
    address = cluster.links.address(link)
    access = cluster.secrets.access(str(address), listener=link.listener)
    try:
        return _round_trip_ms(address, access, link.listener, payload_bytes, PATIENCE_S + allowed_ms / 1000)
    except OSError as error:
        raise FaultError(f"no answer came through {link}: {error}") from error


def past_ms(cluster: Cluster, link: Link, *, payload_bytes: int = 0) -> float:
    """How long the same takes past all links, asked from the same node."""
    node = cluster.nodes[link.destination]
    try:
        return _round_trip_ms(
            node.direct, cluster.access_to(node), node.spec.direct_listener, payload_bytes, PATIENCE_S
        )
    except OSError as error:
        raise FaultError(f"{node.name} does not answer: {error}") from error


def _round_trip_ms(address: Address, access: Access, listener: Listener, payload_bytes: int, timeout_s: float) -> float:
    if listener is Listener.ZOOKEEPER:
        with socket.create_connection((address.host, address.port), timeout_s) as raw:
            began = time.monotonic()
            raw.sendall(b"ruok")
            raw.recv(4)
            return (time.monotonic() - began) * 1000
    with Connection(address, access, timeout_s) as connection:
        began = time.monotonic()
        if payload_bytes:
            metadata(connection, _unknown_topics(payload_bytes))
        else:
            features(connection)
        return (time.monotonic() - began) * 1000


class HungUpOn:
    """A connection that the node at its other end is made to close."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection((address.host, address.port), PATIENCE_S)
        self._socket.sendall(NOT_A_FRAME)

    def told(self, within_s: float) -> bool:
        """Whether our end hears of it in that time."""
        self._socket.settimeout(within_s)
        try:
            while self._socket.recv(4096):
                continue
        except TimeoutError:
            return False
        except ConnectionError:
            return True
        return True

    def close(self) -> None:
        self._socket.close()


def _unknown_topics(size: int) -> tuple[str, ...]:
    return tuple(f"{number:0{NAME_SIZE}d}" for number in range(1 + size // NAME_SIZE))
