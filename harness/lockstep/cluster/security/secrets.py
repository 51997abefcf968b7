"""The secrets of one cluster: made for it, kept out of its run directory, and removed with it.

What a cluster leaves in its run directory may be read by anyone who gets the report. So passwords and keys live in a
private directory of their own, which nodes are told by name; the ledger names it too, and healing removes it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lockstep.clients.access import Access, SecurityProtocol
from lockstep.clients.properties import client_properties
from lockstep.cluster.distribution import ScramUser
from lockstep.cluster.security import properties
from lockstep.cluster.security.certificates import issue
from lockstep.cluster.security.properties import AUTHORITY, mechanism_of
from lockstep.cluster.security.scram import znode_credentials
from lockstep.errors import UsageError
from lockstep.host.disk import explained
from lockstep.host.state import state_dir
from lockstep.recovery.ledger import Entry, Ledger
from lockstep.spec.cluster import HARNESS_USER, OWN_USERS, ClusterSpec, Listener, Mechanism, NodeSpec, Security

KIND = "secrets"
LOOPBACK = "127.0.0.1"
"""Where the ports of containers are published: the harness asks every node there, clients only brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Passwords, keys and certificates of one cluster and its users; empty without security."""

    security: Security
    directory: Path
    """Private to this user: keys, certificates, logins. There is none for a cluster without security."""
    passwords: Mapping[str, str] = field(repr=False)

    @classmethod
    def make(cls, spec: ClusterSpec, hosts: Mapping[str, Iterable[str]], ledger: Ledger) -> Secrets:
        """New passwords and certificates; `hosts` are the names and addresses by which clients reach each node."""
        security = spec.security
        users = (*OWN_USERS, *security.users) if security.sasl else ()
        made = cls(
            security=security,
            directory=state_dir() / "secrets" / secrets.token_hex(8),
            passwords={user: secrets.token_urlsafe(24) for user in users},
        )
        if files := made._files(hosts):
            entry = ledger.intent(KIND, name=KIND, directory=str(made.directory))
            _write(made.directory, files)
            entry.effect()
        return made

    def node_properties(self, node: NodeSpec, inside: Path, *, zk_mode: bool) -> dict[str, str]:
        """What a node's properties say about security; `inside` is `directory` as the node sees it."""
        return properties.node_properties(self.security, node, inside, zk_mode=zk_mode)

    def scram_users(self) -> tuple[ScramUser, ...]:
        """The SCRAM users with which KRaft storage is formatted (KIP-900)."""
        if (mechanism := self._scram) is None:
            return ()
        return tuple(
            ScramUser(mechanism=mechanism.value, name=user, password=password)
            for user, password in self.passwords.items()
        )

    def znodes(self) -> tuple[tuple[str, bytes], ...]:
        """Path and content of what ZooKeeper must hold before the first broker starts."""
        if (mechanism := self._scram) is None:
            return ()
        return tuple(znode_credentials(user, password, mechanism) for user, password in self.passwords.items())

    def access(self, bootstrap: str, *, user: str = HARNESS_USER, listener: Listener = Listener.CLIENT) -> Access:
        """How a user reaches nodes on a listener."""
        if self.security.sasl and user not in self.passwords:
            raise UsageError(f"there is no user {user} in this cluster: it has {', '.join(self.passwords)}")
        return Access(
            bootstrap=bootstrap,
            protocol=SecurityProtocol(self.security.protocol),
            mechanism=mechanism_of(self.security, listener),
            username=user if self.security.sasl else None,
            password=self.passwords.get(user),
            ca=self.directory / AUTHORITY if self.security.tls else None,
        )

    def client_properties(self, user: str = HARNESS_USER) -> Path:
        """A file with all but the servers that Java clients and `read_client_properties` need; for work by hand."""
        return self.directory / f"{user}.properties"

    @property
    def _scram(self) -> Mechanism | None:
        return None if self.security.sasl is Mechanism.PLAIN else self.security.sasl

    def _files(self, hosts: Mapping[str, Iterable[str]]) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        if self.security.tls:
            authority, stores = issue({node: {*names, LOOPBACK} for node, names in hosts.items()})
            files |= {AUTHORITY: authority} | {properties.key_store(node): store for node, store in stores.items()}
        if self.security.sasl:
            for mechanism in {self.security.sasl, Mechanism.PLAIN}:
                files[properties.login_file(mechanism)] = properties.login(mechanism, self.passwords).encode()
        if self.security.protocol != SecurityProtocol.PLAINTEXT:
            for user in self.passwords or (HARNESS_USER,):
                files[self.client_properties(user).name] = client_properties(self.access("", user=user)).encode()
        return files


def heal_secrets(entry: Entry) -> list[str]:
    """Remove the secrets that an entry names, however far their making came."""
    directory = Path(entry.fields["directory"])
    found = directory.exists()
    if found:
        shutil.rmtree(directory)
    entry.healed(found=found)
    return [f"secrets ({directory})"] if found else []


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    with explained(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700)
        for name, content in files.items():
            (directory / name).touch(mode=0o600)
            (directory / name).write_bytes(content)
