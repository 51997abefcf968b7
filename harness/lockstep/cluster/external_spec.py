"""A cluster that Lockstep does not run: the address that the user gives, and the description that its brokers give."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lockstep.clients.access import Access
from lockstep.clients.properties import ignored_properties, read_client_properties
from lockstep.errors import UsageError


class ExternalSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Where a cluster is and how to get in, as its user says. Secrets stay in the user's file."""

    bootstrap_servers: str | None = None
    """Those of the file if not given."""
    client_config: str | None = None
    """A file of client properties."""

    def __post_init__(self) -> None:
        if self.bootstrap_servers is None and self.client_config is None:
            raise UsageError(
                "where is the external cluster? Give --bootstrap-servers host:port, or a --client-config that says so"
            )

    def access(self) -> Access:
        if self.client_config is not None:
            return read_client_properties(Path(self.client_config), self.bootstrap_servers)
        assert self.bootstrap_servers is not None
        access = Access(bootstrap=self.bootstrap_servers)
        _ = access.addresses  # what is no list of servers is refused here
        return access

    def ignored(self) -> list[str]:
        """What the file says that is no matter of access, and so has no effect here."""
        return [] if self.client_config is None else ignored_properties(Path(self.client_config))


class External(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster as it was found, for `run.json`: what it said of itself and what we said, but no password."""

    bootstrap_servers: str
    client_config: str | None
    protocol: str
    username: str | None
    cluster_id: str
    brokers: dict[int, str]
    """Where each broker says that clients find it."""
    features: dict[str, int]
    """Feature levels that are in force; none in a ZooKeeper cluster."""
    overrides: dict[str, str] = {}
    """The cluster's default topic configs on which guarantees depend, as far as its brokers reveal them."""

    def in_words(self) -> str:
        brokers = "broker" if len(self.brokers) == 1 else "brokers"
        return f"{brokers} {', '.join(map(str, self.brokers))} of the cluster at {self.bootstrap_servers}"

    def arguments(self) -> list[str]:
        """The command-line options that lead to it again."""
        config = [] if self.client_config is None else ["--client-config", self.client_config]
        return ["--bootstrap-servers", self.bootstrap_servers, *config]
