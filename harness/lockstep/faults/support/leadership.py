"""The effect on a partition whose leader was hit: its new leader, and how much of the log that one has."""

from __future__ import annotations

import re
import time

from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.offsets import ask_epoch_end, ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.errors import ClusterError
from lockstep.faults.fault import Proof
from lockstep.faults.support.node_log import Words
from lockstep.plan.targets import LeaderOf
from lockstep.wait import wait_until

MOVED_S = 60.0


class Leadership:
    """One partition, before and after."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._before: PartitionView = cluster.leader(target.topic, target.partition)
        self._words: Words | None = None

    @property
    def node(self) -> Node:
        """The leader when this object was made."""
        return self._cluster.broker(self._before.leader)

    @property
    def partition(self) -> str:
        return f"{self._target.topic}-{self._target.partition}"

    def log_end(self) -> Proof:
        """Where the leader's log ends, if it says so: one that hangs is broken all the same."""
        try:
            end = ask_log_end(
                self.node.direct, self._target.topic, self._target.partition, access=self._cluster.access()
            )
        except (OSError, ClusterError):
            return {}
        return {"log_end_before": end}

    def moved(self, since_ns: int) -> Proof:
        """Wait until another broker leads at a higher epoch; tells where the old leader's epoch ends there."""
        after = wait_until(
            self._newer, timeout_s=MOVED_S, what=f"leadership of {self.partition} to move", interval_s=0.1
        )
        assert after is not None
        moved_after_ms = (time.monotonic_ns() - since_ns) // 1_000_000
        return {
            "partition": self.partition,
            "leader_before": self._before.leader,
            "leader_epoch_before": self._before.leader_epoch,
            "leader_after": after.leader,
            "leader_epoch_after": after.leader_epoch,
            "moved_after_ms": moved_after_ms,
        } | self._kept(after)

    def about_to_return(self) -> None:
        """Read the old leader's log from now on, for its truncation after the restart."""
        self._words = Words(self.node)

    def truncated(self) -> Proof:
        """The offset to which the old leader truncated when it came back, by its server log; nothing if it did not."""
        assert self._words is not None
        told = self._words.find(rf"partition={re.escape(self.partition)},.*Truncating to offset (\d+)")
        return {"truncated_to": int(told[0])} if told else {}

    def _newer(self) -> PartitionView | None:
        after = self._cluster.leader(self._target.topic, self._target.partition)
        moved = after.leader != self._before.leader and after.leader_epoch > self._before.leader_epoch
        return after if moved else None

    def _kept(self, after: PartitionView) -> Proof:
        """How much of the old leader's log the new one has: where its epoch ends there."""

        def ask() -> Proof:
            end = ask_epoch_end(
                self._cluster.direct(after.leader),
                self._target.topic,
                self._target.partition,
                self._before.leader_epoch,
                access=self._cluster.access(),
            )
            return {"log_end_after": end}

        return wait_until(
            ask,
            timeout_s=MOVED_S,
            what=f"the new leader of {self.partition} to know that it is",
            retry_on=(OSError, ClusterError),
        )
