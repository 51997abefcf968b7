"""Storms: faults drawn from all that a cluster can be put through, several at once, never more than it must survive."""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.faults.fault import FaultKind, find_faults
from lockstep.plan.builder import PlanBuilder
from lockstep.plan.plan import TopicPlan
from lockstep.plan.targets import (
    ActiveController,
    ClientSide,
    FollowerOf,
    LeaderOf,
    OneBroker,
    OneZooKeeper,
    Target,
    WholeCluster,
)
from lockstep.spec.cluster import ClusterSpec, NodeRole

RECOVERY_S = 2.0
OVERLAP = 0.4
"""How often a second fault comes while the first is still there."""

WEIGHTS = {"kill": 4, "pause": 3, "stop": 2, "replication-cut": 3, "isolate": 3, "rolling-restart": 0.3}
"""How often a fault is drawn, against 1 for all others: crashes and partitions are what clusters meet most."""


ON_TOP = ("latency", "jitter")
"""Faults on client links that may overlap another fault: they do not disturb the other's proof, and client links
always carry requests."""

ON_CLIENT_LINKS = (
    "answer-error", "bandwidth", "client-cut-off", "delay-requests", "drop-responses", "half-open", "hold-requests",
    "hold-responses", "jitter", "latency", "reset",
)  # fmt: skip
"""Faults that may be on client links themselves, and then none comes on top: one would hide the other."""


def storm(plan: PlanBuilder, topic: TopicPlan, seconds: float) -> None:
    """Draw faults until the time is filled: steady, broken, healed, recovered, and again.

    At most one fault at a time takes a broker out of service; those that only slow links down may come on top.
    """
    kinds = [kind for kind in find_faults().values() if _fits(kind, plan, topic)]
    left = seconds
    while left > RECOVERY_S:
        left -= _hold(plan, left, 0.5, 2)
        first = plan.pick(kinds, [WEIGHTS.get(kind.name, 1) for kind in kinds])
        with plan.inject(first.name, plan.pick(list(targets_of(first, plan.spec, topic)))):
            mild = [kind for kind in kinds if kind.name in ON_TOP and first.name not in ON_CLIENT_LINKS]
            if mild and plan.draw(0, 1) < OVERLAP:
                left -= _hold(plan, left, 0.5, 1)
                second = plan.pick(mild)
                with plan.inject(second.name, ClientSide()):
                    left -= _hold(plan, left, 1, 3)
            else:
                left -= _hold(plan, left, 1, 3)
    plan.hold(seconds=RECOVERY_S)


def _fits(kind: FaultKind, plan: PlanBuilder, topic: TopicPlan) -> bool:
    """Whether it can be had here, and leaves enough brokers to keep every promise, unless more was asked for."""
    if kind.reason(plan.spec, plan.backend) is not None or not any(True for _ in targets_of(kind, plan.spec, topic)):
        return False
    spare = topic.replication - topic.min_isr
    return plan.beyond or (kind.beyond is None and kind.takes <= spare)


def targets_of(kind: FaultKind, spec: ClusterSpec, topic: TopicPlan) -> Iterator[Target]:
    """All targets of a fault in such a cluster and around that topic; topics themselves are left to scenarios."""
    targets: list[Target] = [WholeCluster(), ActiveController(), ClientSide()]
    targets += [LeaderOf(topic=topic.name, partition=number) for number in range(topic.partitions)]
    targets += [FollowerOf(topic=topic.name, partition=number) for number in range(topic.partitions)]
    targets += [OneBroker(id=id_) for id_ in spec.broker_ids]
    targets += [OneZooKeeper(id=node.id) for node in spec.nodes if node.role is NodeRole.ZOOKEEPER]
    return (target for target in targets if isinstance(target, kind.targets))


def _hold(plan: PlanBuilder, left: float, low: float, high: float) -> float:
    seconds = min(plan.draw(low, high), max(left, 0.1))
    plan.hold(seconds=round(seconds, 3))
    return seconds
