"""The replicas of a partition moved while it is in use."""

from __future__ import annotations

import time

from harness.clients.wire.metadata import PartitionView
from harness.clients.wire.reassignments import is_moving, reassign
from harness.cluster.cluster import Cluster
from harness.errors import FaultError
from harness.faults.administration import administer
from harness.faults.fault import Proof, fault
from harness.targets import LeaderOf
from harness.wait import wait_until

MOVED_S = 60.0


@fault(
    name="reassignment",
    summary="Move the last replica of a partition to a broker without one, or, if all have one, reverse their order",
    targets=(LeaderOf,),
    missing=lambda spec, _backend: "needs two brokers" if spec.brokers < 2 else None,
)
class Reassignment:
    """Proven by the assignment that every broker sees, and by the controller, which has finished moving it."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._before: PartitionView = cluster.leader(target.topic, target.partition)
        self._elsewhere = _elsewhere(self._before.replicas, cluster)

    @property
    def resolved(self) -> str:
        return self._partition

    def inject(self) -> Proof:
        if self._elsewhere == self._before.replicas:
            raise FaultError(f"{self._partition} has one replica and no other broker serves: it cannot move")
        self._reassign(self._elsewhere)
        return {"partition": self._partition, "replicas_before": list(self._before.replicas)}

    def bit(self) -> Proof:
        return self._settled(self._elsewhere)

    def heal(self) -> Proof:
        """Back to where it was; a reassignment that has not finished is overruled by the new one."""
        self._reassign(self._before.replicas)
        return self._settled(self._before.replicas)

    @property
    def _partition(self) -> str:
        return f"{self._target.topic}-{self._target.partition}"

    def _reassign(self, replicas: tuple[int, ...]) -> None:
        topic, partition = self._target.topic, self._target.partition
        administer(
            self._cluster,
            lambda address, access: reassign(address, topic, partition, replicas, access=access),
            f"the reassignment of {self._partition}",
        )

    def _settled(self, replicas: tuple[int, ...]) -> Proof:
        began_ns = time.monotonic_ns()
        view = wait_until(
            lambda: self._has_moved_to(replicas),
            timeout_s=MOVED_S,
            what=f"{self._partition} to be on {list(replicas)}",
            interval_s=0.2,
        )
        assert view is not None
        return {
            "replicas": list(view.replicas),
            "isr": sorted(view.isr),
            "leader": view.leader,
            "moving": False,
            "moved_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000,
        }

    def _has_moved_to(self, replicas: tuple[int, ...]) -> PartitionView | None:
        topic, partition = self._target.topic, self._target.partition
        views = [view.partition(topic, partition) for view in self._cluster.ask_all((topic,)).values()]
        if not views or any(view is None or view.replicas != replicas for view in views):
            return None
        moving = administer(
            self._cluster,
            lambda address, access: is_moving(address, topic, partition, access=access),
            f"the reassignments of {self._partition}",
        )
        return None if moving else self._cluster.leader(topic, partition)


def _elsewhere(replicas: tuple[int, ...], cluster: Cluster) -> tuple[int, ...]:
    """Where they shall be; in the other order, another one is preferred as the leader."""
    serving = frozenset(id_ for view in cluster.ask_all().values() for id_ in view.brokers)
    spare = sorted(serving - set(replicas))
    return (*replicas[:-1], spare[0]) if spare else tuple(reversed(replicas))
