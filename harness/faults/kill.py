"""SIGKILL of a node, found by its role."""

from __future__ import annotations

import re
import time
from pathlib import Path

from harness.clients.wire.metadata import PartitionView
from harness.clients.wire.offsets import ask_epoch_end, ask_log_end
from harness.cluster.cluster import Cluster
from harness.cluster.node import Node, NodeState
from harness.errors import ClusterError, FaultError
from harness.faults.fault import Proof, fault
from harness.plan import LeaderOf
from harness.wait import wait_until

MOVED_S = 60.0
BACK_S = 90.0
LOG = "server.log"


@fault(
    name="kill",
    summary="SIGKILL a node; healed by starting it again",
    targets=("leader",),
    backends=("process", "docker"),
)
class Kill:
    """Kill the leader of a partition; proven by its death and by a new leader with a higher epoch."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._before: PartitionView = cluster.leader(target.topic, target.partition)
        self._node: Node = cluster.broker(self._before.leader)
        self._killed_ns = 0

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        identity = self._node.identity
        log = self._log_end()
        self._killed_ns = time.monotonic_ns()
        self._node.kill()
        return {"killed": identity, "signal": "SIGKILL"} | log

    def bit(self) -> Proof:
        if self._node.state() is not NodeState.STOPPED:
            raise FaultError(f"{self._node.name} survived SIGKILL")
        after = wait_until(
            self._moved, timeout_s=MOVED_S, what=f"leadership of {self._partition} to move", interval_s=0.1
        )
        assert after is not None
        moved_after_ms = (time.monotonic_ns() - self._killed_ns) // 1_000_000
        return {
            "state": self._node.state().value,
            "partition": self._partition,
            "leader_before": self._before.leader,
            "leader_epoch_before": self._before.leader_epoch,
            "leader_after": after.leader,
            "leader_epoch_after": after.leader_epoch,
            "moved_after_ms": moved_after_ms,
        } | self._kept(after)

    def heal(self) -> Proof:
        started_ns = time.monotonic_ns()
        logged_bytes = self._log.stat().st_size
        self._node.start()
        self._cluster.wait_serving(self._node.spec.id, BACK_S)
        partitions = wait_until(
            self._back_in_isr,
            timeout_s=BACK_S,
            what=f"{self._node.name} to be back in the ISR of what it replicates",
            interval_s=0.25,
        )
        return {
            "restarted": self._node.identity,
            "in_isr_of": partitions,
            "back_after_ms": (time.monotonic_ns() - started_ns) // 1_000_000,
        } | self._truncated(logged_bytes)

    @property
    def _partition(self) -> str:
        return f"{self._target.topic}-{self._target.partition}"

    def _log_end(self) -> Proof:
        """Where its log ends before it dies, if it says so: one that hangs is killed all the same."""
        try:
            end = ask_log_end(
                self._node.direct, self._target.topic, self._target.partition, access=self._cluster.access()
            )
        except (OSError, ClusterError):
            return {}
        return {"log_end_before": end}

    def _kept(self, after: PartitionView) -> Proof:
        """How much of the killed leader's log the new one has: where its epoch ends there."""

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
            what=f"the new leader of {self._partition} to know that it is",
            retry_on=(OSError, ClusterError),
        )

    def _truncated(self, logged_bytes: int) -> Proof:
        """Where it cut its log back to when it came back, by its own log; nothing if it did not have to."""
        with self._log.open(errors="replace") as log:
            log.seek(logged_bytes)
            told = re.findall(rf"partition={re.escape(self._partition)},.*Truncating to offset (\d+)", log.read())
        return {"truncated_to": int(told[0])} if told else {}

    @property
    def _log(self) -> Path:
        return self._node.directory / LOG

    def _moved(self) -> PartitionView | None:
        after = self._cluster.leader(self._target.topic, self._target.partition)
        moved = after.leader != self._before.leader and after.leader_epoch > self._before.leader_epoch
        return after if moved else None

    def _back_in_isr(self) -> list[str]:
        """The partitions it replicates, once every broker that runs sees it in the ISR of all of them."""
        broker = self._node.spec.id
        views = self._cluster.ask_all(None)
        mine = [p for view in views.values() for p in view.partitions if broker in p.replicas]
        if broker not in views or any(broker not in p.isr for p in mine):
            return []
        return sorted({f"{p.topic}-{p.partition}" for p in mine})
