"""Waits: lets time pass until a condition is observed, and observes the cluster all the while."""

from __future__ import annotations

import time

from lockstep.stepper.driver.actions import Until
from lockstep.stepper.driver.broker_states import BrokerStates
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.groups.driver import GroupDriver
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.driver.open_requests import OpenRequests
from lockstep.stepper.driver.timeouts import WAIT_S
from lockstep.stepper.driver.timers import MS
from lockstep.wait import WaitTimeout, wait_until
from lockstep_model.registration import NO_LEADER


class WaitConditions:
    """The conditions of `Until`, by the controller's decisions, the open requests and the broker processes."""

    def __init__(
        self,
        context: Context,
        brokers: BrokerStates,
        requests: OpenRequests,
        observation: Observation,
        groups: GroupDriver | None,
    ) -> None:
        self._number = context.number
        self._brokers = brokers
        self._requests = requests
        self._observation = observation
        self._groups = groups

    def wait(self, until: Until) -> str:
        """Wait until a condition is observed, or `WAIT_S` has passed."""
        try:
            wait_until(lambda: self._come_about(until), timeout_s=WAIT_S, what=str(until), interval_s=0.05)
        except WaitTimeout:
            return "it did not come about"
        return "it came about"

    def idle(self, ms: int) -> str:
        """Let so much time pass."""
        over = time.monotonic_ns() + ms * MS
        while time.monotonic_ns() < over:
            time.sleep(0.05)
            self._observation.observe()
        return "it passed"

    def _come_about(self, until: Until) -> bool:
        self._observation.observe()
        controller = self._observation.controller
        partition = controller.partition
        running = {self._number(id_) for id_ in self._brokers.running()}
        match until:
            case Until.ANSWERS:
                return not self._requests
            case Until.GROUP_ANSWERS:
                return self._groups is None or self._groups.all_answered()
            case Until.IN_SYNC:
                return running & frozenset(partition.replicas) <= partition.isr
            case Until.SHRUNK:
                return partition.isr < frozenset(partition.replicas)
            case Until.LED:
                return partition.leader in running
            case Until.LEADERLESS:
                return partition.leader == NO_LEADER
            case Until.ALONE:
                return partition.isr == {partition.leader}
            case Until.REGISTERED:
                return self._brokers.started() - self._brokers.unheard() <= controller.active_brokers()
            case Until.FENCED:
                return controller.active_brokers() <= self._brokers.started() - self._brokers.unheard()
