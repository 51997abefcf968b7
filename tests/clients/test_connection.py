"""The raw connection against servers of our own: whom it believes, and whom it does not."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from lockstep.clients.access import Access, SecurityProtocol
from lockstep.clients.librdkafka import Admission
from lockstep.clients.wire.connection import Connection, require_admission
from lockstep.clients.wire.sasl import authenticate
from lockstep.cluster.security.certificates import issue
from lockstep.errors import AccessRefused
from lockstep.network.topology import Address
from lockstep.spec.cluster import Mechanism

HERE = "127.0.0.1"


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Does `serve` to one connection."""
    with socket.create_server((HERE, 0)) as listening:

        def once() -> None:
            try:
                connection, _ = listening.accept()
                with connection:
                    serve(connection)
            except OSError:
                pass  # the client has left, which some of these tests want

        thread = threading.Thread(target=once)
        thread.start()
        try:
            yield Address(host=HERE, port=listening.getsockname()[1])
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def tls(store: Path) -> Callable[[socket.socket], None]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(store)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    return serve


def issued(directory: Path, host: str) -> tuple[Path, Path]:
    """An authority, and the key and certificate of a node that is reached as `host`."""
    authority, stores = issue({"broker-1": [host]})
    (directory / "ca.pem").write_bytes(authority)
    (directory / "broker-1.pem").write_bytes(stores["broker-1"])
    return directory / "ca.pem", directory / "broker-1.pem"


def over_tls(ca: Path) -> Access:
    return Access(bootstrap="", protocol=SecurityProtocol.SSL, ca=ca)


def test_a_certificate_of_the_authority_for_the_address_is_believed(tmp_path: Path) -> None:
    ca, store = issued(tmp_path, HERE)
    with server(tls(store)) as address, Connection(address, over_tls(ca)):
        pass


def test_a_certificate_for_another_address_is_not(tmp_path: Path) -> None:
    ca, store = issued(tmp_path, "127.0.0.2")
    with server(tls(store)) as address, pytest.raises(AccessRefused, match="cannot be trusted: IP address mismatch"):
        Connection(address, over_tls(ca))


def test_a_certificate_of_another_authority_is_not(tmp_path: Path) -> None:
    _, store = issued(tmp_path, HERE)
    (tmp_path / "other").mkdir()
    other, _ = issued(tmp_path / "other", HERE)
    with server(tls(store)) as address, pytest.raises(AccessRefused, match=f"certificate of {HERE}:.* cannot be trust"):
        Connection(address, over_tls(other))


def test_a_server_without_tls_is_told_from_one_that_went_away(tmp_path: Path) -> None:
    ca, _ = issued(tmp_path, HERE)
    with (
        server(lambda connection: connection.sendall(b"\0\0\0\x04what")) as address,
        pytest.raises(AccessRefused, match=f"{address} does not speak TLS as we do"),
    ):
        Connection(address, over_tls(ca))
    with server(socket.socket.close) as address, pytest.raises(OSError):  # noqa: PT011 - whichever it is
        Connection(address, over_tls(ca))


def broker(final: bytes, *, mechanisms: tuple[str, ...] = ()) -> Callable[[RequestPayload], ResponsePayload]:
    """Answers as a broker that was never told the password: it can begin the exchange, but not end it."""

    def ask(request: RequestPayload) -> ResponsePayload:
        if not isinstance(request, SaslAuthenticateRequest):
            error = ErrorCode.unsupported_sasl_mechanism if mechanisms else ErrorCode.none
            return SaslHandshakeResponse(error_code=error, mechanisms=mechanisms)
        nonce = request.auth_bytes.rpartition(b"r=")[2] if b"n=" in request.auth_bytes else None
        answer = final if nonce is None else b"r=" + nonce + b"more,s=" + base64.b64encode(b"salt") + b",i=4096"
        return SaslAuthenticateResponse(error_code=ErrorCode.none, error_message=None, auth_bytes=answer)

    return ask


ADDRESS = Address(host="broker", port=9092)


def test_a_broker_that_does_not_know_the_password_is_not_believed() -> None:
    forged = b"v=" + base64.b64encode(bytes(32))
    with pytest.raises(AccessRefused, match="broker:9092 did not prove to user alice that it is a broker"):
        authenticate(broker(forged), ADDRESS, (Mechanism.SCRAM_256, "alice", "open sesame"))


def test_a_mechanism_that_is_not_offered_is_named_with_those_that_are() -> None:
    with pytest.raises(AccessRefused, match="broker:9092 does not offer PLAIN: it offers SCRAM-SHA-512"):
        authenticate(broker(b"", mechanisms=("SCRAM-SHA-512",)), ADDRESS, (Mechanism.PLAIN, "alice", "open sesame"))


def test_a_broker_that_is_away_has_refused_nobody(tmp_path: Path) -> None:
    ca, store = issued(tmp_path, "127.0.0.2")
    with socket.create_server((HERE, 0)) as listening:
        away = f"{HERE}:{listening.getsockname()[1]}"
    access = Access(bootstrap=away, protocol=SecurityProtocol.SSL, ca=ca)
    admission = Admission(access)
    admission.note(KafkaError(KafkaError._SSL))
    admission.check()
    with server(tls(store)) as address:
        admission = Admission(Access(bootstrap=f"{away},{address}", protocol=SecurityProtocol.SSL, ca=ca))
        admission.check()  # nobody has asked for it yet
        admission.note(KafkaError(KafkaError._SSL))
        with pytest.raises(AccessRefused, match="cannot be trusted"):
            admission.check()
    require_admission(access)
