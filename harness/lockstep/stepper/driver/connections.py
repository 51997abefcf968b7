"""Connections of the harness to brokers, one for each, for requests to which a broker responds at once."""

from __future__ import annotations

from lockstep.clients.wire.connection import Connection
from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.timeouts import ANSWER_S


class Connections(Closeable):
    """At most one open connection per broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connections: dict[int, Connection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def to(self, broker: int) -> Connection:
        """An open connection to a broker, as far as is known; raises `OSError` if the broker does not respond on it.

        A new connection counts once the broker has responded to ApiVersions: Docker's proxy accepts connections to a
        published port even if the broker does not listen, and then closes them.
        """
        known = self._connections.get(broker)
        if known is None or known.is_closed():
            self.disconnect(broker)
            self._connections[broker] = self._connect(broker)
        return self._connections[broker]

    def disconnect(self, broker: int) -> None:
        """Close the connection to a broker, if there is one."""
        if (known := self._connections.pop(broker, None)) is not None:
            known.close()

    def reachable(self, broker: int) -> bool:
        """Whether a broker accepts connections, and responds on them."""
        try:
            self.to(broker)
        except OSError:
            return False
        return True

    def _connect(self, broker: int) -> Connection:
        connection = Connection(self._cluster.direct(broker), self._cluster.access(), ANSWER_S)
        try:
            connection.newest_versions()
        except BaseException:
            connection.close()
            raise
        return connection
