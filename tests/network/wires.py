"""Two links to one destination, and sockets at both ends of them."""

from __future__ import annotations

import itertools
import socket
from typing import NamedTuple

from lockstep.closeable import Closeable
from lockstep.network.links import Links, Route
from lockstep.network.topology import Address, Link
from lockstep.network.toxiproxy import ProxyServer
from lockstep.spec.cluster import Listener

PATIENCE_S = 20.0
SILENCE_S = 0.3

_numbers = itertools.count(1)


class Ends(NamedTuple):
    """One connection: the source's socket and the destination's."""

    source: socket.socket
    destination: socket.socket


class Wires(Closeable):
    """`link` is the one that things are done to; `other` goes to the same destination and must never notice."""

    def __init__(self, server: ProxyServer, destination: socket.socket) -> None:
        number = next(_numbers)  # a server keeps the links of all its tests
        self.link = Link(source=f"clients-{number}", destination="broker-1", listener=Listener.CLIENT)
        self.other = Link(source=f"clients-b-{number}", destination="broker-1", listener=Listener.CLIENT_B)
        destination.settimeout(PATIENCE_S)
        self._destination = destination
        upstream = Address(host="127.0.0.1", port=destination.getsockname()[1])
        self.links = Links(
            Route(link=link, server=server, listen=free_address(), upstream=upstream)
            for link in (self.link, self.other)
        )
        self.links.open()
        self._sockets: list[socket.socket] = []

    def connect(self, link: Link | None = None) -> Ends:
        """A connection through a link; the destination accepts it whatever the link's condition."""
        self._forget_who_gave_up()
        address = self.links.address(link or self.link)
        source = socket.create_connection((address.host, address.port), timeout=PATIENCE_S)
        self._sockets.append(source)
        accepted, _ = self._destination.accept()
        accepted.settimeout(PATIENCE_S)
        self._sockets.append(accepted)
        return Ends(source, accepted)

    def _forget_who_gave_up(self) -> None:
        """A connection that ended before it was accepted waits in the kernel, and would be taken for the next."""
        self._destination.settimeout(0)
        try:
            while True:
                self._destination.accept()[0].close()
        except BlockingIOError:
            self._destination.settimeout(PATIENCE_S)

    def close(self) -> None:
        for link in self.links:
            self.links.mend(link)
        for each in self._sockets:
            each.close()


def free_address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Address(host="127.0.0.1", port=probe.getsockname()[1])


def receive(receiver: socket.socket, size: int) -> bytes:
    """That many bytes, or fewer if the sender closes."""
    received = bytearray()
    while len(received) < size and (more := receiver.recv(size - len(received))):
        received += more
    return bytes(received)


def passes(sender: socket.socket, receiver: socket.socket, words: bytes = b"ping") -> bool:
    sender.sendall(words)
    return receive(receiver, len(words)) == words


def works(ends: Ends) -> bool:
    return passes(ends.source, ends.destination) and passes(ends.destination, ends.source)


def silent(receiver: socket.socket) -> bool:
    """Whether nothing arrives, neither data nor an end."""
    receiver.settimeout(SILENCE_S)
    try:
        receiver.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    else:
        return False
    finally:
        receiver.settimeout(PATIENCE_S)
