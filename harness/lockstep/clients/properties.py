"""Client properties as files: in the words of Kafka's Java clients or of librdkafka, to and from an `Access`."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import javaproperties

from lockstep.clients.access import Access, SecurityProtocol
from lockstep.errors import UsageError
from lockstep.spec.cluster import Mechanism

# What each property is called by either family of clients.
BOOTSTRAP = ("bootstrap.servers", "metadata.broker.list")
PROTOCOL = ("security.protocol",)
MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
JAAS = ("sasl.jaas.config",)
USERNAME = ("sasl.username",)
PASSWORD = ("sasl.password",)
AUTHORITIES = ("ssl.truststore.location", "ssl.ca.location")
AUTHORITIES_TYPE = ("ssl.truststore.type",)
NAME_CHECK = ("ssl.endpoint.identification.algorithm",)
UNDERSTOOD = (
    *BOOTSTRAP, *PROTOCOL, *MECHANISM, *JAAS, *USERNAME, *PASSWORD, *AUTHORITIES, *AUTHORITIES_TYPE, *NAME_CHECK,
)  # fmt: skip

# By how their names begin. What is in none of these says how a client works and not how it gets in.
CERTIFICATES = ("ssl.keystore.", "ssl.key.", "ssl.certificate.")
ACCESS = ("security.", "ssl.", "sasl.", "enable.ssl.", "config.providers")
HARMLESS = (
    "ssl.protocol", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.truststore.password",
    "sasl.kerberos.", "sasl.oauthbearer.", "sasl.login.refresh.",
)  # fmt: skip
"""Access properties without an effect here: negotiated by both sides, or of an unsupported mechanism or store."""

LOGIN_MODULES = {
    Mechanism.PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    Mechanism.SCRAM_256: "org.apache.kafka.common.security.scram.ScramLoginModule",
    Mechanism.SCRAM_512: "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s";]+'
_LOGIN = re.compile(rf"\s*(?P<module>[\w.]+)\s+\w+(?P<options>(?:\s+\w+\s*=\s*(?:{_VALUE}))*)\s*;\s*")
_OPTION = re.compile(rf"(\w+)\s*=\s*({_VALUE})")

E = TypeVar("E", bound=StrEnum)


def read_client_properties(path: Path, bootstrap: str | None = None) -> Access:
    """What the file says; `bootstrap` is for files that name no servers, and wins over those that do."""
    properties = _Properties(path)
    servers = bootstrap or properties.get(BOOTSTRAP)
    if servers is None:
        raise UsageError(f"{path} names no servers: add bootstrap.servers=host:port")
    mechanism = properties.choice(MECHANISM, Mechanism)
    username, password = properties.credentials(mechanism)
    access = Access(
        bootstrap=servers,
        protocol=properties.choice(PROTOCOL, SecurityProtocol) or SecurityProtocol.PLAINTEXT,
        mechanism=mechanism,
        username=username,
        password=password,
        ca=properties.authorities(),
    )
    _ = access.addresses  # what is no list of servers is refused here
    return access


def ignored_properties(path: Path) -> list[str]:
    """Names in the file that have no effect on how Lockstep gets in, and so have none at all."""
    return _Properties(path).ignored


def client_properties(access: Access) -> str:
    """The same the other way round, but for the servers: a file for Java clients. It holds the password."""
    properties = {"security.protocol": access.protocol.value}
    if access.ca is not None:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(access.ca)}
    if access.login is not None:
        mechanism, username, password = access.login
        login = f'{LOGIN_MODULES[mechanism]} required username="{_escaped(username)}" password="{_escaped(password)}";'
        properties |= {"sasl.mechanism": mechanism.value, "sasl.jaas.config": login}
    return javaproperties.dumps(properties, timestamp=None)


class _Properties:
    """The file's properties; messages name properties and never show values that may be secret."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with path.open(encoding="utf-8") as file:
                self._values = javaproperties.load(file)
        except (OSError, ValueError) as error:
            raise UsageError(f"client properties cannot be read from {path}: {type(error).__name__}") from error
        others = sorted(name for name, value in self._values.items() if value and name not in UNDERSTOOD)
        self.ignored = [name for name in others if name.startswith(HARMLESS) or not name.startswith(ACCESS)]
        self._require_supported([name for name in others if name not in self.ignored])

    def _require_supported(self, names: list[str]) -> None:
        """Refuse properties that would change identity or connection and that Lockstep does not support."""
        if certificates := [name for name in names if name.startswith(CERTIFICATES)]:
            raise UsageError(
                f"{self._path}: client certificates (mTLS) are not supported yet, so {', '.join(certificates)} cannot "
                "be used: give the properties of a user who logs in with SASL"
            )
        if names:
            raise UsageError(
                f"{self._path}: {', '.join(names)} would change how Lockstep connects or authenticates, and is not "
                f"supported; of such properties Lockstep understands {', '.join(UNDERSTOOD)}"
            )
        if self._values.get(NAME_CHECK[0], "https").strip().lower() != "https":
            raise UsageError(
                f"{self._path}: whether a certificate names its host is always checked: leave out {NAME_CHECK[0]}, or "
                "set it to https"
            )

    def get(self, names: tuple[str, ...]) -> str | None:
        """The value under any of its names, of which the file may use one."""
        given = [name for name in names if self._values.get(name)]
        if len(given) > 1:
            raise UsageError(f"{self._path} has both {' and '.join(given)}: keep one")
        return self._values[given[0]].strip() if given else None

    def choice(self, names: tuple[str, ...], kind: type[E]) -> E | None:
        value = self.get(names)
        if value is None:
            return None
        try:
            return kind(value.upper())
        except ValueError:
            raise UsageError(f"{self._path}: {names[0]} is one of {', '.join(kind)}, not {value!r}") from None

    def credentials(self, mechanism: Mechanism | None) -> tuple[str | None, str | None]:
        login = self.get(JAAS)
        if login is None:
            return self.get(USERNAME), self.get(PASSWORD)
        if mechanism is None:
            raise UsageError(f"{self._path} has sasl.jaas.config and no sasl.mechanism: add it")
        found = _LOGIN.fullmatch(login)
        if found is None or found["module"] != LOGIN_MODULES[mechanism]:
            raise UsageError(
                f"{self._path}: sasl.jaas.config for {mechanism} reads "
                f'{LOGIN_MODULES[mechanism]} required username="..." password="...";'
            )
        options = {name: _unquoted(value) for name, value in _OPTION.findall(found["options"])}
        return options.get("username"), options.get("password")

    def authorities(self) -> Path | None:
        location = self.get(AUTHORITIES)
        if location is None:
            return None
        if "ssl.ca.location" not in self._values and (self.get(AUTHORITIES_TYPE) or "JKS").upper() != "PEM":
            raise UsageError(f"{self._path}: only a PEM trust store can be read: set ssl.truststore.type=PEM")
        if not Path(location).is_file():
            raise UsageError(f"{self._path}: there is no file {location} with certificate authorities")
        return Path(location)


def _escaped(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", value)


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
