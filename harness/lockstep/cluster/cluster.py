"""A running cluster: its nodes, its links, and what can be done to it. Backends say how nodes run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import msgspec

from lockstep.clients.access import Access
from lockstep.clients.wire.quorum import Quorum, ask_quorum
from lockstep.closeable import Closeable
from lockstep.cluster.brokers import Brokers
from lockstep.cluster.config import NodeAddresses, Stage, first_stage, properties, render
from lockstep.cluster.distribution import Distribution, Format, Program, random_id
from lockstep.cluster.node import Node, NodeState
from lockstep.cluster.security import Secrets
from lockstep.cluster.zookeeper import Znodes, znodes
from lockstep.errors import ClusterError, UsageError
from lockstep.network.links import Links
from lockstep.network.topology import CLIENT_SIDES, Address, Link
from lockstep.recovery.ledger import Ledger
from lockstep.spec.cluster import ClusterSpec, Listener, Mode, NodeRole, NodeSpec
from lockstep.wait import WaitTimeout, wait_until

READY_S = 90.0
TRIES = 3
PROPERTIES, HOSTS, DATA = "server.properties", "hosts", "data"

STOP_ORDER = (NodeRole.BROKER, NodeRole.COMBINED, NodeRole.CONTROLLER, NodeRole.ZOOKEEPER)
"""Brokers first, since their controlled shutdown needs a controller; without ZooKeeper a broker is slow to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node is: its addresses, what its peers' names mean to it, its directory as it sees it itself."""

    addresses: NodeAddresses
    names: Mapping[str, str]
    inside: Path


class Cluster(Brokers, Closeable):
    """One cluster, from start to close. Closing kills what is left; nothing of it survives its context."""

    backend: ClassVar[str]
    links: Links
    secrets: Secrets

    def __init__(
        self,
        spec: ClusterSpec,
        directory: Path,
        ledger: Ledger,
        *,
        distributions: Mapping[str, Distribution],
        toxiproxy: Path,
    ) -> None:
        self.spec = spec
        """What it is now: an upgrade or a migration changes it."""
        self.directory = directory.absolute()
        self.ledger = ledger
        self.distributions = distributions
        self.toxiproxy = toxiproxy
        self.cluster_id = random_id()
        self.nodes: dict[str, Node] = {}
        self._stages = {node.name: first_stage(spec, node) for node in spec.nodes}

    def start(self) -> None:
        """Provision all nodes and start those that serve, and return when all brokers are registered and unfenced."""
        self._provision()
        self.secrets = Secrets.make(self.spec, {node.name: self._hosts(node) for node in self.spec.nodes}, self.ledger)
        for spec in self.spec.nodes:
            self._configure(spec)
            self.nodes[spec.name] = self._make(spec)
        serving = [node for node in self.nodes.values() if not self._waits_for_migration(node.spec)]
        zookeepers = [node for node in serving if node.spec.role is NodeRole.ZOOKEEPER]
        for node in zookeepers:
            node.start()
        self._introduce_users()
        for node in serving:
            if node not in zookeepers:
                node.start()
        self.wait_ready()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until every broker itself answers that it sees every broker registered and unfenced."""
        brokers = frozenset(self.broker_ids)
        seen: dict[int, frozenset[int]] = {}

        def ready() -> bool:
            self._require_running()
            seen.clear()
            seen.update({id_: view.brokers for id_, view in self.ask_all().items()})
            return seen.keys() == brokers and all(view == brokers for view in seen.values())

        try:
            wait_until(ready, timeout_s=timeout_s, what="all brokers to serve", interval_s=0.1)
        except WaitTimeout:
            raise ClusterError(
                f"the cluster was not ready after {timeout_s:g} s; brokers seen by each broker: "
                f"{ {id_: sorted(view) for id_, view in seen.items()} }; logs are in {self.directory / 'nodes'}"
            ) from None

    def wait_serving(self, broker_id: int, timeout_s: float = READY_S) -> None:
        """Wait until one broker answers, and every broker that runs sees it registered and unfenced."""

        def serving() -> bool:
            if self.broker(broker_id).state() is NodeState.STOPPED:
                raise _exited(self.broker(broker_id))
            views = self.ask_all()
            return broker_id in views and all(broker_id in view.brokers for view in views.values())

        wait_until(serving, timeout_s=timeout_s, what=f"broker {broker_id} to serve again", interval_s=0.25)

    def stop(self) -> None:
        """Shut every node down, those of one role at once."""
        for role in STOP_ORDER:
            _for_each((node for node in self.nodes.values() if node.spec.role is role), _stop_gently)

    def close(self) -> None:
        """Kill what still runs and give back what the backend holds; safe at any moment, and twice."""
        try:
            _for_each(self.nodes.values(), _kill_if_alive)
        finally:
            self._release()

    def restart(self, name: str, *, kafka: str | None = None, stage: Stage | None = None) -> None:
        """Shut a node down and start it again, if asked with another version or in another stage of a migration.

        Returns when it serves again; one node at a time, this is a rolling restart.
        """
        node = self.nodes[name]
        _stop_gently(node)
        if kafka is not None:
            if kafka not in self.distributions:
                raise UsageError(f"Kafka {kafka} was not prepared for this cluster")
            self.spec = msgspec.structs.replace(self.spec, node_kafka={**self.spec.node_kafka, name: kafka})
        if stage is not None:
            self._stages[name] = stage
        node = self._renewed(node)
        node.start()
        if node.spec.is_voter:
            self.wait_voting(node)
        if node.spec.is_broker:
            self.wait_serving(node.spec.id)
            self.wait_all_in_sync()

    def wait_voting(self, node: Node, timeout_s: float = READY_S) -> None:
        """Wait until the quorum has a leader to whom this voter has caught up."""

        def voting() -> bool:
            quorum = self.quorum()
            return quorum is not None and quorum.log_ends.get(node.spec.id, -1) >= quorum.high_watermark > 0

        wait_until(voting, timeout_s=timeout_s, what=f"{node.name} to vote again", interval_s=0.25)

    def quorum(self) -> Quorum | None:
        """The KRaft quorum as its leader describes it (DescribeQuorum); None while there is no leader."""
        for node in self.nodes.values():
            asks = node.spec.is_voter or (node.spec.is_broker and self._stages[node.name] is Stage.KRAFT)
            if asks and node.state() is NodeState.RUNNING:
                try:
                    quorum = ask_quorum(node.direct, self.access_to(node))
                except OSError:
                    continue
                if quorum is not None:
                    return quorum
        return None

    def broker(self, broker_id: int) -> Node:
        return next(node for node in self.nodes.values() if node.spec.is_broker and node.spec.id == broker_id)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self.spec.broker_ids

    def direct(self, broker_id: int) -> Address:
        return self.broker(broker_id).direct

    def expected(self, broker_id: int) -> bool:
        return self.broker(broker_id).state() is NodeState.RUNNING

    def incarnation(self, broker_id: int) -> int:
        return self.broker(broker_id).incarnation

    def stage(self, name: str) -> Stage:
        """Where a node stands between ZooKeeper and KRaft."""
        return self._stages[name]

    def bootstrap(self, listener: Listener = Listener.CLIENT) -> str:
        """Bootstrap servers for one client side, through its links."""
        links = (
            Link(source=CLIENT_SIDES[listener], destination=self.broker(id_).name, listener=listener)
            for id_ in self.broker_ids
        )
        return ",".join(str(self.links.address(link)) for link in links)

    def access(self, listener: Listener = Listener.CLIENT) -> Access:
        return self.secrets.access(self.bootstrap(listener))

    def access_to(self, node: Node) -> Access:
        """How the harness itself reaches one node, past all links."""
        return self.secrets.access(str(node.direct), listener=node.spec.direct_listener)

    @contextmanager
    def znodes(self) -> Iterator[Znodes]:
        """What ZooKeeper holds, asked from a server that runs."""
        servers = [node for node in self.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER]
        running = next((node for node in servers if node.state() is NodeState.RUNNING), None)
        if running is None:
            raise ClusterError("no ZooKeeper server of this cluster runs")
        with znodes(running.direct) as session:
            yield session

    @abstractmethod
    def _provision(self) -> None:
        """Open the links and whatever nodes need before they can be configured."""

    @abstractmethod
    def _place(self, node: NodeSpec) -> Place: ...

    @property
    @abstractmethod
    def _secrets_inside(self) -> Path:
        """The directory of the cluster's secrets as nodes see it."""

    @abstractmethod
    def _make(self, node: NodeSpec) -> Node:
        """A configured node, not started."""

    @abstractmethod
    def _release(self) -> None:
        """Give back proxies, networks and whatever else is not a node; safe twice."""

    def _directory_of(self, node: NodeSpec) -> Path:
        return self.directory / "nodes" / node.name

    def _program(self, node: NodeSpec) -> Program:
        if node.role is NodeRole.ZOOKEEPER:
            return Program.ZOOKEEPER
        return Program.KRAFT if node.is_voter or self._stages[node.name] is Stage.KRAFT else Program.ZK_BROKER

    def _configure(self, node: NodeSpec) -> None:
        """Write what a node starts from: properties, what its peers' names mean to it, and formatted storage."""
        directory = self._directory_of(node)
        for name in self._log_directories(node):
            (directory / name).mkdir(parents=True, exist_ok=True)
        place = self._place(node)
        security = self.secrets.node_properties(
            node, self._secrets_inside, zk_mode=self._program(node) is Program.ZK_BROKER
        )
        values = properties(
            self.spec,
            node,
            place.addresses,
            ",".join(str(place.inside / name) for name in self._log_directories(node)),
            stage=self._stages[node.name],
            security=security,
        )
        (directory / PROPERTIES).write_text(render(values))
        hosts = {"localhost": "127.0.0.1", **place.names}
        (directory / HOSTS).write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))
        if not any((directory / DATA).iterdir()):
            self._format(node, directory / DATA)

    def _format(self, node: NodeSpec, data: Path) -> None:
        """What a node's storage must hold before its first start; a ZooKeeper-mode broker makes its own."""
        if node.role is NodeRole.ZOOKEEPER:
            (data / "myid").write_text(f"{node.id}\n")
        elif not self._waits_for_migration(node) and self._stages[node.name] is Stage.KRAFT:
            self.format(node.name)

    def format(self, name: str, cluster_id: str | None = None) -> None:
        """Format a node's storage for KRaft; `cluster_id` is that of the cluster it is to join."""
        node = self.spec.node(name)
        for directory in self.log_directories(node):
            self._layout.write(directory, cluster_id=cluster_id or self.cluster_id, node_id=node.id)

    def log_directories(self, node: NodeSpec) -> list[Path]:
        """Where a node keeps its logs; the first one also has the KRaft metadata."""
        return [self._directory_of(node) / name for name in self._log_directories(node)]

    def _log_directories(self, node: NodeSpec) -> list[str]:
        count = self.spec.log_dirs if node.is_broker else 1
        return [DATA, *(f"{DATA}-{number}" for number in range(2, 1 + count))]

    @cached_property
    def _layout(self) -> Format:
        return self.distributions[self.spec.oldest].learn(self.spec.features, self.secrets.scram_users())

    def _introduce_users(self) -> None:
        """ZooKeeper holds the users that brokers prove themselves as, so it must know them before there is a broker."""
        if self.spec.mode is Mode.ZK and (users := self.secrets.znodes()):
            with self.znodes() as session:
                for path, credentials in users:
                    session.create(path, credentials)

    def _hosts(self, node: NodeSpec) -> set[str]:
        """The names and addresses by which a node is reached, for its certificate."""
        addresses = self._place(node).addresses
        return {node.name, *(address.host for address in (*addresses.bind.values(), *addresses.clients.values()))}

    def _renewed(self, old: Node) -> Node:
        """A stopped node again, from what the spec and its stage say now."""
        spec = self.spec.node(old.name)
        self._configure(spec)
        node = self.nodes[old.name] = self._make(spec)
        node.incarnation = old.incarnation
        return node

    def _may_start(self, node: NodeSpec) -> None:
        """Wait until ZooKeeper has forgotten a broker's last session: until then it refuses the next one's id."""
        if not node.is_broker or self._stages[node.name] is Stage.KRAFT or not self.nodes[node.name].incarnation:
            return
        with self.znodes() as session:
            wait_until(
                lambda: session.get(f"/brokers/ids/{node.id}") is None,
                timeout_s=READY_S,
                what=f"the last session of {node.name} to end",
            )

    def _waits_for_migration(self, node: NodeSpec) -> bool:
        return self.spec.mode is Mode.ZK and node.role is NodeRole.CONTROLLER

    def _require_running(self) -> None:
        for node in self.nodes.values():
            if node.incarnation and node.state() is NodeState.STOPPED:
                if node.incarnation >= TRIES or not self._lost_its_session(node):
                    raise _exited(node)
                node.start()

    def _lost_its_session(self, node: Node) -> bool:
        """A ZooKeeper-mode broker gives up if its session ends before it has registered, as on a busy machine."""
        return self._program(node.spec) is Program.ZK_BROKER and lost_session(node.directory / "server.log")


def _exited(node: Node) -> ClusterError:
    """A node that went while it should have come, with the last of its words that tell something."""
    told = [line for file in ("stdout.log", "server.log") for line in _told(node.directory / file)]
    words = f": {told[-1]}" if told else ""
    return ClusterError(f"{node.name} exited while starting; its log is in {node.directory}{words}")


def lost_session(log: Path) -> bool:
    """Whether a broker says that its ZooKeeper session was over; which words it has for it depends on what it did."""
    return any("SESSIONEXPIRED" in line or "Session expired" in line for line in _told(log))


def _told(log: Path) -> list[str]:
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return [line.strip() for line in lines if "Exception" in line or "ERROR" in line or "FATAL" in line]


def _stop_gently(node: Node) -> None:
    if node.state() is NodeState.PAUSED:
        node.resume()
    if node.state() is NodeState.RUNNING:
        try:
            node.stop()
        except WaitTimeout:
            node.kill()


def _kill_if_alive(node: Node) -> None:
    if node.state() is not NodeState.STOPPED:
        node.kill()


def _for_each(nodes: Iterable[Node], action: Callable[[Node], None]) -> None:
    """Do it to all at once: a graceful stop of three brokers takes as long as that of one."""
    todo = list(nodes)
    if todo:
        with ThreadPoolExecutor(len(todo)) as pool:
            list(pool.map(action, todo))
