"""Exhaustive search: every state that a machine can reach, breadth first, and the shortest way to what must not be.

A rule's effect depends on the few parts that it reads, so it is worked out once for each combination of their values,
and after that a step of the search is arithmetic: states are packed into one integer each, every value of a part
having a number, and what a rule does to the parts that it reads is a difference between two such integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from reference_model.machine import Invariant, Machine, Part, Rule, State, Symmetry, Transition

R = TypeVar("R", Rule, Invariant)
T = TypeVar("T")

WIDTH = 24
"""Bits for each part: how many different values one part may have."""
NUMBER = (1 << WIDTH) - 1


class TooManyValues(Exception):
    """A part has more different values than fit into its bits."""


class Packing:
    """States as integers: a number for each value of a part, in the order in which they come up."""

    def __init__(self) -> None:
        self.values: list[Part] = []
        self._numbers: dict[Part, int] = {}

    def number(self, part: Part) -> int:
        number = self._numbers.setdefault((type(part), part), len(self.values))  # as in `_differ`
        if number == len(self.values):
            if number > NUMBER:
                raise TooManyValues(f"more than {NUMBER} different values of parts came up: explore smaller bounds")
            self.values.append(part)
        return number

    def pack(self, state: State) -> int:
        return sum(self.number(part) << place * WIDTH for place, part in enumerate(state))

    def settle(self, known: int, values: Sequence[Part]) -> dict[int, int]:
        """Number all but the first `known` values anew, in this order; returns which numbers changed, and to what."""
        before = self.values[known:]
        for part in before:
            del self._numbers[type(part), part]
        del self.values[known:]
        for part in values:
            self.number(part)
        numbers = ((known + place, self._numbers[type(part), part]) for place, part in enumerate(before))
        return {old: new for old, new in numbers if old != new}

    def unpack(self, packed: int, places: Iterable[int]) -> State:
        """The parts of a packed state, or some of them."""
        values = self.values
        return tuple([values[packed >> place * WIDTH & NUMBER] for place in places])


class Violation(NamedTuple):
    """The first time that an invariant was broken: after how many actions, which, and where each of them led."""

    depth: int
    trace: tuple[str, ...]
    states: tuple[State, ...] = ()
    """One more than there are actions: the first is where the machine begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What a search found."""

    states: int
    generated: int
    diameter: int
    violations: dict[str, Violation]
    complete: bool
    """Whether there was nothing left to search, within the bounds of the machine."""


Steps: TypeAlias = tuple[int, ...]
"""A packed state that is known, and what follows from it to where an invariant is broken."""


class Progress(NamedTuple):
    """How far a search is."""

    depth: int
    states: int
    frontier: int


class Expansion:
    """One machine's rules over packed states: what each does is worked out when it first comes up, and then known."""

    def __init__(self, machine: Machine, *, symmetric: bool = False, invariants: Iterable[str] | None = None) -> None:
        self.machine = machine
        self.packing = Packing()
        self.generated = 0
        self._learned: list[tuple[dict[int, tuple[int, ...]], int]] = []
        self.missteps: dict[str, Steps] = {}
        """The first step, from which state to which, that broke a transition's invariant."""
        self.watched = set(names_of(machine) if invariants is None else invariants)
        self._canonical = _Canonical(machine.symmetry, self.packing, len(machine.initial)) if symmetric else None
        self._rules = _ByFirst[Rule, tuple[int, ...]](machine.rules, self.packing)
        self._checks = _ByFirst[Invariant, tuple[str, ...]](
            [one for one in machine.invariants if isinstance(one, Invariant) and one.name in self.watched], self.packing
        )
        self._transitions = [
            one for one in machine.invariants if isinstance(one, Transition) and one.name in self.watched
        ]

    def pack(self, state: State) -> int:
        """The number that stands for this state, and under symmetry for all that mean the same."""
        return self._known_as(self.packing.pack(state))

    def _known_as(self, packed: int) -> int:
        return packed if self._canonical is None else self._canonical(packed)

    def expand(self, frontier: Iterable[int], seen: dict[int, int]) -> dict[int, int]:
        """The states that follow from these and are not among those seen, each with one that it follows from."""
        found: dict[int, int] = {}
        canonical = self._canonical
        generated = 0
        for state in frontier:
            for shift, by_number, select in self._rules.places:
                number = state >> shift & NUMBER
                known = by_number.get(number)
                if known is None:
                    known = select(number)
                for mask, of, rules in known:
                    key = state & mask
                    differences = of.get(key)
                    if differences is None:
                        differences = of[key] = self._learn(rules, state)
                        self._learned.append((of, key))
                    for difference in differences:
                        generated += 1
                        successor = state + difference
                        if canonical is not None:
                            successor = canonical(successor)
                        if successor not in seen and successor not in found:
                            found[successor] = state
        self.generated += generated
        return found

    def _learn(self, rules: Sequence[Rule], state: int) -> tuple[int, ...]:
        """What these rules, which read the same places, change in such a state."""
        before = self.packing.unpack(state, rules[0].reads)
        differences = []
        for rule in rules:
            for after in rule.effect(*before):
                changes = [
                    (place, was, now)
                    for place, was, now in zip(rule.reads, before, after, strict=True)
                    if was is not now and _differ(was, now)
                ]
                difference = sum(
                    self.packing.number(now) - self.packing.number(was) << place * WIDTH for place, was, now in changes
                )
                differences.append(difference)
                for transition in self._transitions:
                    for place, was, now in changes:
                        if place == transition.place and not transition.holds(was, now):
                            self.missteps.setdefault(transition.name, (state, self._known_as(state + difference)))
        return tuple(difference for difference in differences if difference)

    def violations(self, states: Iterable[int]) -> dict[str, Steps]:
        """For each invariant that any of these states breaks, the first that does."""
        broken: dict[str, Steps] = {}
        for state in states:
            for shift, by_number, select in self._checks.places:
                number = state >> shift & NUMBER
                known = by_number.get(number)
                if known is None:
                    known = select(number)
                for mask, of, invariants in known:
                    key = state & mask
                    failed = of.get(key)
                    if failed is None:
                        parts = self.packing.unpack(state, invariants[0].reads)
                        failed = of[key] = tuple(one.name for one in invariants if not one.holds(*parts))
                    for name in failed:
                        broken.setdefault(name, (state,))
        return broken

    def settle(self, known: int, values: Sequence[Part], found: dict[int, int]) -> dict[int, int]:
        """Take the numbers on which all searchers of one machine agree, for parts that came up in the last expansion.

        Returns what was found in these numbers; what was learned with others is forgotten.
        """
        changed = self.packing.settle(known, values)
        learned, self._learned = self._learned, []
        if not changed:
            return found
        for of, key in learned:
            of.pop(key, None)
        self._rules.forget(known)
        if self._canonical is not None:
            self._canonical.forget()
        self.missteps = {
            name: tuple(self._again(state, changed) for state in steps) for name, steps in self.missteps.items()
        }
        return {self._again(state, changed): parent for state, parent in found.items()}

    def _again(self, packed: int, changed: dict[int, int]) -> int:
        """A packed state in other numbers."""
        for place in range(len(self.machine.initial)):
            number = packed >> place * WIDTH & NUMBER
            packed += changed.get(number, number) - number << place * WIDTH
        return self._known_as(packed)

    def violation(self, depth: int, path: Sequence[int]) -> Violation:
        """How these states come about. Under symmetry the brokers keep their names on the way."""
        names = []
        states = [self.machine.initial]
        for packed in path[1:]:
            action, state = next(step for step in self.machine.enabled(states[-1]) if self.pack(step[1]) == packed)
            names.append(action.rule)
            states.append(state)
        return Violation(depth, tuple(names), tuple(states))


Known: TypeAlias = tuple[int, dict[int, T], Sequence[R]]
"""The mask of the parts that are read, what is known by their values, and who reads them."""
Place: TypeAlias = tuple[int, dict[int, list[Known[T, R]]], Callable[[int], list[Known[T, R]]]]
"""How far to shift a state, what is known by the number that is found there, and a function that finds it out."""


class _ByFirst(Generic[R, T]):
    """Rules or invariants, by the first place that they read, and there by the values of which they say something."""

    def __init__(self, all_: Iterable[R], packing: Packing) -> None:
        self._packing = packing
        self._shared: dict[tuple[int, ...], dict[int, T]] = {}
        by_place: dict[int, list[R]] = {}
        for one in all_:
            by_place.setdefault(one.reads[0], []).append(one)
        self.places: list[Place[T, R]] = [self._place(place, readers) for place, readers in sorted(by_place.items())]

    def forget(self, known: int) -> None:
        """What was found out of all but the first `known` values."""
        for _, by_number, _ in self.places:
            for number in [number for number in by_number if number >= known]:
                del by_number[number]

    def _place(self, place: int, readers: list[R]) -> Place[T, R]:
        by_number: dict[int, list[Known[T, R]]] = {}

        def select(number: int) -> list[Known[T, R]]:
            active: dict[tuple[int, ...], list[R]] = {}
            for one in readers:
                if one.when(self._packing.values[number]):
                    active.setdefault(one.reads, []).append(one)
            by_number[number] = [(_mask(reads), self._shared.setdefault(reads, {}), of) for reads, of in active.items()]
            return by_number[number]

        return place * WIDTH, by_number, select


def _differ(was: Part, now: Part) -> bool:
    """The kind counts too: equal tuples of different kinds are different parts."""
    return was != now or type(was) is not type(now)


def _mask(places: tuple[int, ...]) -> int:
    return sum(NUMBER << place * WIDTH for place in places)


class _Canonical:
    """Of all states that are the same but for the names of replicas, the one with the smallest number."""

    def __init__(self, symmetry: Symmetry | None, packing: Packing, parts: int) -> None:
        if symmetry is None:
            raise ValueError("the replicas of this machine are not interchangeable")
        self._rename = symmetry.rename
        self._packing = packing
        self._renamings = [
            (names, list[int](), [self._place(symmetry, names, place) * WIDTH for place in range(parts)])
            for names in permutations(range(len(symmetry.places)))
        ]
        self._shifts = [place * WIDTH for place in range(parts)]

    @staticmethod
    def _place(symmetry: Symmetry, names: tuple[int, ...], place: int) -> int:
        """Where the part at this place goes: a replica's part to the place of the one whose name it takes."""
        return symmetry.places[names[symmetry.places.index(place)]] if place in symmetry.places else place

    def forget(self) -> None:
        for _, renamed, _ in self._renamings:
            renamed.clear()

    def __call__(self, packed: int) -> int:
        numbers = [packed >> shift & NUMBER for shift in self._shifts]
        highest = max(numbers)
        smallest = packed
        for names, renamed, shifts in self._renamings:
            while len(renamed) <= highest:
                renamed.append(self._packing.number(self._rename(self._packing.values[len(renamed)], names)))
            same = sum([renamed[number] << shift for number, shift in zip(numbers, shifts, strict=True)])
            smallest = min(smallest, same)
        return smallest


def names_of(machine: Machine) -> list[str]:
    """The invariants of a machine, each once."""
    return list(dict.fromkeys(invariant.name for invariant in machine.invariants))


def explore(
    machine: Machine,
    *,
    depth: int | None = None,
    symmetric: bool = False,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Search everything that this machine can reach, or what it can within so many actions."""
    expansion = Expansion(machine, symmetric=symmetric, invariants=invariants)
    start = expansion.pack(machine.initial)
    parents = {start: start}
    found = parents
    broken: dict[str, tuple[int, Steps]] = {}
    level = 0
    while found:
        for name, steps in expansion.violations(found).items():
            broken.setdefault(name, (level, steps))
        if level == depth:
            break
        found = expansion.expand(found, parents)
        for name, steps in expansion.missteps.items():
            broken.setdefault(name, (level + 1, steps))
        if found:
            level += 1
            parents.update(found)
            progress(Progress(depth=level, states=len(parents), frontier=len(found)))
    return Exploration(
        states=len(parents),
        generated=expansion.generated,
        diameter=level,
        violations={
            name: expansion.violation(at, [*path_to(steps[0], parents), *steps[1:]])
            for name, (at, steps) in broken.items()
        },
        complete=not found,
    )


def path_to(state: int, parents: dict[int, int]) -> list[int]:
    """The states from the first one to this one, which the search went through."""
    path = [state]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path[::-1]
