"""A disk without space left, for one broker: the kernel refuses to let its files grow."""

from __future__ import annotations

import resource
import sys
import time
from typing import Annotated

import msgspec

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.cluster.process import ProcessNode
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.log_directories import log_of, offline, start_over
from lockstep.faults.support.membership import missed
from lockstep.faults.support.roles import node_of
from lockstep.history.lines import CRASHED
from lockstep.plan.targets import FollowerOf, LeaderOf
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until

BIT_S = 30.0


class DiskFullSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How full it is."""

    left_kb: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    """By how much the partition's log can still grow."""


def _missing(_: ClusterSpec, __: str) -> str | None:
    return None if sys.platform == "linux" else "needs Linux, where the limits of a running process can be changed"


@fault(
    name="disk-full",
    summary="Let a broker's log grow no more (a file-size limit); healed by lifting the limit and a restart",
    targets=(LeaderOf, FollowerOf),
    backends=("process",),
    missing=_missing,
    settings=DiskFullSettings,
    takes=1,
)
class DiskFull:
    """Proven by the broker, which takes its log directory offline or, having no other, exits.

    Needs a producer: a log that does not grow needs no space. As on a full disk, the broker cannot log the failure.
    """

    def __init__(self, cluster: Cluster, target: LeaderOf | FollowerOf, settings: DiskFullSettings) -> None:
        node = node_of(cluster, target)
        assert isinstance(node, ProcessNode), "refused on other backends"
        self._cluster = cluster
        self._node = node
        self._partition = f"{target.topic}-{target.partition}"
        self._left_bytes = settings.left_kb * 1000
        self._before: tuple[int, int] | None = None
        self._since_ns = 0

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()} already")
        identity = self._node.identity
        size = log_of(self._cluster, self._node, self._partition).segments[-1].stat().st_size
        self._before = resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE)
        self._since_ns = time.monotonic_ns()
        # The soft limit alone, so that it may be lifted without root.
        resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE, (size + self._left_bytes, self._before[1]))
        return {"node": identity, "partition": self._partition, "segment_bytes": size, "left_bytes": self._left_bytes}

    def bit(self) -> Proof:
        hit = wait_until(
            self._hit,
            timeout_s=BIT_S,
            what=f"{self._node.name} to need more space",
            interval_s=0.1,
            retry_on=(OSError,),
        )
        after = {"hit_after_ms": (time.monotonic_ns() - self._since_ns) // 1_000_000}
        return hit | after | (missed(self._cluster, self._node) if "exit_code" in hit else {})

    def heal(self) -> Proof:
        if self._before is not None and self._node.state() is not NodeState.STOPPED:
            resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE, self._before)
        proof = start_over(self._cluster, self._node)
        soft, _ = resource.prlimit(self._node.pid, resource.RLIMIT_FSIZE)
        return proof | {"file_size_limit": "none" if soft == resource.RLIM_INFINITY else soft}

    def _hit(self) -> Proof:
        """What became of the broker, as soon as it could not write any more."""
        if self._node.state() is NodeState.STOPPED:
            return {"exit_code": self._node.exit_code, CRASHED: [self._node.name]}
        directories = offline(self._cluster, self._node)
        return {"offline": directories} if directories else {}
