"""The brokers of a cluster, each asked directly, past all links."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lockstep.clients.access import Access
from lockstep.clients.wire.metadata import ClusterView, PartitionView, ask_metadata
from lockstep.clients.wire.topics import create_topic
from lockstep.errors import ClusterError
from lockstep.network.topology import Address
from lockstep.spec.cluster import Listener
from lockstep.wait import WaitTimeout, wait_until


class Brokers(ABC):
    """Requests to single brokers. There is no view of the cluster as a whole: every response is one broker's."""

    @property
    @abstractmethod
    def broker_ids(self) -> tuple[int, ...]: ...

    @abstractmethod
    def direct(self, broker_id: int) -> Address:
        """Where the harness asks this broker."""

    @abstractmethod
    def access(self, listener: Listener = Listener.CLIENT) -> Access:
        """How clients of one side reach the brokers; the harness itself shows the same credentials."""

    @abstractmethod
    def expected(self, broker_id: int) -> bool:
        """Whether there is any use in asking it: it is not known to be stopped or paused."""

    @abstractmethod
    def incarnation(self, broker_id: int) -> int | None:
        """How often the broker has been started; None for a cluster that Lockstep does not run."""

    def ask(self, broker_id: int, topics: tuple[str, ...] | None = ()) -> ClusterView:
        """The Metadata response of one broker; raises `OSError` when it does not answer."""
        return ask_metadata(self.direct(broker_id), topics, access=self.access())

    def ask_all(self, topics: tuple[str, ...] | None = ()) -> dict[int, ClusterView]:
        """The Metadata response of every broker that answers."""
        views = {}
        for id_ in self.broker_ids:
            if self.expected(id_):
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
        address = self.direct(self._controller(name, replication))
        create_topic(address, name, partitions=partitions, replication=replication, config=config, access=self.access())
        self.wait_in_sync(name, partitions)

    def place_topic(self, name: str, replicas: tuple[int, ...], config: dict[str, str]) -> None:
        """Create a topic of one partition on these brokers, the first of which leads, and wait as for any other."""
        count = len(replicas)
        address, access = self.direct(self._controller(name, count)), self.access()
        create_topic(address, name, partitions=1, replication=count, config=config, access=access, replicas=replicas)
        self.wait_in_sync(name, 1)

    def _controller(self, topic: str, replication: int) -> int:
        """A broker to create a topic at: the controller, or in KRaft one that passes it on.

        It sees as many brokers as the topic needs, if there are as many: a lost session may be coming back.
        """
        needed = min(replication, len(self.broker_ids))
        views: dict[int, ClusterView] = {}

        def known() -> int | None:
            views.clear()
            views.update(self.ask_all())
            told = {view.controller for view in views.values()}
            return next((id_ for id_ in sorted(told) if id_ in views and len(views[id_].brokers) >= needed), None)

        try:
            id_ = wait_until(known, timeout_s=30, what="a controller", interval_s=0.2)
        except WaitTimeout:
            seen = {id_: (view.controller, sorted(view.brokers)) for id_, view in views.items()}
            raise ClusterError(
                f"topic {topic} cannot be created: no controller sees {needed} brokers; "
                f"(controller, brokers) as each broker sees them: {seen}"
            ) from None
        assert id_ is not None
        return id_

    def wait_in_sync(self, topic: str, partitions: int, timeout_s: float = 60.0) -> None:
        """Wait until every broker answers that these partitions, and any later ones, have a leader and a full ISR."""
        last: dict[int, ClusterView] = {}

        def in_sync() -> bool:
            last.clear()
            last.update(self.ask_all((topic,)))
            return len(last) == len(self.broker_ids) and all(
                len(view.partitions) >= partitions and all(p.in_sync for p in view.partitions) for view in last.values()
            )

        try:
            wait_until(in_sync, timeout_s=timeout_s, what=f"{topic} to be fully in sync", interval_s=0.2)
        except WaitTimeout:
            seen = {id_: {p.partition: (p.leader, p.isr) for p in view.partitions} for id_, view in last.items()}
            raise ClusterError(
                f"{topic} was not fully in sync after {timeout_s:g} s; (leader, ISR) as each broker sees them: {seen}"
            ) from None

    def wait_all_in_sync(self, timeout_s: float = 60.0) -> None:
        """Wait until every broker answers that every partition of every topic has a leader and its full ISR."""

        def in_sync() -> bool:
            views = self.ask_all(None)
            return views.keys() == set(self.broker_ids) and all(
                p.in_sync for view in views.values() for p in view.partitions
            )

        wait_until(in_sync, timeout_s=timeout_s, what="every partition to be fully in sync", interval_s=0.25)
