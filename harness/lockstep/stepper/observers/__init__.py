"""Observers of a live cluster: the controller's decisions about one partition, and the logs of stopped replicas.

In KRaft mode decisions are read from __cluster_metadata, in ZooKeeper mode from the transaction logs of the ensemble.
"""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.spec.cluster import Mode, NodeRole
from lockstep.stepper.observers.decisions import ControllerObserver, Decision
from lockstep.stepper.observers.metadata_log import MetadataLog
from lockstep.stepper.observers.metadata_observer import MetadataObserver
from lockstep.stepper.observers.znodes import ZnodeObserver
from lockstep.wait import wait_until

__all__ = ["ControllerObserver", "Decision", "follow"]

ANSWER_S = 30.0


def follow(cluster: Cluster, topic: str, partition: int) -> ControllerObserver:
    """An observer of the controller's decisions about a partition, which need not exist yet."""
    observer = _observer(cluster, topic, partition)
    try:
        wait_until(
            lambda: observer.poll() or observer.answered,
            timeout_s=ANSWER_S,
            what="the controller to tell what it has decided",
        )
    except BaseException:
        observer.close()
        raise
    return observer


def _observer(cluster: Cluster, topic: str, partition: int) -> ControllerObserver:
    if cluster.spec.mode is not Mode.ZK:
        return MetadataObserver(MetadataLog(cluster), topic, partition)
    servers = [node.spec for node in cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER]
    return ZnodeObserver(tuple(cluster.log_directories(server)[0] for server in servers), topic, partition)
