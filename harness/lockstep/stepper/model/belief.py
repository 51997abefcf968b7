"""The belief: the set of all states of the reference model that explain every observation so far.

It is closed under hidden transitions: with a state it contains every state that the cluster may reach from it
unobserved. An action of the harness is applied to each state; an observation keeps the states that agree with it. When
none is left, the cluster has done what Kafka's documented semantics do not permit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.errors import LockstepError
from lockstep_model.search import WIDTH, Expansion, mask_of
from lockstep_model.state_machine import Machine, Outcomes, Part, State

LARGEST = 400_000
"""The largest number of states: to follow more would take longer than a response may take."""


class BeliefTooLarge(LockstepError):
    """Too many states explain the observations to follow them all: the verdict is undecided."""


class Belief:
    """A set of states, closed under hidden transitions."""

    def __init__(self, unseen: Machine, *, largest: int = LARGEST) -> None:
        """`unseen` has the hidden transitions, and the initial state."""
        self._largest = largest
        self._expansion = Expansion(unseen)
        self._states = self._closed([self._expansion.pack(unseen.initial)])

    def __len__(self) -> int:
        return len(self._states)

    @property
    def states(self) -> list[State]:
        places = range(len(self._expansion.machine.initial))
        return [self._expansion.packing.unpack(state, places) for state in sorted(self._states)]

    def go_on_with(self, unseen: Machine) -> None:
        """Replace the hidden transitions, as when a config changes, and close the belief under the new ones."""
        states = self.states
        self._expansion = Expansion(unseen)
        self._states = self._closed(map(self._expansion.pack, states))

    def change(self, reads: tuple[int, ...], effect: Callable[..., Outcomes]) -> bool:
        """Apply an action or an observation, which reads and replaces the parts at these places in each state.

        The effect yields no outcome for a state that contradicts the observation. If no state has an outcome, the
        belief stays as it is; returns whether any has.
        """
        after = self._changed(reads, effect)
        if after:
            self._states = self._closed(after)
        return bool(after)

    def would_be(self, reads: tuple[int, ...], effect: Callable[..., Outcomes], place: int) -> set[Part]:
        """The possible values of one part after this action or observation, without applying it."""
        states = self._closed(self._changed(reads, effect))
        return {part for (part,) in self._parts(states, (place,))}

    def _changed(self, reads: tuple[int, ...], effect: Callable[..., Outcomes]) -> set[int]:
        mask = mask_of(reads)
        known: dict[int, tuple[int, ...]] = {}
        after: set[int] = set()
        for state in self._states:
            key = state & mask
            if key not in known:
                before = self._expansion.packing.unpack(state, reads)
                known[key] = tuple(self._difference(reads, before, parts) for parts in effect(*before))
            after.update(state + difference for difference in known[key])
        return after

    def parts(self, *places: int) -> set[tuple[Part, ...]]:
        """The combinations of values that the parts at these places have in the states of the belief."""
        return self._parts(self._states, places)

    def _parts(self, states: Iterable[int], places: tuple[int, ...]) -> set[tuple[Part, ...]]:
        keys = {state & mask_of(places): state for state in states}
        return {self._expansion.packing.unpack(state, places) for state in keys.values()}

    def _difference(self, reads: tuple[int, ...], before: State, after: tuple[Part, ...]) -> int:
        number = self._expansion.packing.number
        changes = zip(reads, before, after, strict=True)
        return sum(number(now) - number(was) << place * WIDTH for place, was, now in changes)

    def _closed(self, states: Iterable[int]) -> set[int]:
        """These states, and all that are reachable from them by hidden transitions."""
        frontier = dict.fromkeys(states, 0)
        reached = dict(frontier)
        while frontier:
            frontier = self._expansion.expand(frontier, reached)
            reached.update(frontier)
            if len(reached) > self._largest:
                raise BeliefTooLarge(f"more than {self._largest} states explain what was seen")
        return set(reached)
