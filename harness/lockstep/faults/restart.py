"""Nodes that go and come back at once: one of them, or every broker in turn."""

from __future__ import annotations

import time

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import FaultError, LockstepError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.outage import ANY_NODE
from lockstep.faults.support.leadership import Leadership
from lockstep.faults.support.membership import missed, returned
from lockstep.faults.support.roles import node_of
from lockstep.plan.targets import LeaderOf, Target, WholeCluster

GONE_S = 10.0
"""How long its return is put off, at most, to see that the others miss it: a broker that says goodbye is, at once."""


@fault(name="restart", summary="Shut a node down (SIGTERM) and start it again at once", targets=ANY_NODE, takes=1)
class Restart:
    """Proven by a new process, by its absence from others' metadata meanwhile, and, of a leader, by its successor."""

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._leadership = Leadership(cluster, target) if isinstance(target, LeaderOf) else None
        self._node: Node = self._leadership.node if self._leadership else node_of(cluster, target)
        self._turn = _Turn(cluster, self._node)
        self._since_ns = 0

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        self._turn.require_running()
        self._since_ns = time.monotonic_ns()
        self._turn.take()
        return {"node_before": self._turn.before, "node": self._node.identity}

    def bit(self) -> Proof:
        moved = self._leadership.moved(self._since_ns) if self._leadership else {}
        return self._turn.proof() | moved

    def heal(self) -> Proof:
        """It is back already, unless it died or something else hit it."""
        if self._node.state() is NodeState.STOPPED:
            self._node.start()
        return returned(self._cluster, self._node)


@fault(
    name="rolling-restart",
    summary="Shut every broker down and start it again, one after the other",
    targets=(WholeCluster,),
    takes=1,
)
class RollingRestart:
    """The next one goes when the last one is back in every ISR, as an operator would wait."""

    def __init__(self, cluster: Cluster, _target: WholeCluster) -> None:
        self._cluster = cluster
        self._turns = [_Turn(cluster, cluster.broker(id_)) for id_ in cluster.broker_ids]
        self._failure: LockstepError | None = None

    @property
    def resolved(self) -> str:
        return "every broker"

    def inject(self) -> Proof:
        for turn in self._turns:
            turn.require_running()
        began_ns = time.monotonic_ns()
        done = []
        for turn in self._turns:
            try:
                turn.take()
                returned(self._cluster, turn.node)
            except LockstepError as error:  # the rest stay as they are: no second one goes while one is missing
                self._failure = error
                break
            done.append(turn.node.name)
        return {"restarted": done, "took_ms": (time.monotonic_ns() - began_ns) // 1_000_000}

    def bit(self) -> Proof:
        if self._failure:
            raise self._failure
        proofs = {turn.node.name: turn.proof() for turn in self._turns}
        return {
            "missed_by": {name: proof["missed_by"] for name, proof in proofs.items()},
            "incarnation": {turn.node.name: turn.node.incarnation for turn in self._turns},
        }

    def heal(self) -> Proof:
        for turn in self._turns:
            if turn.node.state() is NodeState.STOPPED:
                turn.node.start()
        self._cluster.wait_ready()
        self._cluster.wait_all_in_sync()
        return {"in_sync": list(self._cluster.broker_ids)}


class _Turn:
    """One node's restart, and whether the other brokers saw it gone."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self.node = node
        self.before = node.identity
        self._cluster = cluster
        self._incarnation = node.incarnation
        self._missed: Proof | LockstepError = FaultError(f"{node.name} was not restarted")

    def require_running(self) -> None:
        if self.node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self.node.name} is {self.node.state()} already")

    def take(self) -> None:
        """It starts again whether it was missed or not: what is left broken is worse than what is not proven."""
        self.node.stop()
        try:
            self._missed = missed(self._cluster, self.node, GONE_S)
        except LockstepError as error:
            self._missed = error
        self.node.start()

    def proof(self) -> Proof:
        if isinstance(self._missed, LockstepError):
            raise self._missed
        if self.node.identity == self.before:
            raise FaultError(f"{self.node.name} is still {self.before}")
        return {"incarnation_before": self._incarnation, "incarnation": self.node.incarnation} | self._missed
