"""A paused transactional producer that wakes up after another instance has taken over its transactional id."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.transactions import TransactionalId
from lockstep.plan.targets import WholeCluster


@fault(
    name="zombie-producer",
    summary="Pause a transactional producer of its own, let a second one take its transactional id, and wake the first",
    targets=(WholeCluster,),
)
class ZombieProducer:
    """Proven by the coordinator, which bumped the producer epoch, and by the zombie, which is fenced (KIP-98)."""

    def __init__(self, cluster: Cluster, target: WholeCluster) -> None:  # noqa: ARG002 - there is only one
        self._id = TransactionalId(cluster, "zombie-producer")
        self._zombie: ClientProcess | None = None
        self._last_written = -1

    @property
    def resolved(self) -> str:
        return f"{self._id.name}-first"

    def inject(self) -> Proof:
        self._id.topic.prepare()
        self._zombie = zombie = self._id.producer("first")
        zombie.wait_event("committed", "commit a transaction")
        zombie.pause()
        self._last_written = max(event["number"] for event in zombie.events("written"))
        before = self._id.view()
        successor = self._id.producer("second")
        successor.wait_event("committed", "commit a transaction in its place")
        return {
            "paused": zombie.identity,
            "took_over": successor.identity,
            "transactional_id": self._id.name,
            "producer_id_before": before.producer_id,
            "epoch_before": before.producer_epoch,
        }

    def bit(self) -> Proof:
        """Wake the zombie, which goes on with its transactions until it is fenced."""
        assert self._zombie is not None
        after = self._id.view()
        self._zombie.resume()
        fenced = self._zombie.wait_event("fenced", "be fenced")
        # The commit of what it had written before may have been on its way already, and hears of its success now.
        if any(event["number"] > self._last_written for event in self._zombie.events("committed")):
            raise FaultError(f"{self._zombie.identity} committed once more after {self._id.name} had been taken")
        return {
            "epoch_after": after.producer_epoch,
            "producer_id_after": after.producer_id,
            "fenced": self._zombie.identity,
            "error": fenced["error"],
            "why": fenced["why"],
        }

    def heal(self) -> Proof:
        return self._id.end()
