"""A running cluster: its nodes, its links, and what it says about itself. Backends say how nodes run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from harness.clients.wire.metadata import ClusterView, PartitionView, ask_metadata
from harness.clients.wire.topics import create_topic
from harness.closeable import Closeable
from harness.cluster.config import NodeAddresses, properties, render
from harness.cluster.distribution import Distribution, random_id
from harness.cluster.node import Node, NodeState
from harness.cluster.spec import ClusterSpec, Listener, NodeRole, NodeSpec
from harness.errors import ClusterError
from harness.ledger import Ledger
from harness.network.links import Links
from harness.network.topology import CLIENT_SIDES, Link
from harness.wait import WaitTimeout, wait_until

READY_S = 90.0
PROPERTIES, HOSTS, DATA = "server.properties", "hosts", "data"


class Cluster(Closeable):
    """One cluster, from start to close. Closing kills what is left; nothing of it survives its context."""

    backend: ClassVar[str]
    links: Links

    def __init__(
        self, spec: ClusterSpec, directory: Path, ledger: Ledger, *, distribution: Distribution, toxiproxy: Path
    ) -> None:
        self.spec = spec
        self.directory = directory.absolute()
        self.ledger = ledger
        self.distribution = distribution
        self.toxiproxy = toxiproxy
        self.cluster_id = random_id()
        self.nodes: dict[str, Node] = {}

    def start(self) -> None:
        """Provision and start every node, and return when all brokers are registered, unfenced and serving."""
        self._provision()
        for node in self.nodes.values():
            node.start()
        self.wait_ready()

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Wait until every broker itself answers that it sees every broker registered and unfenced."""
        everyone = frozenset(self.spec.broker_ids)
        seen: dict[int, frozenset[int]] = {}

        def ready() -> bool:
            self._require_running()
            seen.clear()
            seen.update({id_: view.brokers for id_, view in self.ask_all().items()})
            return seen.keys() == everyone and all(view == everyone for view in seen.values())

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

        wait_until(serving, timeout_s=timeout_s, what=f"broker-{broker_id} to serve again", interval_s=0.25)

    def stop(self) -> None:
        """Shut every node down in order: brokers first, since they say goodbye to the controllers."""
        for role in (NodeRole.BROKER, NodeRole.CONTROLLER):
            _for_each((node for node in self.nodes.values() if node.spec.role is role), _stop_gently)

    def close(self) -> None:
        """Kill what still runs and give back what the backend holds; safe at any moment, and twice."""
        try:
            _for_each(self.nodes.values(), _kill_if_alive)
        finally:
            self._release()

    def broker(self, broker_id: int) -> Node:
        return self.nodes[f"{NodeRole.BROKER}-{broker_id}"]

    def bootstrap(self, listener: Listener = Listener.CLIENT) -> str:
        """Bootstrap servers for one client side, through its links."""
        links = (
            Link(source=CLIENT_SIDES[listener], destination=f"{NodeRole.BROKER}-{id_}", listener=listener)
            for id_ in self.spec.broker_ids
        )
        return ",".join(str(self.links.address(link)) for link in links)

    def ask(self, broker_id: int, topics: tuple[str, ...] | None = ()) -> ClusterView:
        """What one broker believes; raises `OSError` when it does not answer."""
        return ask_metadata(self.broker(broker_id).direct, topics)

    def ask_all(self, topics: tuple[str, ...] | None = ()) -> dict[int, ClusterView]:
        """What every broker that answers believes."""
        views = {}
        for id_ in self.spec.broker_ids:
            if self.broker(id_).state() is NodeState.RUNNING:
                try:
                    views[id_] = self.ask(id_, topics)
                except OSError:
                    continue
        return views

    def leader(self, topic: str, partition: int) -> PartitionView:
        """The newest view, by leader epoch, that any broker has of a partition with a leader."""

        def newest() -> PartitionView | None:
            views = (view.partition(topic, partition) for view in self.ask_all((topic,)).values())
            led = [view for view in views if view is not None and view.leader >= 0]
            return max(led, key=lambda view: view.leader_epoch, default=None)

        view = wait_until(newest, timeout_s=30, what=f"{topic}-{partition} to have a leader", interval_s=0.1)
        assert view is not None
        return view

    def create_topic(self, name: str, *, partitions: int, replication: int, config: dict[str, str]) -> None:
        """Create a topic and wait until every broker sees all its partitions led and fully in sync."""
        first = next(iter(self.ask_all().values()), None)
        if first is None:
            raise ClusterError(f"no broker answers, so topic {name} cannot be created")
        address = self.broker(first.controller).direct
        create_topic(address, name, partitions=partitions, replication=replication, config=config)
        self.wait_in_sync(name, partitions)

    def wait_in_sync(self, topic: str, partitions: int, timeout_s: float = 60.0) -> None:
        """Wait until every broker answers that every partition has a leader and its full ISR."""
        last: dict[int, ClusterView] = {}

        def in_sync() -> bool:
            last.clear()
            last.update(self.ask_all((topic,)))
            return len(last) == self.spec.brokers and all(
                len(view.partitions) == partitions
                and all(p.leader >= 0 and set(p.isr) == set(p.replicas) for p in view.partitions)
                for view in last.values()
            )

        try:
            wait_until(in_sync, timeout_s=timeout_s, what=f"{topic} to be fully in sync", interval_s=0.2)
        except WaitTimeout:
            seen = {id_: {p.partition: (p.leader, p.isr) for p in view.partitions} for id_, view in last.items()}
            raise ClusterError(
                f"{topic} was not fully in sync after {timeout_s:g} s; (leader, ISR) as each broker sees them: {seen}"
            ) from None

    @abstractmethod
    def _provision(self) -> None:
        """Fill `nodes` and open `links`; start nothing."""

    @abstractmethod
    def _release(self) -> None:
        """Give back proxies, networks and whatever else is not a node; safe twice."""

    def _directory_of(self, node: NodeSpec) -> Path:
        return self.directory / "nodes" / node.name

    def _configure(self, node: NodeSpec, addresses: NodeAddresses, names: Mapping[str, str], inside: Path) -> None:
        """Write what a node starts from: formatted storage, properties, and what its peers' names mean to it.

        `inside` is the node's directory as the node itself sees it.
        """
        directory = self._directory_of(node)
        data = directory / DATA
        data.mkdir(parents=True, exist_ok=True)
        self.distribution.format(data, cluster_id=self.cluster_id, node_id=node.id)
        (directory / PROPERTIES).write_text(render(properties(self.spec, node, addresses, str(inside / DATA))))
        hosts = {"localhost": "127.0.0.1", **names}
        (directory / HOSTS).write_text("".join(f"{address} {name}\n" for name, address in hosts.items()))

    def _require_running(self) -> None:
        for node in self.nodes.values():
            if node.state() is NodeState.STOPPED:
                raise _exited(node)


def _exited(node: Node) -> ClusterError:
    """A node that went while it should have come, with the last of its words that tell something."""
    output = node.directory / "stdout.log"
    lines = output.read_text(errors="replace").split("\n") if output.exists() else []
    told = [line.strip() for line in lines if "Exception" in line or "rror" in line]
    words = f": {told[-1]}" if told else ""
    return ClusterError(f"{node.name} exited while starting; its log is in {node.directory}{words}")


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
