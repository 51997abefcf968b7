"""The `process` backend: every node a JVM on loopback, every link through one Toxiproxy server."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lockstep.cluster.cluster import HOSTS, PROPERTIES, Cluster, Place
from lockstep.cluster.config import NodeAddresses
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError
from lockstep.network.links import Links, Route
from lockstep.network.loopback import Subnet, free_subnet
from lockstep.network.topology import CLIENT_SIDES, Address, Link, links_of
from lockstep.network.toxiproxy import ProxyServer
from lockstep.recovery.ledger import Ledger
from lockstep.recovery.os_process import OsProcess
from lockstep.spec.cluster import Listener, NodeSpec
from lockstep.wait import wait_until

STOP_S = 30.0
CLAIMS_MAX = 3
PROXY_LOG = "toxiproxy.log"


class ProcessNode:
    """One JVM."""

    def __init__(
        self,
        *,
        spec: NodeSpec,
        directory: Path,
        direct: Address,
        argv: list[str],
        ledger: Ledger,
        may_start: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.direct = direct
        self.incarnation = 0
        self.environment: dict[str, str] = {}
        """What its next process is started with, beside our own."""
        self._argv = argv
        self._ledger = ledger
        self._may_start = may_start
        self._process: OsProcess | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def identity(self) -> str:
        return self._process.identity if self._process else "never started"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def exit_code(self) -> int | None:
        """How its last process ended, negative for a signal; None while it runs."""
        return self._running().exit_code()

    def memory_mb(self) -> int | None:
        return self._process.memory_mb() if self._process else None

    def state(self) -> NodeState:
        if self._process is None or not self._process.alive():
            return NodeState.STOPPED
        return NodeState.PAUSED if self._process.paused() else NodeState.RUNNING

    def start(self) -> None:
        self._may_start()
        self.incarnation += 1
        log = self.directory / "stdout.log"
        self._process = OsProcess.launch(self._ledger, name=self.name, argv=self._argv, log=log, env=self.environment)

    def stop(self) -> None:
        self._running().terminate(STOP_S)

    def kill(self) -> None:
        self._running().kill()

    def pause(self) -> None:
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def _running(self) -> OsProcess:
        assert self._process is not None, f"{self.name} was never started"
        return self._process


class ProcessCluster(Cluster):
    """A cluster of plain processes: no root, no Docker."""

    backend = "process"

    _proxies: OsProcess | None = None
    _subnet: Subnet

    def _provision(self) -> None:
        self._subnet, server = self._claim_subnet()
        self.links = Links(
            Route(
                link=link,
                server=server,
                listen=self._subnet.egress(link),
                upstream=self._subnet.bind(self.spec.node(link.destination), link.listener),
            )
            for link in links_of(self.spec)
        )
        self.links.open()

    def _claim_subnet(self) -> tuple[Subnet, ProxyServer]:
        """Another user may take the same subnet at that moment: the kernel gives it to one, the other looks again."""
        for _ in range(CLAIMS_MAX):
            with free_subnet(self.spec) as subnet:
                server = self._start_proxies(subnet)
                if server is not None:
                    return subnet, server
        raise ClusterError(f"Toxiproxy did not start {CLAIMS_MAX} times: see {self.directory / PROXY_LOG}")

    def _start_proxies(self, subnet: Subnet) -> ProxyServer | None:
        """The server, once it answers; None if it has exited instead."""
        self.directory.mkdir(parents=True, exist_ok=True)
        argv = [str(self.toxiproxy), "-host", subnet.api.host, "-port", str(subnet.api.port)]
        log = self.directory / PROXY_LOG
        process = OsProcess.launch(self.ledger, name="toxiproxy", argv=argv, log=log)
        self._proxies = process
        server = ProxyServer(subnet.api.host, subnet.api.port)
        wait_until(
            lambda: server.answers() or not process.alive(), timeout_s=20, what=f"{server} to answer (log: {log})"
        )
        return server if process.alive() else None

    def _place(self, node: NodeSpec) -> Place:
        subnet = self._subnet
        addresses = NodeAddresses(
            bind={listener: subnet.bind(node, listener) for listener in node.listeners},
            clients={
                listener: subnet.egress(Link(source=side, destination=node.name, listener=listener))
                for listener, side in CLIENT_SIDES.items()
            },
            ports={listener: subnet.port(listener) for listener in Listener},
        )
        names = {socket.gethostname(): "127.0.0.1"} | subnet.hosts(node)
        return Place(addresses=addresses, names=names, inside=self._directory_of(node))

    @property
    def _secrets_inside(self) -> Path:
        return self.secrets.directory

    def _make(self, node: NodeSpec) -> ProcessNode:
        directory = self._directory_of(node)
        argv = self.distributions[node.kafka].command(
            self._program(node),
            str(directory / PROPERTIES),
            system_properties={"jdk.net.hosts.file": str(directory / HOSTS)},
            log_directory=directory,
        )
        return ProcessNode(
            spec=node,
            directory=directory,
            direct=self._subnet.bind(node, node.direct_listener),
            argv=argv,
            ledger=self.ledger,
            may_start=partial(self._may_start, node),
        )

    def _release(self) -> None:
        if self._proxies is not None:
            self._proxies.kill()
            self._proxies = None
