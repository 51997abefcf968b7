"""The active controller, cut off from all nodes: it may still believe that it is active."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, between, recovered, require_running
from lockstep.faults.support.membership import missed
from lockstep.faults.support.roles import controller, controller_by
from lockstep.network.conditions import BlackHole
from lockstep.plan.targets import ActiveController
from lockstep.spec.cluster import Mode
from lockstep.wait import wait_until

DECIDED_S = 45.0


@fault(
    name="controller-isolation",
    summary="Cut the active controller off from all nodes",
    targets=(ActiveController,),
    takes=1,  # where it is a broker as well
)
class ControllerIsolation:
    """Proven by the controller's silent links and its successor, or the lack of one where no other node is eligible."""

    def __init__(self, cluster: Cluster, _target: ActiveController) -> None:
        self._cluster = cluster
        self._node = controller(cluster)
        links = between(cluster, {self._node.name}, set(cluster.nodes) - {self._node.name})
        self._imposition = Imposition(cluster.links, dict.fromkeys(links, BlackHole()))

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        require_running([self._node])
        return self._imposition.begin() | {"controller_before": self._node.spec.id}

    def bit(self) -> Proof:
        silent = self._imposition.silent()
        if self._has_no_successor():
            wait_until(lambda: self._known() is None, timeout_s=DECIDED_S, what="the brokers to know of no controller")
            return silent | {"active_controller": None}
        successor = wait_until(
            self._successor, timeout_s=DECIDED_S, what=f"another controller than {self._node.name}", interval_s=0.2
        )
        gone = missed(self._cluster, self._node) if self._node.spec.is_broker else {}
        return silent | gone | {"active_controller": successor}

    def heal(self) -> Proof:
        """Waits for all brokers too: their sessions with the only controller may have expired."""
        mended = self._imposition.end()
        brokers = [self._cluster.broker(id_) for id_ in self._cluster.broker_ids]
        return mended | recovered(self._cluster, [self._node, *(node for node in brokers if node != self._node)])

    def _has_no_successor(self) -> bool:
        voters = [node for node in self._cluster.nodes.values() if node.spec.is_voter]
        return self._cluster.spec.mode is not Mode.ZK and len(voters) == 1

    def _successor(self) -> int | None:
        known = self._known()
        return None if known == self._node.spec.id else known

    def _known(self) -> int | None:
        """The active controller as all other brokers report it: the isolated node may long take itself for it."""
        return controller_by(self._cluster, [id_ for id_ in self._cluster.broker_ids if id_ != self._node.spec.id])
