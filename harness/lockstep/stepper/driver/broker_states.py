"""Broker states: which brokers run, are paused, or are cut off from the controller."""

from __future__ import annotations

from lockstep.cluster.node import NodeState
from lockstep.stepper.driver.actions import Talk
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.control_plane_faults import ControlPlaneFaults
from lockstep.stepper.observers.decisions import ControllerObserver
from lockstep_model.registration import BrokerId


class BrokerStates:
    """The processes of the brokers, and the control-plane messages that are held back for them.

    `running`, `paused` and `ended` give the cluster's broker ids, the others the model's numbers.
    """

    def __init__(
        self,
        context: Context,
        connections: Connections,
        control_plane: ControlPlaneFaults,
        observer: ControllerObserver,
    ) -> None:
        self._cluster = context.cluster
        self._number = context.number
        self._feed = context.feed
        self._connections = connections
        self._control_plane = control_plane
        self._observer = observer

    def running(self) -> frozenset[int]:
        """Brokers whose process runs and that respond to requests."""
        return frozenset(
            id_
            for id_ in self._cluster.broker_ids
            if self._cluster.broker(id_).state() is NodeState.RUNNING and self._connections.reachable(id_)
        )

    def paused(self) -> frozenset[int]:
        """Brokers whose process is suspended."""
        return frozenset(map(self._number.ids.__getitem__, self._feed.surroundings.paused))

    def ended(self) -> frozenset[int]:
        """Brokers whose process has ended."""
        return frozenset(id_ for id_ in self._number.ids if self._cluster.broker(id_).state() is NodeState.STOPPED)

    def started(self) -> frozenset[BrokerId]:
        """Brokers whose process runs; a new process may not respond to requests yet."""
        running = (id_ for id_ in self._number.ids if self._cluster.broker(id_).state() is NodeState.RUNNING)
        return frozenset(map(self._number, running))

    def unheard(self) -> frozenset[BrokerId]:
        """Brokers whose heartbeats are held back."""
        return frozenset(map(self._number, self._control_plane.brokers(Talk.HEARTBEATS)))

    def deaf(self) -> frozenset[BrokerId]:
        """Brokers to which the controller's metadata is held back.

        In ZooKeeper mode the controller's own broker is left out, for no link carries its decisions to it.
        """
        return self._but_controller(Talk.METADATA)

    def mute(self) -> frozenset[BrokerId]:
        """Brokers whose AlterPartition requests are held back; not the controller's own in ZooKeeper mode."""
        return self._but_controller(Talk.ISR_REQUESTS)

    def _but_controller(self, talk: Talk) -> frozenset[BrokerId]:
        return frozenset(map(self._number, self._control_plane.brokers(talk) - {self._observer.broker}))
