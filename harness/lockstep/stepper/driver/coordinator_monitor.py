"""Coordinator monitor: tells the tracker when the transaction coordinator may have moved, reloaded or become steady."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.closeable import Closeable
from lockstep.stepper.driver.broker_states import BrokerStates
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.coordinator import Coordinators
from lockstep.stepper.driver.coordinator_reloads import Reloads
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep_model.controller import Controller


class CoordinatorMonitor(Closeable):
    """The coordinator of the walk's transactional id: where it is, and whether it can replicate its log."""

    def __init__(self, context: Context, client: TransactionalClient, brokers: BrokerStates) -> None:
        self._cluster = context.cluster
        self._number = context.number
        self._feed = context.feed
        self._client = client
        self._brokers = brokers
        self._coordinators = Coordinators(context.cluster)
        self._reloads: Reloads | None = None
        """Counts reloads of the transaction coordinator; only for versions in which they matter
        (`Parameters.coordinator_reloads`), and only after the first InitProducerId."""

    def close(self) -> None:
        if self._reloads is not None:
            self._reloads.close()

    def look_for(self) -> int | None:
        """The broker that coordinates the transactional id, if it can be found and is running."""
        paused = self._brokers.paused()
        return self._coordinators.look_for(self._client.transactional_id, self._brokers.running() - paused, paused)

    def before_fault(self, broker: int) -> None:
        """A fault is about to hit a broker, or to be healed: the coordinator is no longer steady."""
        if self._coordinators.unknown:
            self.look_for()
        self._unsettle((broker,))

    def registrations_changed(self, brokers: Iterable[int]) -> None:
        """The registrations of these brokers changed: if one of them may be the coordinator, it may have moved."""
        hit = frozenset(brokers)
        self._unsettle(hit)
        self._coordinators.come_or_gone(hit)

    def _unsettle(self, hit: Iterable[int]) -> None:
        """A fault hit these brokers, or their registrations changed.

        If one of them may be the transaction coordinator, its pending appends and markers may be lost.
        """
        around, lost = self._feed.surroundings, self._coordinators.among(hit)
        self._feed.surround(around._replace(steady=False, disturbances=around.disturbances + lost))

    def count_reloads_from_now(self) -> None:
        """The transactional id exists: count the reloads of its coordinator, if they matter in this version."""
        if self._feed.tracker.parameters.coordinator_reloads:
            self._reloads = Reloads(self._cluster, self._client.transactional_id)

    def count_reloads(self) -> None:
        """Counts reloads of the coordinator's log: during one it returns COORDINATOR_LOAD_IN_PROGRESS, and after it
        only knows what the log holds."""
        if self._reloads is not None and (reloads := self._reloads.poll()):
            around = self._feed.surroundings
            self._feed.surround(around._replace(steady=False, reloads=around.reloads + reloads))

    def settle(self, controller: Controller) -> None:
        """The coordinator has just replicated an append: it is steady if no fault is left that could stop the next one.

        All brokers are live, none is paused or cut off, the partition's ISR is full, and no reload is pending.
        """
        partition, around = controller.partition, self._feed.surroundings
        calm = (
            not around.paused
            and not around.cut
            and controller.active_brokers() == frozenset(range(len(self._number.ids)))
            and partition.isr == frozenset(partition.replicas)
            and (self._reloads is None or self._reloads.heard())
        )
        if calm:
            self._feed.surround(around._replace(steady=True))
