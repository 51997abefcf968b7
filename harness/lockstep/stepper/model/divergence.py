"""Divergence: an observation of the cluster that the reference model does not permit."""

from __future__ import annotations

from lockstep.stepper.model.description import StateDescriber
from lockstep_model.state_machine import State


class Divergence(Exception):
    """No state of the belief explains an observation."""

    def __init__(self, seen: str, permitted: tuple[str, ...], before: list[State], describer: StateDescriber) -> None:
        super().__init__(seen)
        self.seen = seen
        self.permitted = permitted
        """Observations that the model would have permitted, in words."""
        self.before = before
        """The states of the belief just before the observation."""
        self.describer = describer
        """Describes these states with the cluster's broker ids."""
