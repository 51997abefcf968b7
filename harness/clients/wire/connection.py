"""One TCP connection that speaks Kafka's protocol with kio's types: one request, one answer, from exactly that node."""

from __future__ import annotations

import io
import itertools
import socket
import struct

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from harness.closeable import Closeable
from harness.network.topology import Address

CLIENT_ID = "lockstep"


class Connection(Closeable):
    """Ask one node directly; raises `OSError` when it does not answer in time."""

    def __init__(self, address: Address, timeout_s: float = 2.0) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout_s)
        self._correlation = itertools.count(1)

    def ask(self, request: RequestPayload) -> ResponsePayload:
        """Send one request and wait for its response."""
        correlation = next(self._correlation)
        self._socket.sendall(_frame(request, correlation))
        (size,) = struct.unpack(">i", self._read(4))
        return _parse(self._read(size), request, correlation)

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self._socket.recv(size - len(chunks))
            if not chunk:
                raise ConnectionResetError("the node closed the connection")
            chunks += chunk
        return bytes(chunks)


def _frame(request: RequestPayload, correlation: int) -> bytes:
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=i16(request.__api_key__),
        request_api_version=i16(request.__version__),
        correlation_id=i32(correlation),
        client_id=CLIENT_ID,
    )
    with io.BytesIO() as buffer:
        entity_writer(header_type)(buffer, header)
        entity_writer(type(request))(buffer, request)
        body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def _parse(frame: bytes, request: RequestPayload, correlation: int) -> ResponsePayload:
    response_type = load_response_schema(request.__api_key__, request.__version__)
    header_type = response_type.__header_schema__
    header, header_size = entity_reader(header_type)(frame, 0)
    if header.correlation_id != correlation:
        raise ConnectionError(f"answer {header.correlation_id} to request {correlation}")
    response, _ = entity_reader(response_type)(frame, header_size)
    return response
