"""The znodes of a ZooKeeper server, read (and seldom written) past all links."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from lockstep.errors import ClusterError
from lockstep.network.topology import Address

TIMEOUT_S = 10.0

_quiet = logging.getLogger("lockstep.zookeeper")
_quiet.propagate = False
_quiet.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, kw_only=True)
class Znode:
    """One node of the tree, as it was when asked."""

    data: bytes
    version: int
    """How often it was written since it was made."""
    czxid: int
    """The transaction that made it: another one if it is gone and made again."""

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = msgspec.json.decode(self.data)
        return value


class Znodes:
    """A session with one server; what cannot be asked raises `ClusterError`."""

    def __init__(self, client: KazooClient, server: str) -> None:
        self._client = client
        self._server = server

    def get(self, path: str) -> Znode | None:
        """A znode, or None if there is none."""
        with self._told(f"reading {path}"):
            try:
                data, stat = self._client.get_async(path).get(timeout=TIMEOUT_S)
            except NoNodeError:
                return None
            return Znode(data=data, version=stat.version, czxid=stat.czxid)

    def children(self, path: str) -> list[str]:
        with self._told(f"listing {path}"):
            try:
                return sorted(self._client.get_children_async(path).get(timeout=TIMEOUT_S))
            except NoNodeError:
                return []

    def create(self, path: str, data: bytes) -> None:
        """Make a znode, with all that is above it."""
        with self._told(f"creating {path}"):
            self._client.create(path, data, makepath=True)

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (KazooException, KazooTimeoutError) as error:
            raise ClusterError(f"{doing} at ZooKeeper {self._server} failed: {error!r}") from error


@contextmanager
def znodes(*servers: Address) -> Iterator[Znodes]:
    """A session with a server; of several, with one that answers, and after it with another."""
    server = ",".join(map(str, servers))
    client = KazooClient(hosts=server, timeout=TIMEOUT_S, logger=_quiet)
    try:
        try:
            client.start(TIMEOUT_S)
        except KazooTimeoutError as error:
            raise ClusterError(f"ZooKeeper {server} does not answer") from error
        yield Znodes(client, server)
    finally:
        client.stop()
        client.close()
