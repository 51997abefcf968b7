"""Topic configs: changes a topic's min.insync.replicas at run time, and finds out when every broker applies it."""

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
"""A dynamic broker config that has no effect at the large values used here; its value marks a point in time."""
MARKS = range(2_000_000_000, 2_100_000_000)
EVERY_BROKER = Resource(type=ResourceType.BROKER, name="")
KNOWN_S = 10.0


def set_min_isr(cluster: Cluster, topic: str, value: int) -> None:
    """Set the config. Raises `Refused`, or `WaitTimeout`, after which it may be set or not."""
    _alter(cluster, _of(topic), MIN_ISR, str(value))


def wait_for_settings(cluster: Cluster, topic: str, min_isr: int) -> bool:
    """Wait until every running broker applies the value; returns whether all do. A broker that starts later will.

    DescribeConfigs does not show which topic config a broker's log applies: a KRaft broker shows its metadata cache
    (KRaftMetadataCache), a ZooKeeper-mode broker what is in ZooKeeper. But a broker applies config changes in order
    (MetadataLoader, DynamicConfigManager), and shows its own dynamic broker configs as they are in force. So once it
    shows a broker config that was set later, it applies the topic config too.
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
