"""One node out of service: killed, stopped or paused, found by its role."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.leadership import Leadership
from lockstep.faults.support.membership import missed, returned
from lockstep.faults.support.roles import node_of
from lockstep.history.lines import CRASHED
from lockstep.plan.targets import ActiveController, FollowerOf, LeaderOf, OneBroker, OneZooKeeper, Target

ANY_NODE = (LeaderOf, FollowerOf, OneBroker, ActiveController, OneZooKeeper)


class _Outage(ABC):
    """Proven by the node's state, by its absence from the others' metadata, and, of a leader, by its successor."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._leadership = Leadership(cluster, target) if isinstance(target, LeaderOf) else None
        self._node: Node = self._leadership.node if self._leadership else node_of(cluster, target)
        self._since_ns = 0

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()} already")
        identity = self._node.identity
        log = self._leadership.log_end() if self._leadership else {}
        self._since_ns = time.monotonic_ns()
        self._take()
        return {"node": identity} | log

    def bit(self) -> Proof:
        if self._node.state() is NodeState.RUNNING:
            raise FaultError(f"{self._node.name} still runs")
        moved = self._leadership.moved(self._since_ns) if self._leadership else {}
        return {"state": self._node.state().value} | moved | missed(self._cluster, self._node)

    def heal(self) -> Proof:
        if self._leadership:
            self._leadership.about_to_return()
        self._give_back()
        back = returned(self._cluster, self._node)
        return back | (self._leadership.truncated() if self._leadership else {})

    @abstractmethod
    def _take(self) -> None: ...

    def _give_back(self) -> None:
        """Whatever has become of it meanwhile: another fault may have stopped, paused or started the same node."""
        match self._node.state():
            case NodeState.STOPPED:
                self._node.start()
            case NodeState.PAUSED:
                self._node.resume()


@fault(name="kill", summary="SIGKILL a node; healed by starting it again", targets=ANY_NODE, takes=1)
class Kill(_Outage):
    """Unflushed records survive in the page cache: a killed process alone loses none."""

    def inject(self) -> Proof:
        return super().inject() | {CRASHED: [self.resolved]}

    def _take(self) -> None:
        self._node.kill()


@fault(name="stop", summary="Shut a node down (SIGTERM); healed by starting it again", targets=ANY_NODE, takes=1)
class Stop(_Outage):
    """A controlled shutdown: the broker hands its leaderships over before it goes."""

    def _take(self) -> None:
        self._node.stop()


@fault(name="pause", summary="SIGSTOP a node until its session is lost; healed by SIGCONT", targets=ANY_NODE, takes=1)
class Pause(_Outage):
    """The broker wakes up as a zombie: it believes that it still leads, until it learns of the new leader epoch."""

    def _take(self) -> None:
        self._node.pause()
