"""How often the coordinator of a transactional id is told to load its log again, though it stays the coordinator.

In KRaft before 3.8 it is with each change of its partition, the ISR too (`Parameters.coordinator_reloads`).
"""

from __future__ import annotations

import time

from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.timers import MS
from lockstep.stepper.groups.driver import partition_for
from lockstep.stepper.observers import ControllerObserver, follow
from lockstep_model.registration import Registration

TRANSACTIONS = "__transaction_state"
HEARD_MS = 2_000
"""After that the coordinator has heard of what the controller decided, even on a busy machine."""


class Reloads(Closeable):
    """Follows the partition of one transactional id."""

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        views = cluster.ask_all((TRANSACTIONS,)).values()
        partition = partition_for(transactional_id, max(len(view.partitions) for view in views))
        self._observer: ControllerObserver = follow(cluster, TRANSACTIONS, partition)
        self._partition: Registration = self._observer.current.partition
        self._changed_ns = time.monotonic_ns()

    def close(self) -> None:
        self._observer.close()

    def poll(self) -> int:
        """How often since the last time."""
        reloads = 0
        for decision in self._observer.poll():
            before, self._partition = self._partition, decision.controller.partition
            if self._partition != before:
                self._changed_ns = time.monotonic_ns()
                reloads += _term(self._partition) == _term(before)
        return reloads

    def heard(self) -> bool:
        """Whether the coordinator knows of all that was seen."""
        return time.monotonic_ns() - self._changed_ns >= HEARD_MS * MS


def _term(partition: Registration) -> tuple[int, int]:
    return partition.leader, partition.leader_epoch
