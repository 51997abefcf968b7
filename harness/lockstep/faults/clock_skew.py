"""A broker whose clock jumps: the time of day, not the time that passes."""

from __future__ import annotations

import datetime
import socket
import struct
import time
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.cluster.process import ProcessNode
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.membership import returned
from lockstep.faults.support.node_log import Words
from lockstep.faults.support.roles import node_of
from lockstep.plan.targets import ActiveController, FollowerOf, LeaderOf, OneBroker, Target
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until

LIBRARY = "libfaketimeMT.so.1"
PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")
CLOCK = "clock"
SAYS_S = 30.0
SLACK_S = 1.0
TOO_LONG = struct.pack(">i", 2**31 - 1)
"""A request of two gigabytes: every broker refuses it at once, and says so in its log."""


class ClockSkewSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How far it jumps."""

    seconds: Annotated[int, msgspec.Meta(ge=-86_400, le=86_400)] = 600
    """Ahead, or back if negative. An hour back, and brokers refuse what clients date with their own clocks."""

    def __post_init__(self) -> None:
        if abs(self.seconds) < 10:
            raise ValueError("a jump of less than 10 seconds cannot be told from a slow machine")


@cache
def _library() -> Path | None:
    found = [file for place in PLACES for file in Path("/").glob(f"{place[1:]}/{LIBRARY}")]
    return found[0] if found else None


def _missing(_: ClusterSpec, __: str) -> str | None:
    return None if _library() else "libfaketime is not installed: apt-get install libfaketime"


@fault(
    name="clock-skew",
    summary="Have the clock of a broker or controller jump (after a restart with libfaketime); healed by a jump back",
    targets=(LeaderOf, FollowerOf, OneBroker, ActiveController),
    backends=("process",),
    missing=_missing,
    settings=ClockSkewSettings,
    takes=1,
)
class ClockSkew:
    """Proven by the times of what the node writes into its own log."""

    def __init__(self, cluster: Cluster, target: Target, settings: ClockSkewSettings) -> None:
        node = node_of(cluster, target)
        assert isinstance(node, ProcessNode), "refused on other backends"
        self._cluster = cluster
        self._node = node
        self._seconds = settings.seconds
        self._clock = node.directory / CLOCK

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()} already")
        self._set(0)
        self._node.environment = {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": "1",  # seconds until it looks at the file again; every time would be too slow
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # time-outs and heartbeats would stand still
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # with it a JVM waits for too short or too long, on a right clock too
        }
        self._node.stop()
        self._node.start()
        returned(self._cluster, self._node)
        self._set(self._seconds)
        return {"node": self._node.identity, "seconds": self._seconds}

    def bit(self) -> Proof:
        return {"clock_off_by_s": self._off_by(self._seconds)}

    def heal(self) -> Proof:
        """The clock is right from here on; the library goes with the process, whenever that ends."""
        self._set(0)
        self._node.environment = {}
        if self._node.state() is NodeState.STOPPED:
            self._node.start()
        return returned(self._cluster, self._node) | {"clock_off_by_s": self._off_by(0)}

    def _set(self, seconds: int) -> None:
        """Replaced as a whole, so that the node never reads half of it."""
        new = self._clock.with_suffix(".new")
        new.write_text(f"{seconds:+d}s\n")
        new.rename(self._clock)

    def _off_by(self, seconds: int) -> float:
        """Wait until the node dates what it says as a clock would that is off by this much; tells how far it is off."""

        def dated() -> float | None:
            words = Words(self._node)
            before = time.time()
            _provoke(self._node)
            said = wait_until(lambda: words.find(r"(?m)^(\S+Z) "), timeout_s=SAYS_S, what=f"{self._node.name} to log")
            after = time.time()
            at = datetime.datetime.fromisoformat(said[-1]).timestamp()
            fits = before - SLACK_S <= at - seconds <= after + SLACK_S
            return at - (before + after) / 2 if fits else None

        off = wait_until(
            lambda: None if (found := dated()) is None else (found,),
            timeout_s=SAYS_S,
            what=f"the clock of {self._node.name} to be {seconds} s off",
            retry_on=(OSError,),
        )
        assert off is not None
        return round(off[0], 1)


def _provoke(node: ProcessNode) -> None:
    """Make a node write a line into its log, without an effect on other clients."""
    with socket.create_connection((node.direct.host, node.direct.port), timeout=5) as connection:
        connection.sendall(TOO_LONG)
        connection.recv(1)
