"""A whole cluster divided: in two parts that cannot reach each other, or in a ring of parts that overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, between, recovered, require_running
from lockstep.faults.support.membership import missed
from lockstep.faults.support.roles import controller, controller_by
from lockstep.network.conditions import BlackHole
from lockstep.network.topology import Link
from lockstep.plan.targets import WholeCluster
from lockstep.spec.cluster import ClusterSpec, NodeRole
from lockstep.wait import wait_until

DECIDED_S = 45.0
PART_MIN = 3
"""Of fewer than that, one is no minority."""


def _needs_three_brokers(spec: ClusterSpec, _backend: str) -> str | None:
    return None if spec.brokers >= PART_MIN else "needs three brokers"


@fault(
    name="split",
    summary="Divide all nodes: one of each kind against the rest, the active controller among the few",
    targets=(WholeCluster,),
    missing=_needs_three_brokers,
    takes=1,
)
class Split:
    """Proven by silent links between the parts, and by the majority, which has a controller and not the minority."""

    def __init__(self, cluster: Cluster, _target: WholeCluster) -> None:
        self._cluster = cluster
        self._few = list(_one_of_each(cluster))
        self._many = [node for node in cluster.nodes.values() if node not in self._few]
        links = between(cluster, [node.name for node in self._few], [node.name for node in self._many])
        self._imposition = Imposition(cluster.links, dict.fromkeys(links, BlackHole()))

    @property
    def resolved(self) -> str:
        return ", ".join(node.name for node in self._few)

    def inject(self) -> Proof:
        require_running(self._few)
        begun = self._imposition.begin()
        return {"few": [node.name for node in self._few], "many": [node.name for node in self._many]} | begun

    def bit(self) -> Proof:
        silent = self._imposition.silent()
        gone = [missed(self._cluster, node) for node in self._few if node.spec.is_broker]
        deciding = wait_until(
            self._controller_of_many, timeout_s=DECIDED_S, what="a controller among the many", interval_s=0.2
        )
        return silent | gone[0] | {"active_controller": deciding}

    def heal(self) -> Proof:
        started = (node for node in self._cluster.nodes.values() if node.incarnation)
        return self._imposition.end() | recovered(self._cluster, started)

    def _controller_of_many(self) -> int | None:
        known = controller_by(self._cluster, [node.spec.id for node in self._many if node.spec.is_broker])
        return known if known in {node.spec.id for node in self._many} else None


@fault(
    name="ring",
    summary="Let every broker and every controller reach a majority of its kind, and no two the same",
    targets=(WholeCluster,),
    missing=_needs_three_brokers,
    takes=1,  # of each partition: the followers that cannot reach its leader
)
class Ring:
    """Each node reaches the next ones in a circle, up to a majority; sessions live on, so no broker is fenced."""

    def __init__(self, cluster: Cluster, _target: WholeCluster) -> None:
        self._cluster = cluster
        self._reached = {
            node.name: [other.name for other in others] for kind in _kinds(cluster) for node, others in _circle(kind)
        }
        self._imposition = Imposition(cluster.links, dict.fromkeys(filter(self._is_cut, cluster.links), BlackHole()))

    @property
    def resolved(self) -> str:
        return ", ".join(self._reached)

    def inject(self) -> Proof:
        require_running(self._cluster.nodes[name] for name in self._reached)
        return self._imposition.begin() | {"reached": self._reached}

    def bit(self) -> Proof:
        return self._imposition.silent()

    def heal(self) -> Proof:
        return self._imposition.end() | recovered(self._cluster, (self._cluster.nodes[name] for name in self._reached))

    def _is_cut(self, link: Link) -> bool:
        """Whether a link is cut: between two nodes of one role, if the source does not reach that far in the circle."""
        same_kind = link.source in self._reached and self._kind(link.source) is self._kind(link.destination)
        return same_kind and link.destination not in self._reached[link.source]

    def _kind(self, name: str) -> NodeRole | None:
        return self._cluster.nodes[name].spec.role if name in self._cluster.nodes else None


def _kinds(cluster: Cluster) -> Iterator[list[Node]]:
    """The started brokers and controllers, by role, of roles with three nodes or more: a majority of two is both."""
    for role in (NodeRole.BROKER, NodeRole.COMBINED, NodeRole.CONTROLLER):
        kind = [node for node in cluster.nodes.values() if node.spec.role is role and node.incarnation]
        if len(kind) >= PART_MIN:
            yield kind


def _circle(kind: Sequence[Node]) -> Iterator[tuple[Node, list[Node]]]:
    """Each node with the next half of the circle: together a majority."""
    half = len(kind) // 2
    for index, node in enumerate(kind):
        yield node, [kind[(index + step) % len(kind)] for step in range(1, half + 1)]


def _one_of_each(cluster: Cluster) -> Iterator[Node]:
    """One node of each kind that has a majority without it."""
    active = controller(cluster)
    for role in NodeRole:
        kind = [node for node in cluster.nodes.values() if node.spec.role is role and node.state() is NodeState.RUNNING]
        if len(kind) >= PART_MIN:
            yield active if active in kind else kind[0]
