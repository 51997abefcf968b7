"""A topic that gets more partitions while it is in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.partitions import grow_topic
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.administration import administer
from lockstep.faults.support.topics import in_sync, topic_of
from lockstep.plan.targets import OneTopic, WholeCluster
from lockstep.wait import wait_until

GROWN_S = 60.0

_Good = Callable[[PartitionView], bool]


class PartitionGrowthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How many partitions it gets on top of those it has."""

    more: Annotated[int, msgspec.Meta(ge=1, le=50)] = 1


@fault(
    name="partition-growth",
    summary="Give a topic more partitions, which no one can take back; of a topic of its own unless one is named",
    targets=(OneTopic, WholeCluster),
    settings=PartitionGrowthSettings,
)
class PartitionGrowth:
    """Proven by every broker that answers: each sees the new partitions and their leaders."""

    def __init__(self, cluster: Cluster, target: OneTopic | WholeCluster, settings: PartitionGrowthSettings) -> None:
        self._cluster = cluster
        self._topic = topic_of(cluster, target, "partition-growth")
        self._more = settings.more
        self._before = 0

    @property
    def resolved(self) -> str:
        return self._topic.name

    def inject(self) -> Proof:
        self._topic.prepare()
        name = self._topic.name
        views = self._cluster.ask_all((name,)).values()
        self._before = max((len(view.partitions) for view in views), default=0)
        if not self._before:
            raise FaultError(f"no broker knows a topic {name}")
        administer(
            self._cluster,
            lambda address, access: grow_topic(address, name, self._before + self._more, access=access),
            f"{name} to grow",
        )
        return {"topic": name, "partitions_before": self._before}

    def bit(self) -> Proof:
        grown = self._wait_new("to be led", lambda partition: partition.leader >= 0)
        return {"partitions_after": self._before + self._more, "led_by": {str(p): v.leader for p, v in grown.items()}}

    def heal(self) -> Proof:
        """Kafka has no way back: what can be proven is that the new partitions are as good as the others."""
        if not self._before:
            return self._topic.done()
        grown = self._wait_new("to be in sync", lambda partition: in_sync(self._cluster, partition))
        kept = self._topic.done() or {"undone": False, "why": "Kafka never takes partitions from a topic"}
        return {"in_sync": sorted(grown)} | kept

    def _wait_new(self, what: str, good: _Good) -> dict[int, PartitionView]:
        return wait_until(
            lambda: self._new_ones(good),
            timeout_s=GROWN_S,
            what=f"the new partitions of {self._topic.name} {what}",
            interval_s=0.2,
        )

    def _new_ones(self, good: _Good) -> dict[int, PartitionView]:
        """The new partitions, once every broker that answers knows all of them and finds all of them good."""
        new = range(self._before, self._before + self._more)
        name, seen = self._topic.name, {}
        for view in self._cluster.ask_all((name,)).values():
            for index in new:
                partition = view.partition(name, index)
                if partition is None or not good(partition):
                    return {}
                seen[index] = partition
        return seen
