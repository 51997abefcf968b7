"""Brokers cut off from ZooKeeper, one or all: they serve the partitions they lead, and cannot change ISR or leader."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, outward, recovered, require_running
from lockstep.faults.support.membership import answers
from lockstep.faults.support.roles import node_of
from lockstep.network.conditions import BlackHole
from lockstep.plan.targets import FollowerOf, LeaderOf, OneBroker, Target, WholeCluster
from lockstep.spec.cluster import ClusterSpec, Listener, Mode
from lockstep.wait import wait_until

LOST_S = 45.0
SESSIONS = "/brokers/ids"


def _needs_zookeeper(spec: ClusterSpec, _backend: str) -> str | None:
    return None if spec.mode is Mode.ZK else "needs ZooKeeper mode"


@fault(
    name="zookeeper-isolation",
    summary="Cut one broker or all of them off from ZooKeeper, and from no broker or client",
    targets=(WholeCluster, LeaderOf, FollowerOf, OneBroker),
    missing=_needs_zookeeper,
    takes=1,  # one of them; when it is all, they go on with what they lead
)
class ZooKeeperIsolation:
    """Proven by silent links, and by ZooKeeper itself, where the brokers' sessions have expired."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        brokers = [cluster.broker(id_) for id_ in cluster.broker_ids]
        self._nodes: list[Node] = brokers if isinstance(target, WholeCluster) else [node_of(cluster, target)]
        links = [link for node in self._nodes for link in outward(cluster, node, (Listener.ZOOKEEPER,))]
        self._imposition = Imposition(cluster.links, dict.fromkeys(links, BlackHole()))

    @property
    def resolved(self) -> str:
        return ", ".join(node.name for node in self._nodes)

    def inject(self) -> Proof:
        require_running(self._nodes)
        return self._imposition.begin()

    def bit(self) -> Proof:
        silent = self._imposition.silent()
        ids = {str(node.spec.id) for node in self._nodes}
        with self._cluster.znodes() as session:
            wait_until(
                lambda: ids.isdisjoint(session.children(SESSIONS)),
                timeout_s=LOST_S,
                what=f"ZooKeeper to forget {self.resolved}",
                interval_s=0.2,
            )
            left = session.children(SESSIONS)
        serving = [node.name for node in self._nodes if answers(self._cluster, node)]
        return silent | {"sessions_left": left, "still_answer": serving}

    def heal(self) -> Proof:
        return self._imposition.end() | recovered(self._cluster, self._nodes)
