"""Addresses for clusters on this machine: each cluster gets a loopback subnet `127.C.*.*` of its own.

Node j binds `127.C.j.j`; source i finds it at `127.C.i.j`, where a proxy listens. The port depends on the listener, so
two clusters can never collide: they differ in C. A subnet belongs to the process that has bound its Toxiproxy
API address: the kernel decides that, and frees the address when the process dies.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.cache import exclusive
from lockstep.network.topology import CLIENT_SIDES, Address, Link
from lockstep.spec.cluster import ClusterSpec, Listener, NodeSpec

PORT_BASE_VARIABLE = "LOCKSTEP_PORT_BASE"
PORT_BASES = (9092, 19092, 29092, 12092, 22092)
API_PORT_STEP = 9
TRIES_PER_BASE = 16
_CLIENT_OCTETS = {CLIENT_SIDES[Listener.CLIENT]: 250, CLIENT_SIDES[Listener.CLIENT_B]: 251}
_PORT_STEP = {listener: step for step, listener in enumerate(Listener)}


class Subnet:
    """The addresses of one cluster in `127.<number>.*.*`."""

    def __init__(self, number: int, port_base: int, spec: ClusterSpec) -> None:
        self.number = number
        self.port_base = port_base
        self._octet = {node.name: node.octet for node in spec.nodes} | _CLIENT_OCTETS
        self._spec = spec

    @property
    def api(self) -> Address:
        return Address(host=f"127.{self.number}.0.1", port=self.port_base + API_PORT_STEP)

    def port(self, listener: Listener) -> int:
        return self.port_base + _PORT_STEP[listener]

    def bind(self, node: NodeSpec, listener: Listener) -> Address:
        """Where a node itself listens."""
        return self._address(node.name, node.name, listener)

    def egress(self, link: Link) -> Address:
        """Where a link's proxy listens for its source."""
        return self._address(link.source, link.destination, link.listener)

    def hosts(self, node: NodeSpec) -> dict[str, str]:
        """What each name of the cluster means to this node: itself directly, every other node through its own links."""
        return {peer.name: f"127.{self.number}.{node.octet}.{peer.octet}" for peer in self._spec.nodes}

    def _address(self, source: str, destination: str, listener: Listener) -> Address:
        host = f"127.{self.number}.{self._octet[source]}.{self._octet[destination]}"
        return Address(host=host, port=self.port(listener))

    def free(self) -> bool:
        """Whether no process listens on a port that the cluster needs, in this subnet or on all addresses."""
        own = [self.bind(node, listener) for node in self._spec.nodes for listener in node.listeners]
        return all(_can_bind(address) for address in [self.api, *own])


@contextmanager
def free_subnet(spec: ClusterSpec) -> Iterator[Subnet]:
    """An unused subnet, reserved for the caller while this context is open: bind its API address before leaving it."""
    require_loopback_aliases()
    # Between finding a subnet free and binding its API address, this user's other processes must wait.
    with exclusive(Path(tempfile.gettempdir()) / f"lockstep-{os.getuid()}"):
        yield _find_free(spec)


def require_loopback_aliases() -> None:
    if not _can_bind(Address(host="127.3.2.1", port=0)):
        fix = "sudo ifconfig lo0 alias 127.x.y.z for each" if sys.platform == "darwin" else "check the lo interface"
        raise EnvironmentError_(f"addresses of 127.0.0.0/8 other than 127.0.0.1 cannot be bound here: {fix}")


def _find_free(spec: ClusterSpec) -> Subnet:
    bases = _port_bases()
    # At random, to keep users of one machine out of each other's way; 127.0 is in common use.
    numbers = random.sample(range(1, 255), TRIES_PER_BASE)
    for base in bases:
        for number in numbers:
            subnet = Subnet(number, base, spec)
            if subnet.free():
                return subnet
    ports = ", ".join(f"{base}-{base + API_PORT_STEP}" for base in bases)
    raise EnvironmentError_(
        f"other programs listen on ports Lockstep needs ({ports}): stop them, or choose another range with "
        f"{PORT_BASE_VARIABLE}=<first port>"
    )


def _port_bases() -> tuple[int, ...]:
    chosen = os.environ.get(PORT_BASE_VARIABLE)
    if chosen is None:
        return PORT_BASES
    if not chosen.isdigit() or not 1024 <= int(chosen) <= 65000:
        raise UsageError(f"{PORT_BASE_VARIABLE} is a port from 1024 to 65000, not {chosen!r}")
    return (int(chosen),)


def _can_bind(address: Address) -> bool:
    with socket.socket() as probe:
        # As Java does, so that connections lingering in TIME_WAIT do not count as occupied.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
            probe.listen()
        except OSError:
            return False
    return True
