"""The belief: every state of the reference model that explains all that was seen so far.

It is always closed: whatever may have happened unseen is in it. What is done to the cluster is done to each state, what
is seen keeps those that agree. When none is left, Kafka did what its documented semantics do not permit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.errors import LockstepError
from lockstep_model.search import WIDTH, Expansion, mask_of
from lockstep_model.state_machine import Machine, Outcomes, Part, State

LARGEST = 400_000
"""How many states a belief may have; more would take longer than any answer."""


class BeliefTooLarge(LockstepError):
    """There are too many explanations to follow them all: the verdict is undecided."""


class Belief:
    """A closed set of states."""

    def __init__(self, unseen: Machine, *, largest: int = LARGEST) -> None:
        """`unseen` is what may happen without anybody seeing it, from its initial state on."""
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
        """Other things may happen unseen from now on."""
        states = self.states
        self._expansion = Expansion(unseen)
        self._states = self._closed(map(self._expansion.pack, states))

    def change(self, reads: tuple[int, ...], effect: Callable[..., Outcomes]) -> bool:
        """Something is done or seen, which concerns the parts at these places: each state goes on in so many ways.

        Where none goes on the belief stays as it is; returns whether any does.
        """
        after = self._changed(reads, effect)
        if after:
            self._states = self._closed(after)
        return bool(after)

    def would_be(self, reads: tuple[int, ...], effect: Callable[..., Outcomes], place: int) -> set[Part]:
        """What might stand at a place if this were done or seen; the belief stays as it is."""
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
        """What may stand at these places together."""
        return self._parts(self._states, places)

    def _parts(self, states: Iterable[int], places: tuple[int, ...]) -> set[tuple[Part, ...]]:
        keys = {state & mask_of(places): state for state in states}
        return {self._expansion.packing.unpack(state, places) for state in keys.values()}

    def _difference(self, reads: tuple[int, ...], before: State, after: tuple[Part, ...]) -> int:
        number = self._expansion.packing.number
        changes = zip(reads, before, after, strict=True)
        return sum(number(now) - number(was) << place * WIDTH for place, was, now in changes)

    def _closed(self, states: Iterable[int]) -> set[int]:
        """These, and what may follow from them unseen."""
        frontier = dict.fromkeys(states, 0)
        reached = dict(frontier)
        while frontier:
            frontier = self._expansion.expand(frontier, reached)
            reached.update(frontier)
            if len(reached) > self._largest:
                raise BeliefTooLarge(f"more than {self._largest} states explain what was seen")
        return set(reached)
