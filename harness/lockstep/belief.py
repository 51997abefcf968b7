"""The belief: every state of the reference model that explains all that was seen so far.

It is always closed: whatever may have happened unseen is in it. What is done to the cluster is done to each state, what
is seen keeps those that agree. When none is left, Kafka did what its documented semantics do not permit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from harness.errors import LockstepError
from harness.lockstep.rules import machine
from reference_model.machine import State
from reference_model.parameters import Parameters
from reference_model.search import Expansion

LARGEST = 50_000
"""How many states a belief may have; more would take longer than any answer."""


class BeliefTooLarge(LockstepError):
    """There are too many explanations to follow them all: the verdict is undecided."""


class Belief:
    """A closed set of states, which knows how each came about."""

    def __init__(self, parameters: Parameters, initial: State, *, largest: int = LARGEST) -> None:
        self.parameters = parameters
        self._largest = largest
        self._expansion = Expansion(machine(parameters, initial))
        self._states: set[int] = set()
        self.replace([initial])

    def __len__(self) -> int:
        return len(self._states)

    def __bool__(self) -> bool:
        return bool(self._states)

    @property
    def states(self) -> list[State]:
        places = range(len(self._expansion.machine.initial))
        return [self._expansion.packing.unpack(state, places) for state in sorted(self._states)]

    def replace(self, states: Iterable[State]) -> None:
        """Believe these instead, and what may follow from them unseen."""
        frontier = {self._expansion.pack(state): 0 for state in states}
        reached = dict(frontier)
        while frontier:
            frontier = self._expansion.expand(frontier, reached)
            reached.update(frontier)
            if len(reached) > self._largest:
                raise BeliefTooLarge(f"more than {self._largest} states explain what was seen")
        self._states = set(reached)

    def change(self, effect: Callable[[State], Iterable[State]]) -> None:
        """Something is done, or seen: each state becomes those that it may lead to, which may be none."""
        self.replace([after for state in self.states for after in effect(state)])

    def parts(self, place: int) -> set[Any]:
        """What may stand at this place."""
        return {state[place] for state in self.states}
