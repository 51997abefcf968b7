"""The replicas of a partition moved while it is in use."""

from __future__ import annotations

import time

from lockstep.clients.wire.metadata import PartitionView
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.assignments import Assignment
from lockstep.plan.targets import LeaderOf


@fault(
    name="reassignment",
    summary="Move the last replica of a partition to a broker without one, or, if all have one, reverse their order",
    targets=(LeaderOf,),
    missing=lambda spec, _backend: "needs two brokers" if spec.brokers < 2 else None,
)
class Reassignment:
    """Proven by the assignment that every broker sees, and by the controller, which has finished moving it."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._assignment = Assignment(cluster, target)
        self._before: PartitionView = self._assignment.view()
        self._elsewhere = _elsewhere(self._before.replicas, cluster)

    @property
    def resolved(self) -> str:
        return str(self._assignment)

    def inject(self) -> Proof:
        if self._elsewhere == self._before.replicas:
            raise FaultError(f"{self._assignment} has one replica and no other broker serves: it cannot move")
        self._assignment.change(self._elsewhere)
        return {"partition": str(self._assignment), "replicas_before": list(self._before.replicas)}

    def bit(self) -> Proof:
        return self._settled(self._elsewhere)

    def heal(self) -> Proof:
        """Back to where it was."""
        self._assignment.change(self._before.replicas)
        return self._settled(self._before.replicas)

    def _settled(self, replicas: tuple[int, ...]) -> Proof:
        began_ns = time.monotonic_ns()
        view = self._assignment.settled(replicas)
        return {
            "replicas": list(view.replicas),
            "isr": sorted(view.isr),
            "leader": view.leader,
            "moving": False,
            "moved_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000,
        }


def _elsewhere(replicas: tuple[int, ...], cluster: Cluster) -> tuple[int, ...]:
    """The new replicas; where there are no other brokers, in another order, with another preferred leader."""
    serving = frozenset(id_ for view in cluster.ask_all().values() for id_ in view.brokers)
    spare = sorted(serving - set(replicas))
    return (*replicas[:-1], spare[0]) if spare else tuple(reversed(replicas))
