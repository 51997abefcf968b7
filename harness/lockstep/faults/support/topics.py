"""Topics that faults are about: one that the plan names, or one of the fault's own."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Protocol

from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.topics import create_topic, delete_topic
from lockstep.cluster.cluster import Cluster
from lockstep.errors import ClusterError
from lockstep.faults.fault import Proof
from lockstep.faults.support.administration import administer
from lockstep.plan.targets import OneTopic, WholeCluster
from lockstep.wait import WaitTimeout, wait_until

LED_S = 60.0
GONE_S = 20.0


class Topic(Protocol):
    """A topic, and what a fault does before it uses it and when it is done with it."""

    name: str

    def prepare(self) -> None: ...

    def done(self) -> Proof: ...


class NamedTopic:
    """One of the plan's: it is there already, and stays."""

    def __init__(self, target: OneTopic) -> None:
        self.name = target.topic

    def prepare(self) -> None: ...

    def done(self) -> Proof:
        return {}


class OwnTopic:
    """One that only its fault uses, so that nothing of it is ever in a history."""

    def __init__(self, cluster: Cluster, fault: str, *, partitions: int = 1) -> None:
        self.name = f"{fault}-{uuid.uuid4().hex[:8]}"
        self._cluster = cluster
        self._partitions = partitions

    def prepare(self) -> None:
        """Create it on the brokers that serve now, and wait until all of them know its leaders."""
        serving = max((len(view.brokers) for view in self._cluster.ask_all().values()), default=0)
        create = partial(
            create_topic,
            name=self.name,
            partitions=self._partitions,
            replication=min(3, serving),
            config={"min.insync.replicas": "1"},
        )
        administer(self._cluster, lambda address, access: create(address, access=access), f"{self.name} to be created")
        wait_led(self._cluster, self.name, self._partitions)

    def done(self) -> Proof:
        return delete(self._cluster, self.name)


def topic_of(cluster: Cluster, target: OneTopic | WholeCluster, fault: str) -> Topic:
    """The topic that is named, or a new one for a fault that may pick its own."""
    return NamedTopic(target) if isinstance(target, OneTopic) else OwnTopic(cluster, fault)


def in_sync(cluster: Cluster, partition: PartitionView) -> bool:
    """Whether it is led, and all its replicas whose brokers run are in the ISR: the others cannot be."""
    running = {id_ for id_ in partition.replicas if cluster.expected(id_)}
    return partition.leader >= 0 and running <= set(partition.isr)


def wait_led(cluster: Cluster, topic: str, partitions: int) -> None:
    """Wait until every broker that answers sees each partition led and in sync."""

    def led() -> bool:
        views = cluster.ask_all((topic,)).values()
        return bool(views) and all(
            len(view.partitions) == partitions and all(in_sync(cluster, p) for p in view.partitions) for view in views
        )

    wait_until(led, timeout_s=LED_S, what=f"{topic} to be led and in sync", interval_s=0.2)


def delete(cluster: Cluster, topic: str) -> Proof:
    """Delete a topic. While a replica of it is down, ZooKeeper mode only promises to: that is said, and no failure."""
    administer(cluster, lambda address, access: delete_topic(address, topic, access=access), f"{topic} to be deleted")

    def unknown_to() -> list[int]:
        views = cluster.ask_all((topic,))
        return [] if any(view.partitions for view in views.values()) else sorted(views)

    try:
        gone = wait_until(unknown_to, timeout_s=GONE_S, what=f"{topic} to be gone", interval_s=0.2)
    except WaitTimeout:
        if all(map(cluster.expected, cluster.broker_ids)):
            raise ClusterError(f"topic {topic} was deleted, and some broker still knows it") from None
        return {"topic": topic, "deletion": "accepted"}
    return {"topic": topic, "deletion": "done", "unknown_to": gone}
