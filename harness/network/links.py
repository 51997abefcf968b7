"""Links: every directed network path of a cluster, each with a proxy of its own.

A node reaches each peer through its own egress address, so `broker-1 > broker-2 REPL` can be cut while
`broker-2 > broker-1 REPL` and every other path stay as they are. Clients reach brokers through links too, one set per
client side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.errors import UsageError
from harness.network.topology import Address, Link
from harness.network.toxiproxy import ProxyServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a link is carried: the proxy server, where it listens for the source, and the destination's own address."""

    link: Link
    server: ProxyServer
    listen: Address
    upstream: Address
    published: Address | None = None
    """Where the source finds it, if that is not where the proxy itself listens: a container's port on the host."""


class Links:
    """The links of one running cluster."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = {route.link: route for route in routes}

    def open(self) -> None:
        """Create every proxy; nothing flows on a link before this."""
        for route in self._routes.values():
            route.server.create(route.link.name, listen=str(route.listen), upstream=str(route.upstream))

    def __iter__(self) -> Iterator[Link]:
        return iter(self._routes)

    def address(self, link: Link) -> Address:
        """Where the source of a link finds its destination."""
        route = self._route(link)
        return route.published or route.listen

    def cut(self, link: Link) -> None:
        """Drop the link's connections and refuse new ones until it is mended."""
        self._route(link).server.set_enabled(link.name, False)

    def mend(self, link: Link) -> None:
        self._route(link).server.set_enabled(link.name, True)

    def is_cut(self, link: Link) -> bool:
        return not self._route(link).server.is_enabled(link.name)

    def _route(self, link: Link) -> Route:
        try:
            return self._routes[link]
        except KeyError:
            raise UsageError(f"there is no link {link} in this cluster") from None
