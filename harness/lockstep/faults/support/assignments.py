"""The order and the places of a partition's replicas, changed and seen to be changed."""

from __future__ import annotations

from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.reassignments import is_moving, reassign
from lockstep.cluster.cluster import Cluster
from lockstep.faults.support.administration import administer
from lockstep.plan.targets import LeaderOf
from lockstep.wait import wait_until

MOVED_S = 60.0


class Assignment:
    """Of one partition."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._topic, self._partition = target.topic, target.partition

    def __str__(self) -> str:
        return f"{self._topic}-{self._partition}"

    def view(self) -> PartitionView:
        return self._cluster.leader(self._topic, self._partition)

    def change(self, replicas: tuple[int, ...]) -> None:
        """Ask for it; a change that has not finished is overruled by this one."""
        administer(
            self._cluster,
            lambda address, access: reassign(address, self._topic, self._partition, replicas, access=access),
            f"the reassignment of {self}",
        )

    def settled(self, replicas: tuple[int, ...]) -> PartitionView:
        """The partition once every broker sees it there, and the controller has finished moving it."""
        view = wait_until(
            lambda: self._moved_to(replicas),
            timeout_s=MOVED_S,
            what=f"{self} to be on {list(replicas)}",
            interval_s=0.2,
        )
        assert view is not None
        return view

    def _moved_to(self, replicas: tuple[int, ...]) -> PartitionView | None:
        topic, partition = self._topic, self._partition
        views = [view.partition(topic, partition) for view in self._cluster.ask_all((topic,)).values()]
        if not views or any(view is None or view.replicas != replicas for view in views):
            return None
        moving = administer(
            self._cluster,
            lambda address, access: is_moving(address, topic, partition, access=access),
            f"the reassignments of {self}",
        )
        return None if moving else self.view()
