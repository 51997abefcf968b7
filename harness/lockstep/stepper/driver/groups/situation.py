"""Group situation: what is known of the groups of a walk when its next action is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lockstep.stepper.driver.groups.consumers import Consumer


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSituation:
    """What is known of the groups of a walk. Brokers have their real ids."""

    calm: bool
    """Whether the coordinator's records get replicated: every ISR member runs, and can fetch from the leader."""
    coordinator: int
    consumers: tuple[Consumer, ...]
    beliefs: Mapping[str, int] = field(default_factory=dict)
    """Belief size of each group."""
