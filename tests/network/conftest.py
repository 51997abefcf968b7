from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest

from lockstep.network.server_binary import toxiproxy_server
from lockstep.network.toxiproxy import ProxyServer
from lockstep.progress import Progress
from lockstep.wait import wait_until
from tests.network.wires import Wires, free_address


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyServer]:
    """A real proxy server; it must survive whatever a test does to its links."""
    api = free_address()
    argv = [str(toxiproxy_server(Progress(quiet=True))), "-host", api.host, "-port", str(api.port)]
    log = tmp_path_factory.mktemp("proxy") / "toxiproxy.log"
    with log.open("w") as output, subprocess.Popen(argv, stdout=output, stderr=output) as process:
        try:
            server = ProxyServer(api.host, api.port)
            wait_until(server.answers, timeout_s=20, what="the proxy server to answer")
            yield server
            assert process.poll() is None, log.read_text()
        finally:
            process.kill()


@pytest.fixture
def wires(server: ProxyServer) -> Iterator[Wires]:
    with socket.create_server(("127.0.0.1", 0)) as destination, Wires(server, destination) as made:
        yield made
