"""Driver: takes each step on a live cluster, observes responses and controller decisions, and tells the tracker.

It stops when the cluster does what the reference model does not permit (`Divergence`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.actions import (
    Administer,
    AskMetadata,
    Fault,
    GroupStep,
    Idle,
    Request,
    Step,
    Transact,
    Wait,
    Write,
)
from lockstep.stepper.driver.administration import Administration
from lockstep.stepper.driver.broker_index import BrokerIndex
from lockstep.stepper.driver.broker_states import BrokerStates
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.control_plane_faults import ControlPlaneFaults
from lockstep.stepper.driver.coordinator_monitor import CoordinatorMonitor
from lockstep.stepper.driver.event_feed import EventFeed
from lockstep.stepper.driver.faults import ClusterFaults
from lockstep.stepper.driver.groups.driver import GroupDriver
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.driver.open_requests import OpenRequests
from lockstep.stepper.driver.requests import ClientRequests
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.driver.timers import Timing
from lockstep.stepper.driver.transaction_requests import TransactionRequests
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.driver.waits import WaitConditions
from lockstep.stepper.model.client_requests import Reading, as_asked
from lockstep.stepper.model.controller_inference import Explained
from lockstep.stepper.model.events import Began
from lockstep.stepper.model.state import OPERATIONS
from lockstep.stepper.observers.decisions import ControllerObserver
from lockstep_model.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step that was taken."""

    step: Step
    seen: str
    """The cluster's response, or the outcome of the action, in words."""
    reply: Any = None
    """The last response that arrived during this step, as the model represents it."""
    decisions: tuple[str, ...]
    """The controller decisions observed during this step, in words."""
    explained: tuple[Explained, ...]
    """The causes of these decisions."""
    events: int
    """The number of events from the start of the run to the end of this step."""
    belief: int
    """The number of states in the belief after this step."""
    took_ns: int


class Driver(Closeable):
    """Takes steps on one partition of a cluster, each by the part of the driver whose kind of step it is."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        observer: ControllerObserver,
        parameters: Parameters,
        timing: Timing,
        reading: Reading = as_asked,
        groups: GroupDriver | None = None,
    ) -> None:
        number = BrokerIndex(cluster.broker_ids)
        began = Began(controller=number.controller(observer.current), ids=number.ids)
        self.feed = EventFeed(began, parameters, reading)
        context = Context(cluster=cluster, topic=topic, number=number, timing=timing, feed=self.feed)
        self._context = context
        self._groups = groups
        self._client = TransactionalClient(topic, parameters.transaction_version)
        self._connections = Connections(cluster)
        self._open = OpenRequests(context)
        control_plane = ControlPlaneFaults(cluster)
        self._brokers = BrokerStates(context, self._connections, control_plane, observer)
        self._coordinator = CoordinatorMonitor(context, self._client, self._brokers)
        self.observation = Observation(context, observer, self._brokers, self._open, self._client, self._coordinator)
        self._requests = ClientRequests(context, self._connections, self._open, self._client, self.observation)
        self._transactions = TransactionRequests(
            context, self._connections, self._client, self._coordinator, self.observation, self._requests
        )
        self._faults = ClusterFaults(
            context, self._connections, self._brokers, control_plane, self._coordinator, self.observation, groups
        )
        self._administration = Administration(context, self.observation)
        self._waits = WaitConditions(context, self._brokers, self._open, self.observation, groups)
        if groups is not None:
            groups.begin(self.feed.tell)

    def close(self) -> None:
        self._connections.close()
        self._open.close()
        self._coordinator.close()

    def take(self, step: Step) -> Done:
        """Take a step; raises `Divergence` if the model does not permit an observation made during it."""
        began = time.monotonic_ns()
        self.observation.decisions = []
        self._context.last_response = None
        tracker = self.feed.tracker
        explained = len(tracker.explained)
        seen = self._take(step)
        return Done(
            step=step,
            seen=seen,
            reply=self._context.last_response,
            decisions=tuple(self.observation.decisions),
            explained=tuple(tracker.explained[explained:]),
            events=len(self.feed.events),
            belief=len(tracker.belief),
            took_ns=time.monotonic_ns() - began,
        )

    def _take(self, step: Step) -> str:
        if isinstance(step, GroupStep):
            return self._consume(step)
        if isinstance(step, Request):
            return self._requests.send(step)
        if isinstance(step, Transact):
            return self._transactions.send(step)
        if isinstance(step, Fault):
            return self._faults.take(step)
        if isinstance(step, Administer):
            return self._administration.take(step)
        match step:
            case AskMetadata():
                return self._requests.ask_metadata(step.broker)
            case Wait():
                return self._waits.wait(step.until)
            case Idle():
                return self._waits.idle(step.ms)

    def _consume(self, step: GroupStep) -> str:
        """Let a consumer send a group request."""
        if self._groups is None:
            return "there are no consumers"
        seen, self._context.last_response = self._groups.take(step)
        return seen

    def situation(self) -> Situation:
        """The cluster's condition, by which a walk chooses its next step."""
        tracker, ids = self.feed.tracker, self._context.number.ids
        partition, id_ = self.observation.controller.partition, ids.__getitem__
        paused = self._brokers.paused()
        running = self._brokers.running() - paused
        cut = frozenset((id_(follower), id_(leader)) for follower, leader in self.feed.surroundings.cut)
        groups = None if self._groups is None else self._groups.situation(running, cut, tracker.groups.beliefs())
        return Situation(
            brokers=ids,
            running=running,
            paused=paused,
            ended=self._brokers.ended(),
            replicas=tuple(map(id_, partition.replicas)),
            leader=id_(partition.leader) if partition.leader >= 0 else partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=frozenset(map(id_, partition.isr)),
            elr=frozenset(map(id_, partition.elr)),
            cut=cut,
            written=self._requests.written,
            open_writes=len(self._open),
            coordinating=any(not isinstance(request.step, Write) for request in self._open),
            identified=self._client.producer is not None,
            adds_partitions=self._client.version < 2,
            may_leave_open=len(self._open) < OPERATIONS - 1,
            min_isr=self._administration.min_isr,
            belief=len(tracker.belief),
            groups=groups,
        )
