"""Whether a plan fits a cluster: what cannot work is refused before anything is created."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.cluster import operations
from lockstep.cluster.backends import Backend
from lockstep.cluster.external import require_harmless
from lockstep.cluster.external_spec import ExternalSpec
from lockstep.errors import UsageError
from lockstep.faults.fault import get_fault
from lockstep.plan.plan import Heal, Inject, Operate, Plan
from lockstep.plan.targets import ClientSide, FollowerOf, LeaderOf, OneBroker, OneTopic, OneZooKeeper, Target
from lockstep.spec.cluster import ClusterSpec


def require_fit(plan: Plan, spec: ClusterSpec | ExternalSpec, backend: Backend) -> None:
    """Refuse a plan that this cluster cannot be put through."""
    if isinstance(spec, ExternalSpec):
        require_harmless(plan)
        return
    require_replicas(plan, spec.brokers)
    partitions = {topic.name: topic.partitions for topic in plan.topics}
    broken: set[int] = set()
    for step in plan.steps:
        match step:
            case Inject():
                _require_fault(step, spec, backend, partitions)
                broken.add(step.step)
            case Operate():
                spec = operations.require(spec, step.operation, step.to)
            case Heal():
                if step.of not in broken:
                    raise UsageError(f"step {step.step}: there is nothing broken by step {step.of} to heal")
                broken.remove(step.of)


def require_replicas(plan: Plan, brokers: int) -> None:
    """Refuse topics with more replicas than there are brokers."""
    for topic in plan.topics:
        if topic.replication > brokers:
            has = "1 broker" if brokers == 1 else f"{brokers} brokers"
            raise UsageError(f"topic {topic.name} wants {topic.replication} replicas and the cluster has {has}")


def _require_fault(step: Inject, spec: ClusterSpec, backend: Backend, partitions: Mapping[str, int]) -> None:
    kind = get_fault(step.fault)
    if reason := kind.reason(spec, backend):
        raise UsageError(f"step {step.step}: {step.fault} cannot be had here: {reason}")
    kind.require(step.target, step.settings)
    if lacking := _lacking(step.target, spec, partitions):
        raise UsageError(f"step {step.step}: there is no {lacking}")


def _lacking(target: Target, spec: ClusterSpec, partitions: Mapping[str, int]) -> str | None:
    """What a target names that this plan or cluster does not have."""
    match target:
        case LeaderOf() | FollowerOf():
            there = 0 <= target.partition < partitions.get(target.topic, 0)
            return None if there else f"{target.topic}-{target.partition}"
        case OneTopic():
            return None if target.topic in partitions else f"topic {target.topic}"
        case OneBroker():
            return None if target.id in spec.broker_ids else f"broker {target.id}"
        case ClientSide():
            return None if target.broker in (None, *spec.broker_ids) else f"broker {target.broker}"
        case OneZooKeeper():
            there = f"zookeeper-{target.id}" in {node.name for node in spec.nodes}
            return None if there else f"ZooKeeper server {target.id}"
        case _:
            return None
