"""Client requests to the partition: Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and Metadata."""

from __future__ import annotations

import select
from typing import Any

from lockstep.clients.wire.metadata import metadata
from lockstep.stepper.driver import codec
from lockstep.stepper.driver.actions import Ask, AskEpochEnd, Read, Request, Step, Transact, Write
from lockstep.stepper.driver.codec import Exchange
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.observation import Observation
from lockstep.stepper.driver.open_requests import OpenRequests
from lockstep.stepper.driver.timeouts import ANSWER_S, NOT_YET, PATIENCE_S
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.client_requests import in_words
from lockstep.stepper.model.events import GaveUp, MetadataTold, Named, RequestSent
from lockstep_model.partition.produce import Acks, Unanswered


class ClientRequests:
    """Sends requests to brokers, and tells them with their responses."""

    def __init__(
        self,
        context: Context,
        connections: Connections,
        requests: OpenRequests,
        client: TransactionalClient,
        observation: Observation,
    ) -> None:
        self._context = context
        self._topic = context.topic
        self._number = context.number
        self._feed = context.feed
        self._connections = connections
        self._requests = requests
        self._client = client
        self._observation = observation
        self.written = 0
        """The number of records sent so far."""

    def send(self, step: Request) -> str:
        """Send a request; a Produce with acks=all, or in a transaction, may stay open."""
        if isinstance(step, Write) and (step.acks == Acks.ALL or step.transaction is not None):
            return self.begin(step, step.broker, self._exchange(step))
        return self._ask(step)

    def begin(self, step: Write | Transact, broker: int, exchange: Exchange) -> str:
        """Send a request whose response may wait for followers or for a coordinator, over a connection of its own."""
        slot = self._requests.free_slot()
        connection = self._requests.send(slot, step, broker, exchange, self._observation.controller.partition)
        select.select([connection], [], [], PATIENCE_S)
        return self._observation.observe(self._sent(slot, broker, exchange)) or NOT_YET

    def ask_metadata(self, broker: int) -> str:
        """Send a Metadata request; decisions are observed first, for the response may already reflect them."""
        try:
            view = metadata(self._connections.to(broker), (self._topic,))
        except OSError as error:
            self._connections.disconnect(broker)
            return f"no answer ({error})"
        self._observation.observe()
        self._context.last_response = told = codec.described(view, self._topic, self._number)
        self._feed.tell(MetadataTold(broker=self._number(broker), told=told))
        return self._feed.tracker.describer.described(told)

    def _ask(self, step: Request) -> str:
        """Send a request to which a broker responds at once, and wait for the response."""
        exchange = self._exchange(step)
        slot = self._requests.free_slot()
        try:
            connection = self._connections.to(step.broker)
        except OSError as error:  # the request was never sent, even if the broker listens by now
            return self._unanswered(slot, step, exchange, error)
        try:
            reply = exchange.read(exchange.send(connection).answer(ANSWER_S))
        except OSError as error:
            self._connections.disconnect(step.broker)
            if not (isinstance(step, Write) and step.acks == 0 and self._connections.reachable(step.broker)):
                return self._unanswered(slot, step, exchange, error)
            reply = Unanswered(closed=True)  # a broker rejects a produce with acks=0 by closing the connection
        self._observation.observe(self._sent(slot, step.broker, exchange, reply))
        self._context.last_response = reply  # the observation may have set that of an open write
        return in_words(reply)

    def _unanswered(self, slot: int, step: Step, exchange: Exchange, error: OSError) -> str:
        """No response arrived. A write may have been appended or not; a read has changed nothing."""
        if isinstance(step, Write):
            self._observation.observe(self._sent(slot, step.broker, exchange))
            self._feed.tell(GaveUp(slot=slot))
        return f"no answer ({error})"

    def _sent(self, slot: int, broker: int, exchange: Exchange, reply: Any = None) -> RequestSent:
        return RequestSent(
            slot=slot,
            broker=self._number(broker),
            request=Named.of(exchange.request),
            reply=None if reply is None else Named.of(reply),
        )

    def _exchange(self, step: Request) -> Exchange:
        match step:
            case Write():
                values = tuple(range(self.written, self.written + step.records))
                self.written += step.records
                return codec.write(step, self._topic, values, self._client)
            case Read():
                return codec.read(step, self._topic)
            case Ask():
                return codec.ask(step, self._topic)
            case AskEpochEnd():
                return codec.ask_epoch_end(step, self._topic)
