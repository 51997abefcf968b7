"""Observation: collects the controller's decisions and the responses to open requests, and tells them in order."""

from __future__ import annotations

from typing import Any

from lockstep.stepper.driver.actions import AddPartition, Transact, Write
from lockstep.stepper.driver.broker_states import BrokerStates
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.coordinator_monitor import CoordinatorMonitor
from lockstep.stepper.driver.open_requests import OpenRequest, OpenRequests
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.client_requests import in_words
from lockstep.stepper.model.events import Decided, Exchanged, GaveUp, Named, RequestSent, ResponseArrived
from lockstep.stepper.observers.decisions import ControllerObserver
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode
from lockstep_model.transactions.coordinator import Answer


class Observation:
    """What the driver reads from the cluster besides immediate responses."""

    def __init__(
        self,
        context: Context,
        observer: ControllerObserver,
        brokers: BrokerStates,
        requests: OpenRequests,
        client: TransactionalClient,
        coordinator: CoordinatorMonitor,
    ) -> None:
        self._context = context
        self._number = context.number
        self._timing = context.timing
        self._feed = context.feed
        self._observer = observer
        self._brokers = brokers
        self._requests = requests
        self._client = client
        self._coordinator = coordinator
        self.controller = context.number.controller(observer.current)
        """The controller's registrations at the last observation, with the model's broker numbers."""
        self.decisions: list[str] = []
        """The controller decisions observed during the last step, in words."""

    def observe(self, sent: RequestSent | None = None) -> str:
        """Collect responses and controller decisions, and tell them; returns the responses to open requests, in words.

        Responses are collected before decisions and told after them: a broker may have responded on the basis of a
        decision that was made in the meantime. A request that was just `sent` is told between them.
        """
        responses = self._requests.responses()
        decisions = self._observer.poll()
        if not decisions:
            self._coordinator.count_reloads()
        around = self._feed.surroundings
        deaf = around.deaf & self._brokers.deaf()  # another broker may be the controller by now
        self._feed.surround(around._replace(late=self._timing.late(), expired=self._timing.expired(), deaf=deaf))
        if sent is not None and sent.reply is not None and not decisions:
            self._feed.tell(Exchanged(broker=sent.broker, request=sent.request, reply=sent.reply))
        elif sent is not None:
            self._feed.tell(sent)
        for decision in decisions:
            self._decided(self._number.controller(decision.controller), decision.after_ns)
        if decisions:  # a coordinator that is told to reload has these decisions in its metadata, too
            self._coordinator.count_reloads()
        if sent is not None and sent.reply is not None and decisions:
            self._feed.tell(ResponseArrived(slot=sent.slot, reply=sent.reply))
        return "; ".join(self._answered(slot, response) for slot, response in responses.items())

    def _decided(self, seen: Controller, not_before: int) -> None:
        tracker = self._feed.tracker
        silent = self._timing.silent()
        if tracker.parameters.mode is Mode.ZK:  # the znodes show which sessions ended
            silent = frozenset(broker for broker, registration in seen.brokers if registration.fenced)
        came_or_gone = dict(seen.brokers).items() ^ dict(self.controller.brokers).items()
        self._coordinator.registrations_changed(self._number.ids[broker] for broker, _ in came_or_gone)
        self._feed.tell(Decided(controller=seen, occasions=self._feed.occasions._replace(silent=silent)))
        self._timing.decided(self.controller, seen, not_before)
        self.controller = seen
        self.decisions.append(tracker.describer.decision(seen, tracker.explained[-1]))

    def _answered(self, slot: int, response: Any | None) -> str:
        """Tell the response to an open request, or that its connection broke."""
        request = self._requests.pop(slot)
        if response is None:
            self._feed.tell(GaveUp(slot=slot))
        else:
            self._context.last_response = response
            self._feed.tell(ResponseArrived(slot=slot, reply=Named.of(response)))
        if isinstance(request.step, Write):
            self._wrote(request.step, request, response)
        else:
            self._transacted(request.step, response)
        kind = "write" if isinstance(request.step, Write) else "request"
        return f"{kind} {slot} is never answered" if response is None else f"{kind} {slot}: {in_words(response)}"

    def _wrote(self, step: Write, request: OpenRequest, response: Any | None) -> None:
        if step.transaction is not None:
            self._client.has_written(step.transaction, step.records, response)
            return
        done = response is not None and response.error is Error.NONE
        if done and request.alone and request.partition == self.controller.partition:
            self._timing.committed(request.partition.isr, request.partition.leader, request.sent)

    def _transacted(self, step: Transact, response: Answer | None) -> None:
        """Apply a coordinator's response to the client, if there is one.

        InitProducerId and EndTxn that succeed prove that the coordinator can replicate its log. AddPartitionsToTxn may
        succeed without an append.
        """
        done = response is not None and response.error is Error.NONE
        if response is not None:
            self._client.is_told(response)
        if done and not isinstance(step, AddPartition):
            self._coordinator.settle(self.controller)
