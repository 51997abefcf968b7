"""Leadership handed back to the first replica of the assignment, as operators do after a restart."""

from __future__ import annotations

from harness.clients.wire.elections import Election, elect_leader
from harness.clients.wire.metadata import PartitionView
from harness.cluster.cluster import Cluster
from harness.errors import FaultError
from harness.faults.administration import administer
from harness.faults.fault import Proof, fault
from harness.targets import LeaderOf
from harness.wait import wait_until

BIT_S = 30.0


@fault(
    name="preferred-election",
    summary="Hand a partition's leadership to the first of its replicas, where another one leads",
    targets=(LeaderOf,),
)
class PreferredElection:
    """Proven by the leader epoch. Nothing is broken by it: leaders come and go, and this one goes unasked."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._before: PartitionView = cluster.leader(target.topic, target.partition)

    @property
    def resolved(self) -> str:
        return self._cluster.broker(self._before.leader).name

    def inject(self) -> Proof:
        topic, partition = self._target.topic, self._target.partition
        if self._before.leader == self._before.replicas[0]:
            raise FaultError(f"{topic}-{partition} is led by {self.resolved}, the first of its replicas, already")
        administer(
            self._cluster,
            lambda address, access: elect_leader(address, topic, partition, Election.PREFERRED, access=access),
            f"the preferred election of {topic}-{partition}",
        )
        return {
            "partition": f"{topic}-{partition}",
            "replicas": list(self._before.replicas),
            "leader_before": self._before.leader,
            "leader_epoch_before": self._before.leader_epoch,
        }

    def bit(self) -> Proof:
        after = wait_until(
            self._elected, timeout_s=BIT_S, what="the first replica to lead at a higher epoch", interval_s=0.1
        )
        assert after is not None
        return {"leader_after": after.leader, "leader_epoch_after": after.leader_epoch}

    def heal(self) -> Proof:
        """There is nothing to undo; that somebody leads is all that can be asked for."""
        view = self._cluster.leader(self._target.topic, self._target.partition)
        return {"leader": view.leader, "leader_epoch": view.leader_epoch, "isr": sorted(view.isr)}

    def _elected(self) -> PartitionView | None:
        view = self._cluster.leader(self._target.topic, self._target.partition)
        elected = view.leader == self._before.replicas[0] and view.leader_epoch > self._before.leader_epoch
        return view if elected else None
