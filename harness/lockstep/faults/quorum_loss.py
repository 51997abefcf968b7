"""The majority of KRaft voters or ZooKeeper servers is gone: no metadata can change, and committed metadata stays."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import require_running
from lockstep.faults.support.membership import answers, returned
from lockstep.faults.support.roles import controller, controller_id
from lockstep.history.lines import CRASHED
from lockstep.plan.targets import WholeCluster
from lockstep.spec.cluster import Mode, NodeRole
from lockstep.wait import wait_until

LOST_S = 45.0
BACK_S = 90.0


@fault(
    name="quorum-loss",
    summary="SIGKILL the majority of the KRaft voters or of the ZooKeeper servers; healed by starting them",
    targets=(WholeCluster,),
    takes=2,  # of a combined cluster, whose voters are its brokers
)
class QuorumLoss:
    """Proven by the lack of an active controller that any broker knows, or of a ZooKeeper server that serves."""

    def __init__(self, cluster: Cluster, _target: WholeCluster) -> None:
        self._cluster = cluster
        voters = _voters(cluster)
        majority = len(voters) // 2 + 1
        self._killed, self._left = voters[:majority], voters[majority:]

    @property
    def resolved(self) -> str:
        return ", ".join(node.name for node in self._killed)

    def inject(self) -> Proof:
        require_running(self._killed)
        identities = [node.identity for node in self._killed]
        for node in self._killed:
            node.kill()
        return {CRASHED: [node.name for node in self._killed], "nodes": identities}

    def bit(self) -> Proof:
        left = [node.name for node in self._left]
        if running := [node.name for node in self._killed if node.state() is not NodeState.STOPPED]:
            raise FaultError(f"{', '.join(running)} still runs")
        if self._cluster.spec.mode is Mode.ZK:
            wait_until(
                lambda: not any(answers(self._cluster, node) for node in self._left),
                timeout_s=LOST_S,
                what="the ensemble not to serve",
            )
            return {"left": left, "serving": []}
        wait_until(
            lambda: controller_id(self._cluster) is None, timeout_s=LOST_S, what="the brokers to know of no controller"
        )
        return {"left": left, "active_controller": None}

    def heal(self) -> Proof:
        """Waits for brokers too: one whose session has expired meanwhile must register again."""
        for node in self._killed:
            if node.state() is NodeState.STOPPED:
                node.start()
        for node in self._killed:
            returned(self._cluster, node)
        brokers = [self._cluster.broker(id_) for id_ in self._cluster.broker_ids]
        serving = [node for node in brokers if node.state() is NodeState.RUNNING]
        for node in serving:
            returned(self._cluster, node)
        decides = wait_until(
            lambda: controller_id(self._cluster), timeout_s=BACK_S, what="an active controller", interval_s=0.25
        )
        return {
            "started": [node.identity for node in self._killed],
            "active_controller": decides,
            "serving": [node.name for node in serving],
        }


def _voters(cluster: Cluster) -> list[Node]:
    """The active controller first, so that it does not stay active for a while."""
    if cluster.spec.mode is Mode.ZK:
        return [node for node in cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER]
    voters = [node for node in cluster.nodes.values() if node.spec.is_voter]
    active = controller(cluster)
    return [active, *(node for node in voters if node != active)]
