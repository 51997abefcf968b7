"""One corrupt byte of a record on disk: of a follower, which truncates there and fetches anew, or of a leader."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.cluster.storage.segments import RECORDS_FROM, Batch, recovery_points
from lockstep.errors import ClusterError, FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.log_directories import log_of
from lockstep.faults.support.membership import missed, returned
from lockstep.faults.support.node_log import Words
from lockstep.faults.support.roles import node_of
from lockstep.history.lines import CRASHED, LOSSY
from lockstep.plan.targets import FollowerOf, LeaderOf
from lockstep.recovery.undo import RestoreByte, relative
from lockstep.wait import wait_until

CAUGHT_UP_S = 60.0
FLIPPED = 0x01


class _Corruption(ABC):
    """The last batch that is there when the fault is made, and the first byte of its records.

    Proven by the file: what is there does not fit its checksum any more, and in the end it does.
    """

    def __init__(self, cluster: Cluster, target: LeaderOf | FollowerOf) -> None:
        self._cluster = cluster
        self._target = target
        self._node: Node = node_of(cluster, target)
        self._log = log_of(cluster, self._node, self._partition)
        self._batch = self._last_batch()
        self._position = self._batch.position + RECORDS_FROM
        original = self._byte()
        self._byte_undo = RestoreByte(
            path=relative(self._batch.segment, cluster.ledger),
            position=self._position,
            original=original,
            changed=original ^ FLIPPED,
        )
        self.undo = (self._byte_undo,)

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()} already")
        identity = self._node.identity
        self._make_ready()
        if self._batch not in self._log.batches() or not self._batch.intact():
            raise FaultError(f"the log of {self._partition} on {self._node.name} is not what it was a moment ago")
        with self._batch.segment.open("r+b") as file:
            file.seek(self._position)
            file.write(bytes([self._byte_undo.changed]))
        return {
            "node": identity,
            "segment": self._byte_undo.path,
            "position": self._position,
            "original_byte": self._byte_undo.original,
            "offset": self._batch.base_offset,
        }

    def bit(self) -> Proof:
        if self._batch.intact():
            raise FaultError(f"the batch at {self._batch.base_offset} of {self._partition} still fits its checksum")
        return {"partition": self._partition, "checksum": "wrong"}

    @abstractmethod
    def heal(self) -> Proof: ...

    @abstractmethod
    def _make_ready(self) -> None:
        """Bring the broker into the state in which the byte is changed."""

    def _restore(self) -> None:
        self._byte_undo.apply(self._cluster.ledger.path.parent)

    def _mended(self) -> Proof:
        """Proof that the file is right again: the byte is restored, or the log was truncated there and fetched anew."""
        batch = next((b for b in self._log.batches() if b.base_offset >= self._batch.base_offset), None)
        if batch is not None and not batch.intact():
            raise FaultError(f"the log of {self._partition} on {self._node.name} is not whole again")
        return {"checksum": "right"}

    @property
    def _partition(self) -> str:
        return f"{self._target.topic}-{self._target.partition}"

    def _last_batch(self) -> Batch:
        batches = list(self._log.batches())
        if not batches:
            raise FaultError(f"{self._partition} is empty on {self._node.name}: there is no byte to change")
        return batches[-1]

    def _byte(self) -> int:
        with self._batch.segment.open("rb") as file:
            file.seek(self._position)
            return file.read(1)[0]


@fault(
    name="corrupt-segment",
    summary="SIGKILL a follower and change a byte of its log; healed by starting it: it finds it and fetches it anew",
    targets=(FollowerOf,),
    takes=1,
)
class CorruptFollower(_Corruption):
    """After a crash a broker recovers its log from the recovery point on, and truncates it at a wrong CRC."""

    def inject(self) -> Proof:
        return super().inject() | {CRASHED: [self._node.name], LOSSY: [self._node.name]}

    def bit(self) -> Proof:
        return super().bit() | missed(self._cluster, self._node)

    def heal(self) -> Proof:
        words = Words(self._node)
        will_be_read = recovery_points(self._log.directory.parent).get(self._log.name, 0) <= self._batch.base_offset
        if not will_be_read:
            self._restore()  # recovery skips it: only a fetch would read it
        if self._node.state() is NodeState.STOPPED:
            self._node.start()
        back = returned(self._cluster, self._node)
        found = words.find(r"Found invalid messages in log segment \S+ at byte offset (\d+)")
        wait_until(
            self._has_all,
            timeout_s=CAUGHT_UP_S,
            what=f"{self._node.name} to catch up",
            retry_on=(OSError, ClusterError),
        )
        return back | self._mended() | ({"broker_found_it_at": int(found[0])} if found else {"restored": True})

    def _make_ready(self) -> None:
        self._node.kill()

    def _has_all(self) -> bool:
        end = ask_log_end(self._node.direct, self._target.topic, self._target.partition, access=self._cluster.access())
        return end >= self._batch.next_offset


@fault(
    name="corrupt-leader-segment",
    summary="Change a byte of a leader's log while it serves it; healed by changing it back",
    targets=(LeaderOf,),
    beyond="the only broker that serves a record serves it with a wrong byte",
)
class CorruptLeader(_Corruption):
    """A leader sends batches from the file without checking their CRC: consumers and followers must."""

    def heal(self) -> Proof:
        began_ns = time.monotonic_ns()
        self._restore()
        return self._mended() | {"restored": True, "mended_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000}

    def _make_ready(self) -> None:
        """The leader keeps running."""
