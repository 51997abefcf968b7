"""Every directed network path of a cluster, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lockstep.spec.cluster import CLIENT_LISTENERS, ClusterSpec, Listener, NodeRole, NodeSpec

CLIENT_SIDES: dict[Listener, str] = {Listener.CLIENT: "clients", Listener.CLIENT_B: "clients-b"}
"""The source of a client link: not a node, but all clients on that side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One directed path: the node or client side that connects, its destination, and the listener."""

    source: str
    destination: str
    listener: Listener

    @property
    def name(self) -> str:
        return f"{self.source}.{self.destination}.{self.listener}"

    def __str__(self) -> str:
        return f"{self.source} > {self.destination} {self.listener}"


def links_of(spec: ClusterSpec) -> Iterator[Link]:
    """Every link a cluster of this shape uses."""
    for destination in spec.nodes:
        for listener in destination.listeners:
            if listener in CLIENT_LISTENERS:
                yield Link(source=CLIENT_SIDES[listener], destination=destination.name, listener=listener)
                continue
            for source in spec.nodes:
                if source != destination and _connects(source, listener, migrates=_migrates(spec)):
                    yield Link(source=source.name, destination=destination.name, listener=listener)


def _connects(source: NodeSpec, listener: Listener, *, migrates: bool) -> bool:
    """Whether a node of this kind ever opens connections to that listener of another."""
    match listener:
        case Listener.CONTROLLER:
            return source.is_broker or source.is_voter
        case Listener.ZOOKEEPER:
            return source.role is not NodeRole.ZOOKEEPER
        case Listener.ZK_QUORUM | Listener.ZK_ELECTION:
            return source.role is NodeRole.ZOOKEEPER
        case Listener.REPL:
            # While a cluster migrates, its KRaft controllers tell ZooKeeper-mode brokers what to do (KIP-866).
            return source.is_broker or (migrates and source.role is NodeRole.CONTROLLER)
        case _:
            return source.is_broker


def _migrates(spec: ClusterSpec) -> bool:
    roles = {node.role for node in spec.nodes}
    return {NodeRole.ZOOKEEPER, NodeRole.CONTROLLER} <= roles
