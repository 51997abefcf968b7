"""Lockstep: chaos and conformance tests for real Apache Kafka clusters.

The names here are what scenario modules may use; everything else may change.
"""

from lockstep.plan.builder import PlanBuilder, leader_of
from lockstep.plan.scenario import scenario

__version__ = "0.1.0"

__all__ = ["PlanBuilder", "leader_of", "scenario"]
