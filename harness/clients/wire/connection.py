"""One connection that speaks Kafka's protocol with kio's types: one request, one answer, from exactly that node."""

from __future__ import annotations

import io
import itertools
import socket
import ssl
import struct

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32
from kio.static.protocol import RequestPayload, ResponsePayload

from harness.clients.access import OPEN, Access
from harness.clients.wire.sasl import authenticate
from harness.closeable import Closeable
from harness.errors import AccessRefused
from harness.network.topology import Address

CLIENT_ID = "lockstep"


class Connection(Closeable):
    """Ask one node directly; raises `OSError` when it does not answer in time, `AccessRefused` when it will not."""

    def __init__(self, address: Address, access: Access = OPEN, timeout_s: float = 2.0) -> None:
        self._correlation = itertools.count(1)
        self._socket = socket.create_connection((address.host, address.port), timeout_s)
        try:
            if access.protocol.tls:
                self._socket = _encrypted(self._socket, address, access)
            if access.login is not None:
                authenticate(self.ask, address, access.login)
        except BaseException:
            self.close()
            raise

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


def require_admission(access: Access) -> None:
    """Raise `AccessRefused` if the first bootstrap server that answers does not let us in; quiet if none answers."""
    for address in access.addresses:
        try:
            Connection(address, access).close()
        except OSError:
            continue
        return


def _encrypted(plain: socket.socket, address: Address, access: Access) -> ssl.SSLSocket:
    """TLS to a node whose certificate names the host that we connect to, be it a name or an address."""
    context = ssl.create_default_context(cafile=access.ca)
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        raise AccessRefused(f"the certificate of {address} cannot be trusted: {error.verify_message}") from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError):
        raise  # it went away in the middle, and may come back
    except ssl.SSLError as error:
        raise AccessRefused(f"{address} does not speak TLS as we do: {error.reason}") from error


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
