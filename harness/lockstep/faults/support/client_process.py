"""Clients of a fault's own, each in a process that can be killed and paused. The workload's are threads of ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lockstep.clients.standalone import DUTY, Duty, Join, Transact, Write
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.recovery.os_process import OsProcess
from lockstep.wait import wait_until

EVENT_S = 60.0

Event = Mapping[str, Any]


class ClientProcess:
    """One such process. The ledger names it, so that it is found and ended whatever becomes of us."""

    def __init__(self, cluster: Cluster, name: str, task: Write | Transact | Join) -> None:
        directory = cluster.directory / "clients"
        directory.mkdir(exist_ok=True)
        self.name = name
        self._told: Path = directory / f"{name}.jsonl"
        self._process = OsProcess.launch(
            cluster.ledger,
            name=name,
            argv=[
                sys.executable,
                "-P",
                "-m",
                "lockstep.clients.standalone",
            ],  # -P: whatever lies around here is not ours
            log=self._told,
            env={DUTY: Duty(name=name, access=cluster.access(), task=task).encode()},
        )

    @property
    def identity(self) -> str:
        return f"{self.name} ({self._process.identity})"

    def alive(self) -> bool:
        return self._process.alive()

    def pause(self) -> None:
        self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def kill(self) -> None:
        """Also when it is paused, or gone."""
        self._process.kill()

    def events(self, *names: str) -> list[Event]:
        """What it has told so far, of these kinds; its own complaints among it are no events."""
        *lines, _unfinished = self._told.read_bytes().split(b"\n")
        told = [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]
        return [event for event in told if event["event"] in names]

    def wait_event(self, name: str, what: str, *, after: int = 0) -> Event:
        """The first event of a kind beyond those that were there already; one that died will not tell any more."""

        def told() -> Event | None:
            events = self.events(name)
            if len(events) > after:
                return events[after]
            if not self._process.alive():
                raise FaultError(f"{self.identity} is gone, and it was to {what}: see {self._told}")
            return None

        event = wait_until(told, timeout_s=EVENT_S, what=f"{self.name} to {what}", interval_s=0.05)
        assert event is not None
        return event
