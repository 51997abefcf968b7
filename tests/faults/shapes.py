"""The clusters on which faults are shown: one of each mode, shared by all that leave them as they were."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.plan.targets import LeaderOf

KRAFT: dict[str, Any] = {}
ZK: dict[str, Any] = {"mode": "zk"}
KRAFT_QUORUM: dict[str, Any] = {"controllers": 3}
ZK_ENSEMBLE: dict[str, Any] = {"mode": "zk", "zookeepers": 3}
SASL: dict[str, Any] = {"security": {"sasl": "SCRAM-SHA-512"}}
COMBINED: dict[str, Any] = {"mode": "kraft-combined"}

GROUP = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


def shapes(first: dict[str, Any], *others: dict[str, Any]) -> pytest.MarkDecorator:
    """Where a fault is shown in every test run, and where when there is time."""
    rest = [pytest.param(shape, marks=pytest.mark.long, id=_name(shape)) for shape in others]
    return pytest.mark.parametrize("shape", [pytest.param(first, id=_name(first)), *rest])


def new_topic(cluster: Cluster, partitions: int = 1) -> str:
    """A topic of three replicas whose name nobody has."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, partitions=partitions, replication=3, config={"min.insync.replicas": "1"})
    return name


def leader_of(topic: str) -> LeaderOf:
    return LeaderOf(topic=topic, partition=0)


def _name(shape: dict[str, Any]) -> str:
    values = (value for field in shape.values() for value in (field.values() if isinstance(field, dict) else [field]))
    return "-".join(map(str, values)) or "kraft"
