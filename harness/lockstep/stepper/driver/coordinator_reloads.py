"""Coordinator reloads: counts how often a transaction coordinator has to load its log again without an election.

In KRaft before 3.8 every change of its __transaction_state partition, ISR changes included, makes the coordinator load
the partition again in the same leader epoch (KAFKA-15468, `Parameters.coordinator_reloads`).
"""

from __future__ import annotations

import time

from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.groups.driver import partition_for
from lockstep.stepper.driver.timers import MS
from lockstep.stepper.observers import ControllerObserver, follow
from lockstep_model.registration import Registration

TRANSACTIONS = "__transaction_state"
HEARD_MS = 2_000
"""After this time the coordinator has applied a controller decision, even on a busy machine."""


class Reloads(Closeable):
    """Observes the __transaction_state partition of one transactional id."""

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        views = cluster.ask_all((TRANSACTIONS,)).values()
        partition = partition_for(transactional_id, max(len(view.partitions) for view in views))
        self._observer: ControllerObserver = follow(cluster, TRANSACTIONS, partition)
        self._partition: Registration = self._observer.current.partition
        self._changed_ns = time.monotonic_ns()

    def close(self) -> None:
        self._observer.close()

    def poll(self) -> int:
        """The number of reloads since the last poll: changes of the partition that kept leader and leader epoch."""
        reloads = 0
        for decision in self._observer.poll():
            before, self._partition = self._partition, decision.controller.partition
            if self._partition != before:
                self._changed_ns = time.monotonic_ns()
                reloads += _term(self._partition) == _term(before)
        return reloads

    def heard(self) -> bool:
        """Whether the coordinator has applied every observed change of its partition, by the clock."""
        return time.monotonic_ns() - self._changed_ns >= HEARD_MS * MS


def _term(partition: Registration) -> tuple[int, int]:
    return partition.leader, partition.leader_epoch
