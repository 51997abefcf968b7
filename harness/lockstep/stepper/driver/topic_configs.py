"""A topic's min.insync.replicas, changed while brokers run, and when all of them go by it."""

from __future__ import annotations

import secrets

from lockstep.clients.wire.configs import Resource, ResourceType, alter_setting, ask_settings
from lockstep.clients.wire.refusals import Refused
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.faults.support.administration import administer
from lockstep.wait import WaitTimeout, wait_until

MIN_ISR = "min.insync.replicas"
MARK = "max.connections.per.ip"
"""A setting of brokers that makes no difference, as large as it is."""
MARKS = range(2_000_000_000, 2_100_000_000)
EVERY_BROKER = Resource(type=ResourceType.BROKER, name="")
KNOWN_S = 10.0


def set_min_isr(cluster: Cluster, topic: str, value: int) -> None:
    """Raises `WaitTimeout` or `Refused`; after the first it may be set or not."""
    _alter(cluster, _of(topic), MIN_ISR, str(value))


def wait_for_settings(cluster: Cluster, topic: str, min_isr: int) -> bool:
    """Whether every broker that runs goes by it in the end; one that starts later will.

    No broker tells which value its log goes by: KRaft's tell what they have heard of (KRaftMetadataCache), ZooKeeper's
    what is in ZooKeeper. But each takes in one change after the other (MetadataLoader, DynamicConfigManager), and of
    its own settings it tells those in force: one that was changed after it has come into force after it.
    """
    started = [id_ for id_ in cluster.broker_ids if cluster.broker(id_).state() is not NodeState.STOPPED]
    mark = str(secrets.choice(MARKS))
    try:
        for id_ in started:
            _wait_for(cluster, id_, _of(topic), MIN_ISR, str(min_isr))
        _alter(cluster, EVERY_BROKER, MARK, mark)
        for id_ in started:
            _wait_for(cluster, id_, Resource(type=ResourceType.BROKER, name=str(id_)), MARK, mark)
    except (WaitTimeout, Refused):
        return False
    return True


def _of(topic: str) -> Resource:
    return Resource(type=ResourceType.TOPIC, name=topic)


def _alter(cluster: Cluster, resource: Resource, name: str, value: str) -> None:
    administer(
        cluster,
        lambda address, access: alter_setting(address, resource, name, value, access=access),
        f"{name}={value} of {resource}",
    )


def _wait_for(cluster: Cluster, broker: int, resource: Resource, name: str, value: str) -> None:
    def told() -> bool:
        return ask_settings(cluster.direct(broker), resource, (name,), access=cluster.access())[name].value == value

    wait_until(told, timeout_s=KNOWN_S, what=f"{broker} to have {name}={value}", retry_on=(OSError,))
