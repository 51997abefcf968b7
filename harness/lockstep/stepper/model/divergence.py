"""What the cluster did, and the model does not permit."""

from __future__ import annotations

from lockstep.stepper.model.description import Wording
from lockstep_model.state_machine import State


class Divergence(Exception):
    """No state of the model explains what was seen."""

    def __init__(self, seen: str, permitted: tuple[str, ...], before: list[State], wording: Wording) -> None:
        super().__init__(seen)
        self.seen = seen
        self.permitted = permitted
        """What would have been explained, in words."""
        self.before = before
        """The belief just before."""
        self.wording = wording
        """How to say it."""
