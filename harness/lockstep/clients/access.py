"""How a client reaches a cluster: bootstrap servers, security protocol and credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from lockstep.errors import UsageError
from lockstep.network.topology import Address
from lockstep.spec.cluster import Mechanism


class SecurityProtocol(StrEnum):
    """Kafka's `security.protocol`."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Bootstrap servers and credentials of a client. Its text form never shows the password."""

    bootstrap: str
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    mechanism: Mechanism | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: Path | None = None
    """A PEM file with the trusted authorities; without one, those that this machine trusts."""

    def __post_init__(self) -> None:
        _ = self.login

    @property
    def login(self) -> tuple[Mechanism, str, str] | None:
        """SASL mechanism, user name and password; None where the listener does not use SASL."""
        if not self.protocol.sasl:
            return None
        if self.mechanism and self.username and self.password:
            return self.mechanism, self.username, self.password
        raise UsageError(f"{self.protocol} needs a SASL mechanism, a user name and a password")

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The bootstrap servers one by one."""
        return tuple(_address(server.strip()) for server in self.bootstrap.split(","))

    def librdkafka(self) -> dict[str, str]:
        """The same as configuration of a confluent-kafka client."""
        config = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol.value}
        if self.protocol.tls and self.ca is not None:
            config["ssl.ca.location"] = str(self.ca)
        if self.login is not None:
            mechanism, username, password = self.login
            config |= {"sasl.mechanisms": mechanism.value, "sasl.username": username, "sasl.password": password}
        return config


OPEN = Access(bootstrap="")
"""Access without TLS or SASL, to a node whose address the caller gives."""


def _address(server: str) -> Address:
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"{server!r} is not a bootstrap server: write host:port")
    return Address(host=host.strip("[]"), port=int(port))
