"""One broker cut off from others while its clients reach it: by silence, since a partition refuses nothing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.leadership import Leadership
from lockstep.faults.support.link_conditions import Imposition, between, outward, recovered, require_running
from lockstep.faults.support.membership import answers, missed
from lockstep.faults.support.roles import node_of
from lockstep.network.conditions import BlackHole, Condition, OneWay
from lockstep.network.topology import Link
from lockstep.plan.targets import FollowerOf, LeaderOf, OneBroker, Target
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until

HEARD_S = 15.0
ANY_BROKER = (LeaderOf, FollowerOf, OneBroker)
SESSION = (Listener.CONTROLLER, Listener.ZOOKEEPER)
"""The listeners over which a broker keeps its session, in either mode."""


class _Severed(ABC):
    """Proven by silent links, by the broker's absence from others' metadata, and, of a leader, by its successor."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._leadership = Leadership(cluster, target) if isinstance(target, LeaderOf) else None
        self._node: Node = self._leadership.node if self._leadership else node_of(cluster, target)
        self._imposition = Imposition(cluster.links, self._conditions())
        self._since_ns = 0

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        require_running([self._node])
        begun = self._imposition.begin()
        self._since_ns = time.monotonic_ns()
        return begun

    def bit(self) -> Proof:
        silent = self._imposition.silent()
        moved = self._leadership.moved(self._since_ns) if self._leadership else {}
        return silent | moved | missed(self._cluster, self._node) | self._alive()

    def heal(self) -> Proof:
        return self._imposition.end() | recovered(self._cluster, [self._node])

    @abstractmethod
    def _conditions(self) -> Mapping[Link, Condition]: ...

    def _alive(self) -> Proof:
        """Check that the broker still answers the harness: it is cut off, and not down."""
        if not answers(self._cluster, self._node):
            raise FaultError(f"{self._node.name} answers no request: it is gone rather than cut off")
        return {"answers_clients": True}

    def _others(self) -> set[str]:
        return set(self._cluster.nodes) - {self._node.name}


@fault(
    name="isolate",
    summary="Cut a broker off from all nodes while its clients stay: a zombie leader",
    targets=ANY_BROKER,
    takes=1,
)
class Isolate(_Severed):
    """The broker goes on serving the partitions that it led, at an old leader epoch."""

    def _conditions(self) -> Mapping[Link, Condition]:
        return dict.fromkeys(between(self._cluster, {self._node.name}, self._others()), BlackHole())


@fault(
    name="heartbeat-cut",
    summary="Cut a broker off from the controllers or from ZooKeeper, and from no broker or client",
    targets=ANY_BROKER,
    takes=1,
)
class HeartbeatCut(_Severed):
    """The broker's session expires while its followers still fetch from it."""

    def _conditions(self) -> Mapping[Link, Condition]:
        return dict.fromkeys(outward(self._cluster, self._node, SESSION), BlackHole())


@fault(
    name="one-way-partition",
    summary="Cut a broker off in one direction: its requests arrive, and no request or response reaches it",
    targets=ANY_BROKER,
    takes=1,
)
class OneWayPartition(_Severed):
    """Proven by what it still sends as well: bytes that arrive, and none that come back."""

    def bit(self) -> Proof:
        heard = wait_until(
            lambda: [link for link in self._imposition.sent() if link.source == self._node.name],
            timeout_s=HEARD_S,
            what=f"{self._node.name} to send something that arrives",
        )
        return {"heard_on": [str(link) for link in heard]} | super().bit()

    def _conditions(self) -> Mapping[Link, Condition]:
        links = between(self._cluster, {self._node.name}, self._others())
        return {link: OneWay() if link.source == self._node.name else BlackHole() for link in links}
