"""SASL authentication to a broker (KIP-43, KIP-152): SaslHandshake, then the mechanism's own messages."""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload
from scramp import ScramClient, ScramException

from lockstep.errors import AccessRefused
from lockstep.network.topology import Address
from lockstep.spec.cluster import Mechanism

Ask = Callable[[RequestPayload], ResponsePayload]


def authenticate(ask: Ask, address: Address, login: tuple[Mechanism, str, str]) -> None:
    """Authenticate a connection that was just opened; `AccessRefused` when the broker does not believe us."""
    mechanism, username, password = login
    response = ask(SaslHandshakeRequest(mechanism=mechanism.value))
    assert isinstance(response, SaslHandshakeResponse)
    if response.error_code is not ErrorCode.none:
        raise AccessRefused(
            f"{address} does not offer {mechanism}: it offers {', '.join(response.mechanisms) or 'nothing'}"
        )

    def exchange(message: str) -> str:
        response = ask(SaslAuthenticateRequest(auth_bytes=message.encode()))
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code is not ErrorCode.none:
            raise AccessRefused(f"{address} refused user {username} with {mechanism}: check the user name and password")
        return response.auth_bytes.decode()

    if mechanism is Mechanism.PLAIN:
        exchange(f"\0{username}\0{password}")
        return
    try:
        _scram(mechanism, username, password, exchange)
    except ScramException as error:  # a server without the password cannot sign its last message
        raise AccessRefused(f"{address} did not prove to user {username} that it is a broker") from error


def _scram(mechanism: Mechanism, username: str, password: str, exchange: Callable[[str], str]) -> None:
    """RFC 5802: neither side shows the password, and each proves to the other that it knows it."""
    client = ScramClient([mechanism.value], username, password)
    client.set_server_first(exchange(client.get_client_first()))
    client.set_server_final(exchange(client.get_client_final()))
