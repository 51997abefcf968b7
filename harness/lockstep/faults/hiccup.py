"""A broker that does not answer for a moment, as in a long garbage collection, and is back before its session ends."""

from __future__ import annotations

import time

import msgspec

from lockstep.clients.wire.metadata import PartitionView
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.config import KRAFT, ZK_BROKER
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.membership import answers, returned
from lockstep.faults.support.roles import node_of
from lockstep.plan.targets import FollowerOf, LeaderOf, OneBroker, Target
from lockstep.spec.cluster import ClusterSpec, Mode

MS_MIN, MS_MAX = 100, 60_000
ANSWERS_S = 10.0


class HiccupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long it lasts."""

    ms: int = 700

    def __post_init__(self) -> None:
        if not MS_MIN <= self.ms <= MS_MAX:
            raise ValueError(f"a hiccup lasts from {MS_MIN} to {MS_MAX} ms, not {self.ms}")


@fault(
    name="hiccup",
    summary="SIGSTOP a broker for clearly less than its session, then SIGCONT",
    targets=(LeaderOf, FollowerOf, OneBroker),
    settings=HiccupSettings,
)
class Hiccup:
    """Proven by its silence while it lasted. Whether its session outlived it, as it should, is told: on a machine that
    is busy enough the rest of the session may pass before the broker's heartbeats are heard again.
    """

    def __init__(self, cluster: Cluster, target: Target, settings: HiccupSettings) -> None:
        self._cluster = cluster
        self._node: Node = node_of(cluster, target)
        self._ms = settings.ms
        self._session_ms = session_ms(cluster.spec)
        self._led: dict[tuple[str, int], int] = {}
        self._answered = True

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()} already")
        if 2 * self._ms > self._session_ms:
            raise FaultError(
                f"a hiccup of {self._ms} ms may cost {self._node.name} its session of {self._session_ms} ms: "
                f"give it up to {self._session_ms // 2} ms, or use pause"
            )
        self._led = self._epochs()
        began = time.monotonic()
        self._node.pause()
        try:
            self._answered = answers(self._cluster, self._node, self._ms / 1000)
            time.sleep(max(0.0, began + self._ms / 1000 - time.monotonic()))
        finally:
            self._node.resume()
        return {"node": self._node.identity, "paused_ms": int((time.monotonic() - began) * 1000)}

    def bit(self) -> Proof:
        if self._answered:
            raise FaultError(f"{self._node.name} answered while it was paused")
        missed_by = self._missed(until=time.monotonic() + 1.25 * self._session_ms / 1000)
        led = self._epochs()
        return {
            "answered_meanwhile": False,
            "session_kept": not missed_by and led == self._led,
            "missed_by": missed_by,
            "led_before": len(self._led),
            "led_after": len(led),
        }

    def heal(self) -> Proof:
        if self._node.state() is NodeState.PAUSED:
            self._node.resume()
        return returned(self._cluster, self._node)

    def _missed(self, until: float) -> list[int]:
        """The other brokers that dropped it from their metadata, by the time a lost session would have expired."""
        while time.monotonic() < until:
            views = {id_: view for id_, view in self._cluster.ask_all().items() if id_ != self._node.spec.id}
            if fenced_by := sorted(id_ for id_, view in views.items() if self._node.spec.id not in view.brokers):
                return fenced_by
            time.sleep(0.1)
        return []

    def _epochs(self) -> dict[tuple[str, int], int]:
        """The leader epochs of what it leads, as the newest view of any broker has them."""
        newest: dict[tuple[str, int], PartitionView] = {}
        for view in self._cluster.ask_all(None).values():
            for seen in view.partitions:
                known = newest.setdefault((seen.topic, seen.partition), seen)
                if seen.leader_epoch > known.leader_epoch:
                    newest[seen.topic, seen.partition] = seen
        return {key: seen.leader_epoch for key, seen in newest.items() if seen.leader == self._node.spec.id}


def session_ms(spec: ClusterSpec) -> int:
    """The session timeout of a broker: how long it may be silent before it is fenced or unregistered."""
    name, defaults = (
        ("zookeeper.session.timeout.ms", ZK_BROKER) if spec.mode is Mode.ZK else ("broker.session.timeout.ms", KRAFT)
    )
    return int(spec.overrides.get(name, defaults[name]))
