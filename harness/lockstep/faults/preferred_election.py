"""Leadership handed to the first replica of the assignment, as operators do after a restart."""

from __future__ import annotations

from lockstep.clients.wire.elections import Election, elect_leader
from lockstep.clients.wire.metadata import PartitionView
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.administration import administer
from lockstep.faults.support.assignments import Assignment
from lockstep.plan.targets import LeaderOf
from lockstep.wait import wait_until

BIT_S = 30.0


@fault(
    name="preferred-election",
    summary="Hand a partition's leadership to the first of its replicas; if it leads, another is made the first",
    targets=(LeaderOf,),
    missing=lambda spec, _backend: "needs two brokers" if spec.brokers < 2 else None,
)
class PreferredElection:
    """Proven by the leader epoch. Nothing is broken: the leader only moves to another in-sync replica."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._assignment = Assignment(cluster, target)
        self._before: PartitionView = self._assignment.view()
        self._order = _preferring_another(self._before)

    @property
    def resolved(self) -> str:
        return self._cluster.broker(self._before.leader).name

    def inject(self) -> Proof:
        if self._order[0] == self._before.leader:
            raise FaultError(f"{self._assignment} has no replica but {self.resolved} that could lead")
        if self._order != self._before.replicas:
            self._assignment.change(self._order)
            self._assignment.settled(self._order)
        topic, partition = self._target.topic, self._target.partition
        administer(
            self._cluster,
            lambda address, access: elect_leader(address, topic, partition, Election.PREFERRED, access=access),
            f"the preferred election of {self._assignment}",
        )
        return {
            "partition": str(self._assignment),
            "replicas_before": list(self._before.replicas),
            "replicas": list(self._order),
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
        """Restores the order of the replicas; the current leader stays."""
        view = self._assignment.view()
        if view.replicas != self._before.replicas:
            self._assignment.change(self._before.replicas)
            view = self._assignment.settled(self._before.replicas)
        return {"leader": view.leader, "leader_epoch": view.leader_epoch, "isr": sorted(view.isr)}

    def _elected(self) -> PartitionView | None:
        view = self._assignment.view()
        elected = view.leader == self._order[0] and view.leader_epoch > self._before.leader_epoch
        return view if elected else None


def _preferring_another(before: PartitionView) -> tuple[int, ...]:
    """The replicas with another in-sync one than the leader in the first place, if there is any."""
    in_sync = [id_ for id_ in before.replicas if id_ in before.isr and id_ != before.leader]
    if before.replicas[0] != before.leader or not in_sync:
        return before.replicas
    first = in_sync[0]
    return (first, *(id_ for id_ in before.replicas if id_ != first))
