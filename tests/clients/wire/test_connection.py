"""Asking now and hearing later: the test itself is the node, and answers when it likes."""

from __future__ import annotations

import io
import select
import socket
import ssl
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import GroupId
from kio.serial import entity_writer
from kio.static.primitive import i32
from kio.static.protocol import ResponsePayload

from lockstep.clients.wire.connection import Connection, Pending, framed, milliseconds
from lockstep.errors import ClusterError
from lockstep.network.topology import Address
from lockstep.wait import wait_until
from tests.clients.test_connection import HERE, issued, over_tls

REQUEST = HeartbeatRequest(group_id=GroupId("g"), generation_id=i32(1), member_id="m")
AT_ONCE_S = 0.01

Pair = tuple[Connection, socket.socket]


@contextmanager
def connected() -> Iterator[Pair]:
    """A connection, and what the node has of it."""
    with (
        socket.create_server((HERE, 0)) as listening,
        Connection(Address(host=HERE, port=listening.getsockname()[1])) as connection,
    ):
        node, _ = listening.accept()
        with node:
            yield connection, node


@contextmanager
def connected_over_tls(directory: Path) -> Iterator[Pair]:
    ca, store = issued(directory, HERE)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(store)
    with socket.create_server((HERE, 0)) as listening, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(lambda: context.wrap_socket(listening.accept()[0], server_side=True))
        address = Address(host=HERE, port=listening.getsockname()[1])
        with Connection(address, over_tls(ca)) as connection, accepted.result() as node:
            yield connection, node


def response(correlation: int, error: ErrorCode) -> bytes:
    with io.BytesIO() as buffer:
        entity_writer(ResponseHeader)(buffer, ResponseHeader(correlation_id=i32(correlation)))
        answer = HeartbeatResponse(throttle_time=milliseconds(0), error_code=error)
        entity_writer(HeartbeatResponse)(buffer, answer)
        body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def begin(connection: Connection) -> Pending[ErrorCode]:
    def error(answer: ResponsePayload) -> ErrorCode:
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code

    return connection.begin(REQUEST, error)


def wait_ready(pending: Pending[ErrorCode]) -> None:
    wait_until(pending.ready, timeout_s=10, what="an answer, or that there will be none")


def test_the_answer_is_taken_when_it_has_come() -> None:
    with connected() as (connection, node):
        pending = begin(connection)
        assert not pending.ready()
        assert select.select([pending], [], [], 0)[0] == []
        node.sendall(response(1, ErrorCode.rebalance_in_progress))
        assert select.select([pending], [], [], 10)[0] == [pending]
        assert pending.ready()
        assert pending.answer() is ErrorCode.rebalance_in_progress


def test_what_has_come_in_part_is_not_lost_when_nobody_waits_any_longer() -> None:
    whole = response(1, ErrorCode.rebalance_in_progress)
    with connected() as (connection, node):
        pending = begin(connection)
        for part in (whole[:3], whole[3:9]):
            node.sendall(part)
            with pytest.raises(TimeoutError):
                pending.answer(AT_ONCE_S)
            assert not pending.ready()
        node.sendall(whole[9:])
        assert pending.answer() is ErrorCode.rebalance_in_progress


def test_the_second_answer_can_be_taken_before_the_first() -> None:
    with connected() as (connection, node):
        first, second = begin(connection), begin(connection)
        node.sendall(response(1, ErrorCode.rebalance_in_progress) + response(2, ErrorCode.illegal_generation))
        assert second.answer() is ErrorCode.illegal_generation
        assert first.ready()
        assert first.answer() is ErrorCode.rebalance_in_progress


def test_the_answers_before_it_do_not_make_one_ready() -> None:
    with connected() as (connection, node):
        first, second = begin(connection), begin(connection)
        node.sendall(response(1, ErrorCode.none))
        wait_ready(first)
        assert not second.ready()


def test_nobody_waits_for_a_node_that_has_gone() -> None:
    with connected() as (connection, node):
        assert not connection.is_closed()
        answered, unanswered = begin(connection), begin(connection)
        node.sendall(response(1, ErrorCode.none))
        node.shutdown(socket.SHUT_RDWR)
        wait_ready(unanswered)
        assert connection.is_closed()
        assert answered.answer() is ErrorCode.none, "what it said before it went counts"
        with pytest.raises(ConnectionResetError):
            unanswered.answer()


def test_an_answer_to_something_else_is_none() -> None:
    with connected() as (connection, node):
        pending = begin(connection)
        node.sendall(response(7, ErrorCode.none))
        with pytest.raises(ConnectionError, match="answer 7 to request 1"):
            pending.answer()


def test_any_bytes_can_be_sent_and_nothing_is_expected() -> None:
    with connected() as (connection, node):
        connection.send_frame(b"\x7f\xff\xff\xffwhat")
        assert node.recv(100) == b"\x7f\xff\xff\xffwhat"
        node.sendall(response(0, ErrorCode.none))
        with pytest.raises(ClusterError, match="asked nothing"):
            wait_until(connection.is_closed, timeout_s=10, what="what nobody asked for")


def test_a_request_can_go_out_with_the_number_of_another_version() -> None:
    with connected() as (connection, node):
        connection.send(REQUEST, version=77)
        other = node.recv(1000)
    own = framed(REQUEST, 1)
    assert other[6:8] == b"\0\x4d"
    assert own[6:8] == b"\0\x04"
    assert other[:6] + other[8:] == own[:6] + own[8:]


def test_tls_can_be_asked_without_waiting_too(tmp_path: Path) -> None:
    with connected_over_tls(tmp_path) as (connection, node):
        first, second = begin(connection), begin(connection)
        assert not first.ready()
        node.sendall(response(1, ErrorCode.none))
        node.sendall(response(2, ErrorCode.illegal_generation))
        wait_ready(second)
        assert first.ready()
        assert (first.answer(), second.answer()) == (ErrorCode.none, ErrorCode.illegal_generation)
