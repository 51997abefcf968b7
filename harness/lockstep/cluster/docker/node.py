"""One node in a container of its own, inside its sidecar's network namespace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound
from docker.models.containers import Container

from lockstep.cluster.docker.engine import connect, engine_errors
from lockstep.cluster.docker.resources import CONFLICT
from lockstep.cluster.node import NodeState
from lockstep.network.topology import Address
from lockstep.spec.cluster import NodeSpec
from lockstep.wait import wait_until

STOP_S = 30.0
KILL_S = 10.0


class DockerNode:
    """One container, started again and again: it keeps its address, its links and its files."""

    def __init__(
        self,
        *,
        spec: NodeSpec,
        directory: Path,
        direct: Address,
        container: Container,
        may_start: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.directory = directory
        self.direct = direct
        self.incarnation = 0
        self._container = container
        self._may_start = may_start

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def identity(self) -> str:
        return f"container {self._container.short_id}"

    def state(self) -> NodeState:
        return state_of(self._container)

    def memory_mb(self) -> int | None:
        return memory_of(self._container)

    def start(self) -> None:
        self._may_start()
        self.incarnation += 1
        with engine_errors(f"starting {self.name}"):
            self._container.start()

    def stop(self) -> None:
        # Not the engine's own stop, which silently turns to SIGKILL: a clean shutdown must be told from a kill.
        self._end("SIGTERM", STOP_S)

    def kill(self) -> None:
        self._end("SIGKILL", KILL_S)

    def pause(self) -> None:
        with engine_errors(f"pausing {self.name}"):
            self._container.pause()

    def resume(self) -> None:
        with engine_errors(f"resuming {self.name}"):
            self._container.unpause()

    @property
    def container(self) -> Container:
        return self._container

    def _end(self, signal: str, timeout_s: float) -> None:
        with engine_errors(f"sending {signal} to {self.name}"):
            try:
                self._container.kill(signal)
            except APIError as error:
                if error.status_code != CONFLICT:  # it is not running any more
                    raise
        gone = f"{self.name} ({self.identity}) to exit"
        wait_until(lambda: self.state() is NodeState.STOPPED, timeout_s=timeout_s, what=gone)


def state_of(container: Container) -> NodeState:
    """What the engine says of a container; one that has been removed does not run."""
    with engine_errors(f"inspecting {container.name}"):
        try:
            container.reload()
        except NotFound:
            return NodeState.STOPPED
    state = container.attrs["State"]
    if not state["Running"]:
        return NodeState.STOPPED
    return NodeState.PAUSED if state["Paused"] else NodeState.RUNNING


def memory_of(container: Container) -> int | None:
    """The engine's own figure, page cache left out as `docker stats` does; None when it does not run."""
    if state_of(container) is NodeState.STOPPED:
        return None
    with engine_errors(f"asking how much memory {container.name} uses"):
        answer: Any = container.stats(stream=False)
    memory = answer["memory_stats"]
    return int(memory["usage"] - memory["stats"].get("inactive_file", 0)) // 1_000_000


def look_at(container_id: str) -> tuple[NodeState, str, int | None]:
    """State, identity and memory of a container that another process has made."""
    with closing(connect().client) as client, engine_errors(f"looking at container {container_id[:12]}"):
        try:
            container = client.containers.get(container_id)
        except NotFound:
            return NodeState.STOPPED, f"container {container_id[:12]}", None
        return state_of(container), f"container {container.short_id}", memory_of(container)
