"""The interface of a node, the same for every backend."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Protocol

from lockstep.network.topology import Address
from lockstep.spec.cluster import NodeSpec


class NodeState(StrEnum):
    """What the operating system (or the container engine) says of a node, not what we think we did to it."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"


class Node(Protocol):
    """One node of a running cluster. `start` begins; readiness is observed by the cluster, never assumed."""

    spec: NodeSpec
    directory: Path
    """Its configuration and logs: `nodes/<name>` of the run directory."""

    direct: Address
    """Where the harness itself asks this node, past all links; the CLIENT listener of a broker, else CONTROLLER."""

    incarnation: int
    """How often it has been started."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str:
        """Which process or container it is now, in words."""
        ...

    def state(self) -> NodeState: ...

    def memory_mb(self) -> int | None:
        """Resident memory of its process; None when it does not run."""
        ...

    def start(self) -> None: ...

    def stop(self) -> None:
        """Ask it to shut down (SIGTERM: controlled shutdown) and wait until it is gone."""
        ...

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...
