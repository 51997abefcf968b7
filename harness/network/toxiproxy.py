"""The one place that talks to Toxiproxy, and the only module that imports `toxiproxy-python`.

The library keeps host and port as class attributes (one server per Python process), has no time-outs and ignores HTTP
5xx. Here every call names its server under one lock, goes through `_Http`, and fails loudly.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
import toxiproxy.api
from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.errors import ClusterError

TIMEOUT_S = 5.0

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


class ProxyServer:
    """One Toxiproxy server, by the address of its API."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

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

    def create(self, name: str, *, listen: str, upstream: str) -> None:
        with self._library() as library:
            library.create(upstream=upstream, name=name, listen=listen, enabled=True)

    def set_enabled(self, name: str, enabled: bool) -> None:
        with self._library() as library:
            proxy = self._proxy(library, name)
            proxy.enable() if enabled else proxy.disable()

    def is_enabled(self, name: str) -> bool:
        with self._library() as library:
            return bool(self._proxy(library, name).enabled)

    def _proxy(self, library: Toxiproxy, name: str) -> Any:
        proxy = library.get_proxy(name)
        if proxy is None:
            raise ClusterError(f"{self} has no proxy {name}")
        return proxy

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
