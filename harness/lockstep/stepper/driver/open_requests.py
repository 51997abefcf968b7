"""Open requests: client requests whose response may arrive during a later step, each with its slot and connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lockstep.clients.wire.connection import Connection, Pending
from lockstep.closeable import Closeable
from lockstep.stepper.driver.actions import Transact, Write
from lockstep.stepper.driver.codec import Exchange
from lockstep.stepper.driver.context import Context
from lockstep.stepper.driver.timeouts import ANSWER_S
from lockstep.stepper.model.state import OPERATIONS
from lockstep_model.registration import Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A client request whose response has not arrived."""

    step: Write | Transact
    exchange: Exchange
    connection: Connection
    pending: Pending[Any]
    sent: int
    partition: Registration
    """The partition's registration when the request was sent."""
    alone: bool
    """Whether no other request was open when it was sent."""

    def response(self) -> Any | None:
        """The response that has arrived, as the model represents it; None if the connection broke instead."""
        try:
            return self.exchange.read(self.pending.answer(0))
        except OSError:
            return None


class OpenRequests(Closeable):
    """The open requests of a walk, by slot."""

    def __init__(self, context: Context) -> None:
        self._cluster = context.cluster
        self._timing = context.timing
        self._open: dict[int, OpenRequest] = {}

    def close(self) -> None:
        for request in self._open.values():
            request.connection.close()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenRequest]:
        return iter(self._open.values())

    def free_slot(self) -> int:
        """The lowest slot without a request."""
        return next(slot for slot in range(OPERATIONS) if slot not in self._open)

    def send(
        self, slot: int, step: Write | Transact, broker: int, exchange: Exchange, partition: Registration
    ) -> Connection:
        """Send a request over a new connection, which is returned."""
        connection = Connection(self._cluster.direct(broker), self._cluster.access(), ANSWER_S)
        sent = time.monotonic_ns()
        self._open[slot] = OpenRequest(
            step=step,
            exchange=exchange,
            connection=connection,
            pending=exchange.send(connection),
            sent=sent,
            partition=partition,
            alone=not self._open,
        )
        self._timing.opened[slot] = sent
        return connection

    def responses(self) -> dict[int, Any | None]:
        """By slot: the responses that have arrived; None where the connection broke instead."""
        return {slot: request.response() for slot, request in self._open.items() if request.pending.ready()}

    def pop(self, slot: int) -> OpenRequest:
        """Free a slot whose request got its response, or whose connection broke."""
        request = self._open.pop(slot)
        request.connection.close()
        del self._timing.opened[slot]
        return request
