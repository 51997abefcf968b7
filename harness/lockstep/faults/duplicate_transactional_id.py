"""Two producers with one transactional id, which fence each other in turn."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.transactions import TransactionalId
from lockstep.plan.targets import WholeCluster


@fault(
    name="duplicate-transactional-id",
    summary="Run two producers of its own with one transactional id, each of which takes it back from the other",
    targets=(WholeCluster,),
)
class DuplicateTransactionalId:
    """Proven by both producers, each fenced by the other, and by the coordinator, which bumped the epoch each time."""

    def __init__(self, cluster: Cluster, target: WholeCluster) -> None:  # noqa: ARG002 - there is only one
        self._id = TransactionalId(cluster, "duplicate-transactional-id")
        self._rivals: tuple[ClientProcess, ...] = ()
        self._before = (-1, -1)

    @property
    def resolved(self) -> str:
        return self._id.name

    def inject(self) -> Proof:
        self._id.topic.prepare()
        first = self._id.producer("first", insists=True)
        first.wait_event("committed", "commit a transaction")
        view = self._id.view()
        self._before = (view.producer_id, view.producer_epoch)
        self._rivals = (first, self._id.producer("second", insists=True))
        return {
            "rivals": [rival.identity for rival in self._rivals],
            "producer_id_before": view.producer_id,
            "epoch_before": view.producer_epoch,
        }

    def bit(self) -> Proof:
        fenced = {rival.name: rival.wait_event("fenced", "be fenced by the other")["error"] for rival in self._rivals}
        after = self._id.view()
        if (after.producer_id, after.producer_epoch) <= self._before:
            raise FaultError(f"the epoch of {self._id.name} is {after.producer_epoch}, and was {self._before[1]}")
        return {"fenced": fenced, "producer_id_after": after.producer_id, "epoch_after": after.producer_epoch}

    def heal(self) -> Proof:
        """Neither gives up by itself: both are ended."""
        return self._id.end()
