"""When a broker counts as reachable: the test itself is the published port, and the broker behind it."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.produce.v11.request import ProduceRequest
from kio.schema.response_header.v0.header import ResponseHeader
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from lockstep.clients.access import OPEN
from lockstep.clients.wire.connection import milliseconds
from lockstep.cluster.cluster import Cluster
from lockstep.network.topology import Address
from lockstep.stepper.driver.actions import Write
from lockstep.stepper.driver.connections import Connections
from lockstep.stepper.driver.requests import ClientRequests
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.events import GaveUp, RequestSent
from lockstep_model.partition.produce import Unanswered

HERE = "127.0.0.1"
BROKER = 1


class PublishedPort:
    """Accepts every connection. The broker behind it responds to as many requests on each as `responses` says.

    A connection is closed after its last response; connections after those of `responses` are closed at once, as
    Docker's proxy closes those to a broker that does not listen.
    """

    def __init__(self, listening: socket.socket, responses: tuple[int, ...]) -> None:
        self._listening = listening
        self._responses = iter(responses)

    def serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            with accepted, accepted.makefile("rb") as requests:
                for _ in range(next(self._responses, 0)):
                    if not respond(accepted, requests):
                        break


def respond(accepted: socket.socket, requests: io.BufferedReader) -> bool:
    """Respond to the next request as to ApiVersions; false if the client has closed the connection."""
    if not (length := requests.read(4)):
        return False
    request = requests.read(int.from_bytes(length))
    header = ResponseHeader(correlation_id=i32(int.from_bytes(request[4:8])))
    produce = ApiVersion(api_key=i16(ProduceRequest.__api_key__), min_version=i16(9), max_version=i16(11))
    body = ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(produce,), throttle_time=milliseconds(0))
    with io.BytesIO() as buffer:
        entity_writer(ResponseHeader)(buffer, header)
        entity_writer(ApiVersionsResponse)(buffer, body)
        frame = buffer.getvalue()
    accepted.sendall(struct.pack(">i", len(frame)) + frame)
    return True


@contextmanager
def connections_to(*responses: int) -> Iterator[Connections]:
    """Connections to one broker behind a published port."""
    with socket.create_server((HERE, 0)) as listening:
        address = Address(host=HERE, port=listening.getsockname()[1])
        serving = threading.Thread(target=PublishedPort(listening, responses).serve)
        serving.start()
        cluster = SimpleNamespace(direct=lambda _: address, access=lambda: OPEN)
        try:
            with Connections(cast(Cluster, cluster)) as connections:
                yield connections
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def test_an_accepted_connection_on_which_no_broker_responds_is_not_reachable() -> None:
    with connections_to() as connections:
        assert not connections.reachable(BROKER)
        with pytest.raises(OSError, match=r"closed|reset"):
            connections.to(BROKER)


def test_a_broker_that_responds_is_reachable_and_keeps_its_connection() -> None:
    with connections_to(2) as connections:
        assert connections.reachable(BROKER)
        assert connections.to(BROKER) is connections.to(BROKER)


class Told:
    """The rest of the driver: keeps the events that it is told."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.feed = SimpleNamespace(tell=self.events.append)
        self.number = {BROKER: 0}.__getitem__
        self.topic = "t"
        self.last_response: Any = None

    def observe(self, event: Any) -> None:
        self.events.append(event)

    def free_slot(self) -> int:
        return 0


def written(connections: Connections) -> tuple[str, list[Any], Any]:
    """A Produce with acks=0: its outcome in words, the events told, and its response as the model represents it."""
    told = cast(Any, Told())
    requests = ClientRequests(told, connections, told, TransactionalClient("t", 2), told)
    return requests.send(Write(broker=BROKER, acks=0, records=1)), told.events, told.last_response


@pytest.mark.parametrize("responses", [(), (0, 9)], ids=["never-listens", "listens-after-it"])
def test_a_produce_that_was_never_sent_was_not_refused(responses: tuple[int, ...]) -> None:
    with connections_to(*responses) as connections:
        outcome, events, response = written(connections)
    assert outcome.startswith("no answer")
    assert [type(event) for event in events] == [RequestSent, GaveUp]
    assert events[0].reply is None
    assert response is None


def test_a_broker_that_closes_the_connection_on_a_produce_and_responds_on_another_has_refused_it() -> None:
    with connections_to(1, 1) as connections:
        outcome, events, response = written(connections)
    assert outcome == "refused, and the connection closed"
    assert [type(event) for event in events] == [RequestSent]
    assert response == Unanswered(closed=True)


def test_a_broker_that_closes_the_connection_on_a_produce_and_is_gone_has_not_responded() -> None:
    with connections_to(1) as connections:
        outcome, events, _ = written(connections)
    assert outcome.startswith("no answer")
    assert [type(event) for event in events] == [RequestSent, GaveUp]
