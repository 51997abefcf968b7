"""Lockstep: chaos and conformance tests for real Apache Kafka clusters.

The names here are what scenario modules may use; everything else may change. They are imported when they are first
used, so that the pytest plugin costs nothing where no cluster is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lockstep.version import __version__

if TYPE_CHECKING:
    from lockstep.faults.storm import storm
    from lockstep.plan.builder import PlanBuilder, follower_of, leader_of
    from lockstep.plan.plan import TopicPlan
    from lockstep.plan.scenario import scenario
    from lockstep.plan.targets import (
        ActiveController,
        ClientSide,
        FollowerOf,
        LeaderOf,
        OneBroker,
        OneTopic,
        OneZooKeeper,
        Target,
        WholeCluster,
    )


_HOME = {
    "ActiveController": "plan.targets",
    "ClientSide": "plan.targets",
    "FollowerOf": "plan.targets",
    "LeaderOf": "plan.targets",
    "OneBroker": "plan.targets",
    "OneTopic": "plan.targets",
    "OneZooKeeper": "plan.targets",
    "PlanBuilder": "plan.builder",
    "Target": "plan.targets",
    "TopicPlan": "plan.plan",
    "WholeCluster": "plan.targets",
    "follower_of": "plan.builder",
    "leader_of": "plan.builder",
    "scenario": "plan.scenario",
    "storm": "faults.storm",
}

__all__ = [
    "ActiveController",
    "ClientSide",
    "FollowerOf",
    "LeaderOf",
    "OneBroker",
    "OneTopic",
    "OneZooKeeper",
    "PlanBuilder",
    "Target",
    "TopicPlan",
    "WholeCluster",
    "__version__",
    "follower_of",
    "leader_of",
    "scenario",
    "storm",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
