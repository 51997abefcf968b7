"""Admin requests to a cluster that may be partly down: sent to a broker that can serve them, again until one has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lockstep.clients.access import Access
from lockstep.clients.wire.refusals import RefusedForNow
from lockstep.cluster.cluster import Cluster
from lockstep.network.topology import Address
from lockstep.spec.cluster import Mode
from lockstep.wait import wait_until

PATIENCE_S = 30.0

T = TypeVar("T")


def administer(cluster: Cluster, ask: Callable[[Address, Access], T], what: str) -> T:
    """Send an admin request: in ZooKeeper mode to the controller, else to any broker, which forwards it (KIP-590)."""

    def attempt() -> tuple[T] | None:
        broker = _who_can(cluster)
        return None if broker is None else (ask(cluster.direct(broker), cluster.access()),)

    done = wait_until(attempt, timeout_s=PATIENCE_S, what=what, interval_s=0.25, retry_on=(OSError, RefusedForNow))
    assert done is not None
    return done[0]


def _who_can(cluster: Cluster) -> int | None:
    views = cluster.ask_all()
    if cluster.spec.mode is not Mode.ZK:
        return next(iter(views), None)
    return next((view.controller for view in views.values() if view.controller in views), None)
