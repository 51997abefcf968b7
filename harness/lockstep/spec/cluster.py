"""What a cluster should be: one value that every backend turns into running nodes."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

from lockstep.errors import UsageError

DEFAULT_KAFKA = "4.3.1"
DEFAULT_ZK_KAFKA = "3.9.2"
FIRST_CONTROLLER_ID = 100


class Mode(StrEnum):
    """How a cluster keeps its metadata."""

    ZK = "zk"
    KRAFT = "kraft"  # separate controllers
    COMBINED = "kraft-combined"


class NodeRole(StrEnum):
    """The role of a node."""

    BROKER = "broker"
    CONTROLLER = "controller"
    COMBINED = "combined"
    ZOOKEEPER = "zookeeper"

    @property
    def in_words(self) -> str:
        words = {NodeRole.COMBINED: "combined node", NodeRole.ZOOKEEPER: "ZooKeeper server"}
        return words.get(self, self.value)


class Listener(StrEnum):
    """Where nodes listen, and the kind of traffic each listener carries."""

    CLIENT = "CLIENT"
    CLIENT_B = "CLIENT_B"  # a second client side, so that some clients can be cut off while others are not
    REPL = "REPL"
    CONTROLLER = "CONTROLLER"  # a KRaft controller's: the quorum, registrations, heartbeats, metadata
    CONTROL = "CONTROL"  # a ZooKeeper-mode broker's: LeaderAndIsr and the like, so that REPL is replication alone
    ZOOKEEPER = "ZOOKEEPER"
    ZK_QUORUM = "ZK_QUORUM"
    ZK_ELECTION = "ZK_ELECTION"


CLIENT_LISTENERS = (Listener.CLIENT, Listener.CLIENT_B)
BROKER_LISTENERS = (*CLIENT_LISTENERS, Listener.REPL)
ZOOKEEPER_LISTENERS = (Listener.ZOOKEEPER, Listener.ZK_QUORUM, Listener.ZK_ELECTION)


BROKER_USER, HARNESS_USER = "broker", "lockstep"
OWN_USERS = (BROKER_USER, HARNESS_USER)
"""Super users: the nodes among each other, and the harness with its workloads."""


class Mechanism(StrEnum):
    """The SASL mechanism of clients and brokers."""

    PLAIN = "PLAIN"
    SCRAM_256 = "SCRAM-SHA-256"
    SCRAM_512 = "SCRAM-SHA-512"


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """TLS, SASL and users of a cluster. Passwords and keys are made for each cluster and are no part of its spec."""

    tls: bool = False
    sasl: Mechanism | None = None
    """With a mechanism, the authorizer is on and denies every operation that no ACL allows."""
    users: tuple[str, ...] = ()
    """Users without any right, beside those that the harness needs for itself."""

    def __post_init__(self) -> None:
        for user in self.users:
            if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", user):
                raise UsageError(f"{user!r} is not a user name: use up to 31 lower-case letters, digits and dashes")
            if user in OWN_USERS:
                raise UsageError(f"user {user} is there anyway, with every right: choose another name")
        if self.users and self.sasl is None:
            raise UsageError("users need a SASL mechanism: without one every client is User:ANONYMOUS")

    @property
    def protocol(self) -> str:
        """Kafka's name for it, as in `security.protocol`."""
        sasl, wire = self.sasl is not None, "SSL" if self.tls else "PLAINTEXT"
        return f"SASL_{wire}" if sasl else wire


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One node by the name it has everywhere: in logs, links, directories and reports."""

    id: int
    role: NodeRole
    kafka: str
    """The version it runs; ZooKeeper servers run the one that this Kafka brings."""
    listeners: tuple[Listener, ...]
    rack: str | None = None

    @property
    def name(self) -> str:
        return f"{self.role}-{self.id}"

    @property
    def octet(self) -> int:
        """Its number in addresses, unique in the cluster; ZooKeeper servers are counted from 1 as brokers are."""
        return 200 + self.id if self.role is NodeRole.ZOOKEEPER else self.id

    @property
    def is_broker(self) -> bool:
        return self.role in (NodeRole.BROKER, NodeRole.COMBINED)

    @property
    def is_voter(self) -> bool:
        """Whether it is a member of the KRaft quorum."""
        return self.role in (NodeRole.CONTROLLER, NodeRole.COMBINED)

    @property
    def direct_listener(self) -> Listener:
        """The listener on which the harness itself asks this node, past all links."""
        return self.listeners[0]


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster by version, shape and configuration; serialised into `run.json` as it is."""

    kafka: str = DEFAULT_KAFKA
    mode: Mode = Mode.KRAFT
    brokers: int = 3
    controllers: int | None = None
    """Separate KRaft controllers: 1 unless said otherwise. In ZooKeeper mode they are those to migrate to, and wait."""
    zookeepers: int = 1
    racks: tuple[str, ...] = ()
    """Brokers are spread over these in turn."""
    log_dirs: int = 1
    """How many log directories each broker has: only one of several can fail while the broker goes on."""
    overrides: dict[str, str] = {}
    node_overrides: dict[str, dict[str, str]] = {}
    """By node name, on top of `overrides`."""
    node_kafka: dict[str, str] = {}
    """By node name: which version it runs, where that is not `kafka`."""
    features: dict[str, int] = {}
    """Feature levels at format time, such as `eligible.leader.replicas.version` or `transaction.version`."""
    kafka_dir: str | None = None
    """A local Kafka build to run instead of the locked jars; `kafka` then is the version it says it is."""
    security: Security = Security()

    @classmethod
    def of(cls, **fields: Any) -> ClusterSpec:
        """A spec from plain values (`mode="zk"`), as scenarios and tests write them; ZooKeeper mode gets its Kafka."""
        if unknown := fields.keys() - set(cls.__struct_fields__):
            raise UsageError(
                f"a cluster has no {', '.join(sorted(unknown))}: it has {', '.join(cls.__struct_fields__)}"
            )
        if fields.get("mode") == Mode.ZK and "kafka" not in fields:
            fields["kafka"] = DEFAULT_ZK_KAFKA
        try:
            return msgspec.convert(fields, cls)
        except msgspec.ValidationError as error:
            raise UsageError(f"this is no spec of a cluster: {error}") from None

    def __post_init__(self) -> None:
        self._require_shape()
        self._require_versions()
        self._require_no_secrets()
        names = {node.name for node in self.nodes}
        for name in (*self.node_overrides, *self.node_kafka):
            if name not in names:
                raise UsageError(f"there is no node {name} in this cluster: it has {', '.join(sorted(names))}")

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        """In start order: ZooKeeper servers and controllers before the brokers that register there."""
        return (*self._zookeepers(), *self._controllers(), *self._brokers())

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes if node.is_broker)

    @property
    def versions(self) -> tuple[str, ...]:
        """Every Kafka version that some node runs."""
        return tuple(sorted({node.kafka for node in self.nodes}))

    @property
    def oldest(self) -> str:
        """The version that all brokers and controllers understand: it says what they are formatted and talk with."""
        return min((node.kafka for node in self.nodes if node.role is not NodeRole.ZOOKEEPER), key=release)

    def without_gone(self, **changes: Any) -> ClusterSpec:
        """The same with changes, and without what was said of nodes that it then no longer has."""
        bare: ClusterSpec = msgspec.structs.replace(self, node_overrides={}, node_kafka={}, **changes)
        names = {node.name for node in bare.nodes}
        return msgspec.structs.replace(
            bare,
            node_overrides={name: values for name, values in self.node_overrides.items() if name in names},
            node_kafka={name: version for name, version in self.node_kafka.items() if name in names},
        )

    def in_words(self) -> str:
        """As a person would say it."""
        roles = [node.role for node in self.nodes]
        counts = [(roles.count(role), role.in_words) for role in NodeRole if role in roles]
        nodes = " and ".join(f"{count} {name}{'s' if count > 1 else ''}" for count, name in counts)
        security = "" if self.security == Security() else f", {self.security.protocol}"
        return f"{nodes} (Kafka {' and '.join(self.versions)}, {self.mode}{security})"

    def node(self, name: str) -> NodeSpec:
        return next(node for node in self.nodes if node.name == name)

    def _zookeepers(self) -> tuple[NodeSpec, ...]:
        if self.mode is not Mode.ZK:
            return ()
        listeners = ZOOKEEPER_LISTENERS if self.zookeepers > 1 else (Listener.ZOOKEEPER,)
        return self._made(NodeRole.ZOOKEEPER, range(1, 1 + self.zookeepers), listeners)

    def _controllers(self) -> tuple[NodeSpec, ...]:
        count = self.controllers if self.controllers is not None else int(self.mode is Mode.KRAFT)
        ids = range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + count)
        return self._made(NodeRole.CONTROLLER, ids, (Listener.CONTROLLER,))

    def _brokers(self) -> tuple[NodeSpec, ...]:
        role, more = {
            Mode.ZK: (NodeRole.BROKER, (Listener.CONTROL,)),
            Mode.KRAFT: (NodeRole.BROKER, ()),
            Mode.COMBINED: (NodeRole.COMBINED, (Listener.CONTROLLER,)),
        }[self.mode]
        return self._made(role, range(1, 1 + self.brokers), (*BROKER_LISTENERS, *more), self.racks)

    def _made(
        self, role: NodeRole, ids: range, listeners: tuple[Listener, ...], racks: tuple[str, ...] = ()
    ) -> tuple[NodeSpec, ...]:
        return tuple(
            NodeSpec(
                id=id_,
                role=role,
                kafka=self.node_kafka.get(f"{role}-{id_}", self.kafka),
                listeners=listeners,
                rack=racks[index % len(racks)] if racks else None,
            )
            for index, id_ in enumerate(ids)
        )

    def _require_shape(self) -> None:
        if not 1 <= self.brokers <= 5:
            raise UsageError(f"a cluster has 1 to 5 brokers, not {self.brokers}")
        if not 1 <= self.log_dirs <= 4:
            raise UsageError(f"a broker has 1 to 4 log directories, not {self.log_dirs}")
        if self.zookeepers not in (1, 3):
            raise UsageError(f"a ZooKeeper ensemble has 1 or 3 servers, not {self.zookeepers}")
        if self.mode is Mode.COMBINED:
            if self.controllers not in (None, 0):
                raise UsageError("a kraft-combined cluster has no separate controllers: its brokers are the quorum")
            if self.brokers % 2 == 0:
                raise UsageError(f"a kraft-combined cluster has 1, 3 or 5 nodes, not {self.brokers}: all of them vote")
        if self.mode is Mode.KRAFT and self.controllers not in (None, 1, 3):
            raise UsageError(f"a KRaft quorum has 1 or 3 controllers, not {self.controllers}")
        if self.mode is Mode.ZK and self.controllers not in (None, 0, 1, 3):
            raise UsageError(f"a ZooKeeper cluster migrates to 1 or 3 controllers, not {self.controllers}")

    def _require_no_secrets(self) -> None:
        """A spec is kept with the run, for everybody to read."""
        for name in (*self.overrides, *(name for values in self.node_overrides.values() for name in values)):
            if name.endswith((".password", ".jaas.config", ".key", ".secret")):
                raise UsageError(
                    f"{name} is a secret, and settings are stored with the run: "
                    "use --tls and --sasl, which make their own"
                )

    def _require_versions(self) -> None:
        for version in (self.kafka, *self.node_kafka.values()):
            if self.mode is Mode.ZK and release(version) >= (4,):
                raise UsageError(
                    f"Kafka {version} has no ZooKeeper mode, which ended with 3.9: use --kafka 3.9.2, or --mode kraft"
                )
            if self.mode is not Mode.ZK and self.log_dirs > 1 and release(version) < (3, 7):
                raise UsageError(
                    f"Kafka {version} has brokers with several log directories in ZooKeeper mode only: use --mode zk, "
                    "or --kafka 3.9.2 and newer"
                )
        if self.mode is Mode.ZK and self.features:
            raise UsageError("feature levels are set when KRaft storage is formatted: a ZooKeeper cluster has none")


def release(version: str) -> tuple[int, ...]:
    """A version as numbers that compare; `4.4.0-SNAPSHOT` counts as 4.4.0."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0]))
