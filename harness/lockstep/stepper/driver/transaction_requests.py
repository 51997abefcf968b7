"""Transaction requests: InitProducerId, AddPartitionsToTxn and EndTxn to the transaction coordinator."""

from __future__ import annotations

from lockstep.stepper.driver.actions import InitProducer, Transact
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.coordinator_monitor import CoordinatorMonitor
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.driver.requests import ClientRequests
from lockstep.stepper.driver.timeouts import ANSWER_S, WAIT_S
from lockstep.stepper.driver.transaction_codec import transact
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.events import Identified
from lockstep.wait import WaitTimeout, wait_until
from lockstep_model.errors import Error
from lockstep_model.transactions.coordinator import Answer

COORDINATOR_S = 5.0
"""How long to look for a transaction coordinator: the first time, __transaction_state has to be created."""


class TransactionRequests:
    """Sends the transactional client's requests; their responses may wait for followers of __transaction_state."""

    def __init__(
        self,
        context: Context,
        connections: Connections,
        client: TransactionalClient,
        coordinator: CoordinatorMonitor,
        observation: Observation,
        requests: ClientRequests,
    ) -> None:
        self._topic = context.topic
        self._feed = context.feed
        self._connections = connections
        self._client = client
        self._coordinator = coordinator
        self._observation = observation
        self._requests = requests

    def send(self, step: Transact) -> str:
        """Send a request to the coordinator; the first is always an InitProducerId."""
        if self._client.producer is None:
            return self._identify()
        coordinator = self._find_coordinator()
        if coordinator is None:
            return "there is no coordinator"
        try:
            return self._requests.begin(step, coordinator, transact(step, self._topic, self._client))
        except OSError as error:  # no connection, so the request was never sent
            return f"no answer ({error})"

    def _identify(self) -> str:
        """Send the first InitProducerId of a new transactional id, under another id each time, until one succeeds."""

        def identified() -> bool:
            self._client.begin_anew()
            coordinator = self._find_coordinator()
            if coordinator is None:
                return False
            exchange = transact(InitProducer(), self._topic, self._client)
            answer: Answer = exchange.read(exchange.send(self._connections.to(coordinator)).answer(ANSWER_S))
            self._client.is_told(answer)
            return answer.error is Error.NONE

        try:
            wait_until(identified, timeout_s=WAIT_S, what="a producer id", interval_s=0.1, retry_on=(OSError,))
        except WaitTimeout:
            return "there is no coordinator"
        producer = self._client.producer
        assert producer is not None
        self._coordinator.count_reloads_from_now()
        self._feed.tell(Identified(producer=producer))
        self._observation.observe()
        self._coordinator.settle(self._observation.controller)
        return f"producer {producer.id} epoch {producer.epoch}"

    def _find_coordinator(self) -> int | None:
        """The broker that coordinates the transactional id, if it can be found in time and is running."""

        def find() -> int | None:
            self._observation.observe()
            return self._coordinator.look_for()

        try:
            return wait_until(find, timeout_s=COORDINATOR_S, what="a coordinator", interval_s=0.1)
        except WaitTimeout:
            return None
