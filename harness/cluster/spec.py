"""What a cluster should be: one value that every backend turns into running nodes."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from harness.errors import UsageError

DEFAULT_KAFKA = "4.3.1"
FIRST_CONTROLLER_ID = 100


class Mode(StrEnum):
    """How a cluster keeps its metadata."""

    KRAFT = "kraft"


class NodeRole(StrEnum):
    """What one node does."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Listener(StrEnum):
    """The listeners every cluster has, and the kind of traffic each carries."""

    CLIENT = "CLIENT"
    CLIENT_B = "CLIENT_B"  # a second client side, so that some clients can be cut off while others are not
    REPL = "REPL"
    CONTROLLER = "CONTROLLER"


CLIENT_LISTENERS = (Listener.CLIENT, Listener.CLIENT_B)

LISTENERS_OF: dict[NodeRole, tuple[Listener, ...]] = {
    NodeRole.BROKER: (Listener.CLIENT, Listener.CLIENT_B, Listener.REPL),
    NodeRole.CONTROLLER: (Listener.CONTROLLER,),
}


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One node by the name it has everywhere: in logs, links, directories and reports."""

    id: int
    role: NodeRole

    @property
    def name(self) -> str:
        return f"{self.role}-{self.id}"

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return LISTENERS_OF[self.role]

    @property
    def direct_listener(self) -> Listener:
        """The listener on which the harness itself asks this node, past all links."""
        return Listener.CLIENT if self.role is NodeRole.BROKER else Listener.CONTROLLER


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster by version, shape and configuration; serialised into `run.json` as it is."""

    kafka: str = DEFAULT_KAFKA
    mode: Mode = Mode.KRAFT
    brokers: int = 3
    controllers: int = 1
    overrides: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= 5:
            raise UsageError(f"a cluster has 1 to 5 brokers, not {self.brokers}")
        if self.controllers not in (1, 3):
            raise UsageError(f"a KRaft quorum has 1 or 3 controllers, not {self.controllers}")

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        """Controllers first: brokers register with them."""
        controllers = (
            NodeSpec(id=FIRST_CONTROLLER_ID + index, role=NodeRole.CONTROLLER) for index in range(self.controllers)
        )
        brokers = (NodeSpec(id=1 + index, role=NodeRole.BROKER) for index in range(self.brokers))
        return (*controllers, *brokers)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes if node.role is NodeRole.BROKER)
