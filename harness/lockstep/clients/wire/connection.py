"""One connection that speaks Kafka's protocol with kio's types, to exactly one node.

A node answers in the order in which it was asked. An answer can be awaited at once (`ask`), or taken when it has come
(`begin`): a write with acks=all may wait long for the followers, while other connections go on.
"""

from __future__ import annotations

import io
import itertools
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import RequestPayload, ResponsePayload

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.sasl import authenticate
from lockstep.clients.wire.versions import ALIKE, WHICH_VERSIONS, chosen, newest_versions
from lockstep.closeable import Closeable
from lockstep.errors import AccessRefused, ClusterError
from lockstep.network.topology import Address

CLIENT_ID = "lockstep"
CHUNK_BYTES = 65_536
NOTHING_YET = (BlockingIOError, ssl.SSLWantReadError)

Answer = TypeVar("Answer")


class Connection(Closeable):
    """Ask one node directly; raises `OSError` when it does not answer in time, `AccessRefused` when it will not."""

    def __init__(self, address: Address, access: Access = OPEN, timeout_s: float = 2.0) -> None:
        self._timeout_s = timeout_s
        self._correlation = itertools.count(1)
        self._asked: dict[int, type[ResponsePayload]] = {}
        self._newest: dict[int, int] | None = None
        self._received = bytearray()
        self._answers: dict[int, ResponsePayload] = {}
        self._socket = socket.create_connection((address.host, address.port), timeout_s)
        # A request goes out at once: collected with others, as TCP likes to, each takes up to 40 ms more.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        return self.receive(self.send(request))

    def begin(
        self, request: RequestPayload, read: Callable[[ResponsePayload], Answer], *, version: int | None = None
    ) -> Pending[Answer]:
        """Send one request; its response is read later, from the `Pending` that this returns."""
        return Pending(_connection=self, _correlation=self.send(request, version=version), _read=read)

    def send(self, request: RequestPayload, *, version: int | None = None) -> int:
        """Send one request, and return the number that `receive` wants.

        Some versions differ in nothing but their number: with `version`, the request goes out with exactly that one,
        and otherwise with one that the node knows.
        """
        version = self.version_of(request) if version is None else version
        correlation = next(self._correlation)
        self.send_frame(framed(request, correlation, version=version))
        self._asked[correlation] = load_response_schema(request.__api_key__, request.__version__)
        return correlation

    def version_of(self, request: RequestPayload) -> int:
        """The version to send a request in. A node is asked what it knows only if there is a choice, and once."""
        if type(request) not in ALIKE:
            return int(request.__version__)
        return chosen(request, self.newest_versions())

    def newest_versions(self) -> Mapping[int, int]:
        """The newest version that the node knows, of each kind of request; only the first call sends ApiVersions."""
        if self._newest is None:
            self._newest = newest_versions(self.ask(WHICH_VERSIONS))
        return self._newest

    def send_frame(self, frame: bytes) -> None:
        """Send any bytes, be they such as no correct client sends; no answer to them is expected."""
        self._socket.settimeout(self._timeout_s)
        self._socket.sendall(frame)

    def receive(self, correlation: int, timeout_s: float | None = None) -> ResponsePayload:
        """Wait for the response to what was sent; after a `TimeoutError` it can be waited for again."""
        while correlation not in self._answers:
            self._read_more(self._timeout_s if timeout_s is None else timeout_s)
        return self._answers.pop(correlation)

    def ready(self, correlation: int) -> bool:
        """Whether `receive` would not wait: the response is here, or will never be."""
        return self.is_closed() or correlation in self._answers

    def is_closed(self) -> bool:
        """Whether this connection is over, as far as can be known without waiting."""
        try:
            while True:
                self._read_more(timeout_s=0)
        except NOTHING_YET:
            return False
        except OSError:
            return True

    def fileno(self) -> int:
        """For `select`, which knows nothing of what was read already: ask `ready` first."""
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _read_more(self, timeout_s: float) -> None:
        """Wait for bytes, and keep every response that is complete with them."""
        self._socket.settimeout(timeout_s)
        chunk = self._socket.recv(CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError("the node closed the connection")
        self._received += chunk
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], signed=True)
            if len(self._received) < end:
                return
            self._keep(bytes(self._received[4:end]))
            del self._received[:end]

    def _keep(self, frame: bytes) -> None:
        if not self._asked:
            raise ClusterError("the node answered though it was asked nothing that has an answer")
        correlation = next(iter(self._asked))
        self._answers[correlation] = _parse(frame, self._asked[correlation], correlation)
        del self._asked[correlation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Generic[Answer]):
    """A request in flight on a connection that stays open. `select` takes it, too."""

    _connection: Connection
    _correlation: int
    _read: Callable[[ResponsePayload], Answer]

    def answer(self, timeout_s: float | None = None) -> Answer:
        """Wait for it, and take it: once. Raises `OSError` when it does not come, and `TimeoutError` if it yet may."""
        return self._read(self._connection.receive(self._correlation, timeout_s))

    def ready(self) -> bool:
        """Whether `answer` would not wait."""
        return self._connection.ready(self._correlation)

    def fileno(self) -> int:
        return self._connection.fileno()


def require_admission(access: Access) -> None:
    """Raise `AccessRefused` if the first bootstrap server that answers does not let us in; quiet if none answers."""
    for address in access.addresses:
        try:
            Connection(address, access).close()
        except OSError:
            continue
        return


def framed(request: RequestPayload, correlation: int, *, version: int | None = None) -> bytes:
    """A request as it goes over the wire, its length before it."""
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=i16(request.__api_key__),
        request_api_version=i16(request.__version__ if version is None else version),
        correlation_id=i32(correlation),
        client_id=CLIENT_ID,
    )
    with io.BytesIO() as buffer:
        entity_writer(header_type)(buffer, header)
        entity_writer(type(request))(buffer, request)
        body = buffer.getvalue()
    return struct.pack(">i", len(body)) + body


def milliseconds(count: int) -> i32Timedelta:
    """A time as requests have it."""
    return i32Timedelta.parse(timedelta(milliseconds=count))


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


def _parse(frame: bytes, response_type: type[ResponsePayload], correlation: int) -> ResponsePayload:
    header_type = response_type.__header_schema__
    header, header_size = entity_reader(header_type)(frame, 0)
    if header.correlation_id != correlation:
        raise ConnectionError(f"answer {header.correlation_id} to request {correlation}")
    response, _ = entity_reader(response_type)(frame, header_size)
    return response
