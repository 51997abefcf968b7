"""Bytes that are no request: a real broker ends the connection, and goes on with others."""

from __future__ import annotations

import struct

import pytest
from kio.schema.produce.v11.request import ProduceRequest
from kio.static.primitive import i16

from lockstep.clients.wire.connection import framed, milliseconds
from lockstep.clients.wire.metadata import metadata
from lockstep.wait import wait_until
from tests.clients.wire.conftest import PATIENCE_S, Wire

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]

RIGHT = framed(ProduceRequest(acks=i16(1), timeout=milliseconds(1000), topic_data=()), 1)
HEADER_BYTES = 4 + 2 + 2 + 4


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">i", 2**31 - 1) + RIGHT[4:], id="too-long"),
        pytest.param(struct.pack(">i", -1) + RIGHT[4:], id="negative"),
        pytest.param(struct.pack(">i", 40) + b"\xff" * 40, id="garbage"),
        pytest.param(RIGHT[:HEADER_BYTES] + b"\xff" * (len(RIGHT) - HEADER_BYTES), id="garbage-after-its-header"),
        pytest.param(
            framed(ProduceRequest(acks=i16(1), timeout=milliseconds(1000), topic_data=()), 1, version=99),
            id="unknown-version",
        ),
    ],
)
def test_the_connection_is_closed(wire: Wire, frame: bytes) -> None:
    broker = wire.cluster.broker_ids[0]
    connection, other = wire.to(broker), wire.to(broker)
    assert not connection.is_closed()
    connection.send_frame(frame)
    wait_until(connection.is_closed, timeout_s=PATIENCE_S, what="the broker to close the connection")
    assert metadata(other).brokers == set(wire.cluster.broker_ids)


def test_less_than_was_announced_is_waited_for(wire: Wire) -> None:
    connection = wire.to(wire.cluster.broker_ids[0])
    connection.send_frame(struct.pack(">i", len(RIGHT) + 1000) + RIGHT[4:])
    other = wire.to(wire.cluster.broker_ids[0])
    metadata(other)
    assert not connection.is_closed()
