"""Links: every directed network path of a cluster, each with a proxy of its own.

A node reaches each peer through its own egress address, so `broker-1 > broker-2 REPL` can be cut while
`broker-2 > broker-1 REPL` and every other path stay as they are. Clients reach brokers through links too, one set per
client side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from lockstep.errors import ClusterError, UsageError
from lockstep.network.conditions import Condition, Cut, Frames, Open
from lockstep.network.topology import Address, Link
from lockstep.network.toxiproxy import Proxy, ProxyServer, ProxyState
from lockstep.spec.cluster import Listener

NOT_KAFKA = frozenset({Listener.ZOOKEEPER, Listener.ZK_QUORUM, Listener.ZK_ELECTION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a link is carried: the proxy server, where it listens for the source, and the destination's own address."""

    link: Link
    server: ProxyServer
    listen: Address
    upstream: Address
    published: Address | None = None
    """Where the source finds it, if that is not where the proxy itself listens: a container's port on the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes that a link has passed on since it was opened."""

    to_destination: int
    to_source: int


class Links:
    """The links of one running cluster; their state is in the proxy servers, so any process sees the same."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = {route.link: route for route in routes}

    @classmethod
    def attached(cls, described: object) -> Links:
        """The links of a cluster that another process has opened and `described`."""
        return cls(msgspec.convert(described, list[Route]))

    def described(self) -> list[dict[str, Any]]:
        """All that another process needs to attach to these links, as plain JSON values."""
        return [msgspec.to_builtins(route) for route in self._routes.values()]

    def open(self) -> None:
        """Create every proxy; nothing flows on a link before this."""
        proxies: dict[ProxyServer, list[Proxy]] = defaultdict(list)
        for route in self._routes.values():
            proxy = Proxy(name=route.link.name, listen=str(route.listen), upstream=str(route.upstream))
            proxies[route.server].append(proxy)
        for server, wanted in proxies.items():
            server.create(wanted)

    def __iter__(self) -> Iterator[Link]:
        return iter(self._routes)

    def address(self, link: Link) -> Address:
        """Where the source of a link finds its destination."""
        route = self._route(link)
        return route.published or route.listen

    def impose(self, link: Link, condition: Condition) -> None:
        """Put a link into a condition until it is mended or another one is imposed."""
        if isinstance(condition, Frames) and link.listener in NOT_KAFKA:
            raise UsageError(f"{link} carries ZooKeeper's protocol, which has no frames of Kafka's")
        self._route(link).server.impose(link.name, condition)

    def cut(self, link: Link) -> None:
        """Drop the link's connections and refuse new ones until it is mended."""
        self.impose(link, Cut())

    def mend(self, link: Link) -> None:
        """Undo whatever was imposed; no stream of bytes resumes with a hole in it."""
        self.impose(link, Open())

    def is_cut(self, link: Link) -> bool:
        return isinstance(self.condition(link), Cut)

    def condition(self, link: Link) -> Condition:
        """The current condition of a link, whichever process imposed it."""
        route = self._route(link)
        return _state(route, route.server.states()).condition

    def conditions(self) -> dict[Link, Condition]:
        return {link: state.condition for link, state in self._states().items()}

    def traffic(self) -> dict[Link, Traffic]:
        """What each link has carried up to now."""
        return {
            link: Traffic(to_destination=state.to_destination, to_source=state.to_source)
            for link, state in self._states().items()
        }

    def matched(self, link: Link) -> tuple[int, ...]:
        """How often each rule of a link's `Frames` has acted since it was imposed."""
        route = self._route(link)
        return _state(route, route.server.states()).matched

    def _states(self) -> dict[Link, ProxyState]:
        """Of all links, with one request to each server."""
        states = {server: server.states() for server in {route.server for route in self._routes.values()}}
        return {link: _state(route, states[route.server]) for link, route in self._routes.items()}

    def _route(self, link: Link) -> Route:
        try:
            return self._routes[link]
        except KeyError:
            raise UsageError(f"there is no link {link} in this cluster") from None


def _state(route: Route, states: dict[str, ProxyState]) -> ProxyState:
    try:
        return states[route.link.name]
    except KeyError:
        raise ClusterError(f"{route.server} does not carry {route.link}: was the cluster stopped?") from None
