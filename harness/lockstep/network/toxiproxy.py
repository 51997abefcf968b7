"""The one place that talks to Toxiproxy, and the only module that imports `toxiproxy-python`.

The library keeps host and port as class attributes (one server per Python process), has no time-outs, ignores HTTP
5xx, recreates proxies in `populate` and cannot change a toxic. Here every call names its server under one lock, goes
through `_Http`, and fails loudly.

The server is our own build (`proxy/`): each of its proxies has a `flow` in both directions from the start, which counts
what it passes on and knows the condition of the link.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import requests
import toxiproxy.api
from toxiproxy import Toxiproxy
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from lockstep.errors import ClusterError
from lockstep.network.conditions import Condition, Cut, Open

TIMEOUT_S = 5.0
TO_DESTINATION = "destination"
TO_SOURCE = "source"

_calls = threading.Lock()


class _Http:
    """What the library calls instead of `requests`: time-outs on, environment proxies off, 5xx an error."""

    def __init__(self) -> None:
        self._session = requests.Session()
        self._session.trust_env = False

    def __getattr__(self, method: str) -> Any:
        def call(*, url: str, **kwargs: Any) -> requests.Response:
            response = self._session.request(method.upper(), url, timeout=TIMEOUT_S, **kwargs)
            if response.status_code >= 500:
                raise ClusterError(
                    f"Toxiproxy answered {response.status_code} to {method} {url}: {response.text.strip()}"
                )
            return response

        return call


toxiproxy.api.requests = _Http()


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy to be made."""

    name: str
    listen: str
    upstream: str


class ProxyState(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy as its server sees it."""

    condition: Condition
    to_destination: int
    to_source: int
    matched: tuple[int, ...]
    """How often each rule for frames has acted since it was imposed."""


class _Flow(msgspec.Struct, frozen=True):
    condition: Condition
    passed: int
    matched: tuple[int, ...] = ()


class _Toxic(msgspec.Struct, frozen=True):
    name: str
    attributes: _Flow


class _Answer(msgspec.Struct, frozen=True):
    enabled: bool
    toxics: list[_Toxic]

    def state(self) -> ProxyState:
        flows = {toxic.name: toxic.attributes for toxic in self.toxics}
        return ProxyState(
            # Towards the source is written last: what it says is true of both.
            condition=flows[TO_SOURCE].condition if self.enabled else Cut(),
            to_destination=flows[TO_DESTINATION].passed,
            to_source=flows[TO_SOURCE].passed,
            # A rule acts in one of the two directions.
            matched=tuple(map(sum, zip(flows[TO_DESTINATION].matched, flows[TO_SOURCE].matched, strict=False))),
        )


@dataclass(frozen=True, slots=True)
class ProxyServer:
    """One proxy server, by the address of its API."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"Toxiproxy at {self.host}:{self.port}"

    def answers(self) -> bool:
        """Whether the API is up."""
        try:
            with self._library() as library:
                library.proxies()
        except ClusterError:
            return False
        return True

    def create(self, proxies: Iterable[Proxy]) -> None:
        """Make proxies, all in one request; none of them may be there already."""
        wanted = list(proxies)
        with self._library() as library:
            there = library.proxies().keys() & {proxy.name for proxy in wanted}
            if there:
                raise ClusterError(f"{self} has {', '.join(sorted(there))} already")
            APIConsumer.post("/populate", json=msgspec.to_builtins(wanted))

    def states(self) -> dict[str, ProxyState]:
        """Every proxy, by name, in one request."""
        with self._library():
            answers = msgspec.json.decode(APIConsumer.get("/proxies").content, type=dict[str, _Answer])
        return {name: answer.state() for name, answer in answers.items()}

    def impose(self, name: str, condition: Condition) -> None:
        """Put a proxy into a condition, whatever it was in before."""
        with self._library() as library:
            proxy = library.get_proxy(name)
            if proxy is None:
                raise ClusterError(f"{self} has no proxy {name}")
            if isinstance(condition, Cut):
                proxy.disable()
                _set_flows(name, Open())
            else:
                _set_flows(name, condition)
                proxy.enable()

    @contextmanager
    def _library(self) -> Iterator[Toxiproxy]:
        with _calls:
            library = Toxiproxy()
            library.update_api_consumer(self.host, self.port)
            try:
                yield library
            except requests.RequestException as error:
                raise ClusterError(f"{self} does not answer: {error}") from error
            except (ProxyExists, NotFound, InvalidToxic) as error:
                raise ClusterError(f"{self} refused: {error}") from error


def _set_flows(name: str, condition: Condition) -> None:
    for flow in (TO_DESTINATION, TO_SOURCE):
        asked = {"attributes": {"condition": msgspec.to_builtins(condition)}}
        APIConsumer.post(f"/proxies/{name}/toxics/{flow}", json=asked)
