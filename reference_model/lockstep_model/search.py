"""Exhaustive breadth-first search of a machine's states, with a shortest trace to each broken invariant.

A rule's effect depends on the few parts that it reads, so it is computed once for each combination of their values.
After that a search step is arithmetic: each value of a part has a number, a state is packed into one integer, and the
effect of a rule is the difference of two such integers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import NamedTuple, TypeAlias, TypeVar

from lockstep_model.state_machine import Invariant, Machine, Part, Rule, State, Symmetry, Transition, always

T = TypeVar("T")

WIDTH = 24
"""Bits of a part in a packed state: they limit the number of different values."""
NUMBER = (1 << WIDTH) - 1


class TooManyValues(Exception):
    """Parts have more different values than WIDTH allows."""


class Packing:
    """States packed into integers: each value of a part has a number, in the order of first use."""

    def __init__(self) -> None:
        self.values: list[Part] = []
        self._numbers: dict[Part, int] = {}

    def number(self, part: Part) -> int:
        number = self._numbers.setdefault((type(part), part), len(self.values))  # equal tuples may differ in kind
        if number == len(self.values):
            if number > NUMBER:
                raise TooManyValues(f"more than {NUMBER} different values of parts came up: explore smaller bounds")
            self.values.append(part)
        return number

    def pack(self, state: State) -> int:
        return sum(self.number(part) << place * WIDTH for place, part in enumerate(state))

    def settle(self, known: int, values: Sequence[Part]) -> dict[int, int]:
        """Renumbers all but the first `known` values in this order; returns the numbers that changed, old to new."""
        before = self.values[known:]
        for part in before:
            del self._numbers[type(part), part]
        del self.values[known:]
        for part in values:
            self.number(part)
        numbers = ((known + place, self._numbers[type(part), part]) for place, part in enumerate(before))
        return {old: new for old, new in numbers if old != new}

    def unpack(self, packed: int, places: Iterable[int]) -> State:
        """All parts of a packed state, or some of them."""
        values = self.values
        return tuple([values[packed >> place * WIDTH & NUMBER] for place in places])


class Violation(NamedTuple):
    """The first violation of an invariant: its depth, the actions that lead to it, and their states."""

    depth: int
    trace: tuple[str, ...]
    states: tuple[State, ...] = ()
    """One more than actions: the first is the machine's initial state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Result of a search."""

    states: int
    generated: int
    diameter: int
    violations: dict[str, Violation]
    complete: bool
    """Whether every state within the machine's bounds was reached."""


Steps: TypeAlias = tuple[int, ...]
"""A packed state that is known, and the states that follow it to the violation."""


class Progress(NamedTuple):
    """Progress of a search."""

    depth: int
    states: int
    frontier: int


class Expansion:
    """A machine's rules over packed states; each effect is computed at first use and then cached."""

    def __init__(self, machine: Machine, *, symmetric: bool = False, invariants: Iterable[str] | None = None) -> None:
        self.machine = machine
        self.packing = Packing()
        self.generated = 0
        self.missteps: dict[str, Steps] = {}
        """The first step, from which state to which, that broke a transition's invariant."""
        watched = set(names_of(machine) if invariants is None else invariants)
        asked = [one for one in machine.invariants if one.name in watched]
        self._transitions = [one for one in asked if isinstance(one, Transition)]
        self._checks = _Checks((one for one in asked if isinstance(one, Invariant)), self.packing)
        self._canonical = _CanonicalStates(machine.symmetry, self.packing, len(machine.initial)) if symmetric else None
        self._active = _ActiveRules(machine.rules, self.packing)
        self._agreed = NUMBER
        self._unsure: list[tuple[Effects, int]] = []

    def pack(self, state: State) -> int:
        """The number of this state; under symmetry, the one number of all equivalent states."""
        return self._known_as(self.packing.pack(state))

    def _known_as(self, packed: int) -> int:
        return packed if self._canonical is None else self._canonical(packed)

    def expand(self, frontier: Iterable[int], seen: dict[int, int]) -> dict[int, int]:
        """The successors of these states that were not seen before, each with one predecessor."""
        found: dict[int, int] = {}
        canonical, places, readers = self._canonical, self._active.places, self._active.readers
        generated = 0
        for state in frontier:
            active = -1
            for shift, allowed in places:
                active &= allowed[state >> shift & NUMBER]
            for mask, effects, rules in readers[active]:
                differences = effects.get(state & mask)
                if differences is None:
                    differences = self._learn(rules, effects, mask, state)
                generated += len(differences)
                for difference in differences:
                    successor = state + difference
                    if canonical is not None:
                        successor = canonical(successor)
                    if successor not in seen and successor not in found:
                        found[successor] = state
        self.generated += generated
        return found

    def _learn(self, rules: Sequence[Rule], effects: Effects, mask: int, state: int) -> tuple[int, ...]:
        """Computes the effects of these rules, which read the same parts, in this state."""
        reads = rules[0].reads
        before = self.packing.unpack(state, reads)
        differences = []
        newest = 0
        for rule in rules:
            for after in rule.effect(*before):
                difference = 0
                for place, was, now in zip(reads, before, after, strict=True):
                    if was is not now:
                        number = self.packing.number(now)
                        newest = max(newest, number)
                        difference += number - (state >> place * WIDTH & NUMBER) << place * WIDTH
                if difference:
                    differences.append(difference)
                    self._look_at_step(state, state + difference)
        effects[state & mask] = tuple(differences)
        if newest >= self._agreed:
            self._unsure.append((effects, state & mask))
        return effects[state & mask]

    def _look_at_step(self, state: int, successor: int) -> None:
        """Records the transition invariants that this step breaks."""
        for one in self._transitions:
            if (state ^ successor) & mask_of([one.place]):
                was, now = (self.packing.unpack(each, [one.place])[0] for each in (state, successor))
                if not one.holds(was, now):
                    self.missteps.setdefault(one.name, (state, self._known_as(successor)))

    def violations(self, states: Collection[int]) -> dict[str, Steps]:
        """For each invariant that is broken for the first time, the first of these states that breaks it."""
        return {name: (state,) for name, state in self._checks.broken(states).items()}

    def await_agreement(self) -> None:
        """From now on several searchers number values: numbers of new values are provisional."""
        self._agreed = len(self.packing.values)

    @property
    def provisional(self) -> list[Part]:
        """The values that were numbered since the last agreement."""
        return self.packing.values[self._agreed :]

    def agree(self, values: Sequence[Part], found: dict[int, int]) -> dict[int, int]:
        """Takes the numbers that all searchers of one machine agreed on for new values.

        Returns the found states in these numbers; effects cached with other numbers are dropped.
        """
        changed = self.packing.settle(self._agreed, values)
        unsure, self._unsure = self._unsure, []
        self._agreed = len(self.packing.values)
        if not changed:
            return found
        for effects, key in unsure:
            del effects[key]
        if self._canonical is not None:
            self._canonical.forget()
        self.missteps = {
            name: tuple(self._again(state, changed) for state in steps) for name, steps in self.missteps.items()
        }
        return {self._again(state, changed): parent for state, parent in found.items()}

    def _again(self, packed: int, changed: dict[int, int]) -> int:
        """A packed state in the new numbers."""
        for place in range(len(self.machine.initial)):
            number = packed >> place * WIDTH & NUMBER
            if number in changed:
                packed += changed[number] - number << place * WIDTH
        return self._known_as(packed)

    def violation(self, depth: int, path: Sequence[int]) -> Violation:
        """The actions and states of this path. Under symmetry the brokers keep their names along it."""
        names = []
        states = [self.machine.initial]
        for packed in path[1:]:
            action, state = next(step for step in self.machine.enabled(states[-1]) if self.pack(step[1]) == packed)
            names.append(action.rule)
            states.append(state)
        return Violation(depth, tuple(names), tuple(states))


Effects: TypeAlias = dict[int, tuple[int, ...]]
"""Differences that the rules add to a state, by the packed parts that they read."""
Readers: TypeAlias = list[tuple[int, Effects, Sequence[Rule]]]
"""Mask of the parts read, the cached effects by their values, and the rules that read them."""


class _ActiveRules:
    """The rules that the guards of single parts allow in a state.

    Each rule has a bit, and each value of a part has the bits of the rules that it allows.
    """

    def __init__(self, rules: Iterable[Rule], packing: Packing) -> None:
        self._rules = sorted(rules, key=lambda rule: rule.reads[0])
        self._effects: dict[tuple[int, ...], Effects] = {}
        guarded = {place for rule in self._rules for place, _ in _guards(rule)}
        self.places = [(place * WIDTH, _Memo(partial(self._allowed, packing, place))) for place in sorted(guarded)]
        """How far to shift a state, and the bits by the number that is found there."""
        self.readers = _Memo(self._readers)
        """Those with these bits."""

    def _allowed(self, packing: Packing, place: int, number: int) -> int:
        part = packing.values[number]
        return sum(
            1 << bit
            for bit, rule in enumerate(self._rules)
            if all(guard(part) for at, guard in _guards(rule) if at == place)
        )

    def _readers(self, active: int) -> Readers:
        by_reads: dict[tuple[int, ...], list[Rule]] = {}
        for bit, rule in enumerate(self._rules):
            if active >> bit & 1:
                by_reads.setdefault(rule.reads, []).append(rule)
        return [(mask_of(reads), self._effects.setdefault(reads, {}), rules) for reads, rules in by_reads.items()]


def _guards(rule: Rule) -> Iterator[tuple[int, Callable[[Part], bool]]]:
    """The guards of a rule on single parts, each with its index."""
    return ((place, guard) for place, guard in zip(rule.reads, rule.guards, strict=False) if guard is not always)


class _Memo(dict[int, T]):
    """A cache that computes missing entries."""

    def __init__(self, find_out: Callable[[int], T]) -> None:
        self._find_out = find_out

    def __missing__(self, key: int) -> T:
        self[key] = self._find_out(key)
        return self[key]


class _Checks:
    """Invariants by the parts that they read: each combination of values is checked once."""

    def __init__(self, invariants: Iterable[Invariant], packing: Packing) -> None:
        self._packing = packing
        self._broken: set[str] = set()
        by_places: dict[frozenset[int], list[Invariant]] = {}
        for one in invariants:
            by_places.setdefault(frozenset(one.reads), []).append(one)
        places = sorted(by_places, key=len, reverse=True)
        self._groups = [
            _Readers(
                mask=mask_of(these),
                wider=[mask_of(those) for those in places if these < those],
                invariants=by_places[these],
            )
            for these in places
        ]

    def broken(self, states: Collection[int]) -> dict[str, int]:
        """Invariants that are broken for the first time, each with the first of these states that breaks it."""
        new: dict[int, set[int]] = {}
        failed: dict[str, list[tuple[int, int]]] = {}
        for group in self._groups:
            # A new combination at these places is part of a new one at any places that include them.
            among = min((new[mask] for mask in group.wider), key=len, default=states)
            new[group.mask] = {packed & group.mask for packed in among} - group.seen
            group.seen |= new[group.mask]
            for key in new[group.mask]:
                for name in self._failed(group.invariants, key):
                    failed.setdefault(name, []).append((group.mask, key))
        self._broken |= failed.keys()
        return {
            name: next(state for state in states if any(state & mask == key for mask, key in where))
            for name, where in failed.items()
        }

    def _failed(self, invariants: Sequence[Invariant], key: int) -> Iterator[str]:
        for one in invariants:
            place, *others = one.reads
            first = self._packing.values[key >> place * WIDTH & NUMBER]
            if not one.when(first) or one.name in self._broken:
                continue
            if not one.holds(first, *self._packing.unpack(key, others)):
                yield one.name


@dataclass(slots=True, kw_only=True)
class _Readers:
    """Invariants that read the same parts."""

    mask: int
    wider: list[int]
    """Masks of invariants that read these parts and more."""
    invariants: list[Invariant]
    seen: set[int] = field(default_factory=set)
    """Packed values that were checked."""


def mask_of(places: Iterable[int]) -> int:
    """The bits of a packed state that hold these parts."""
    return sum(NUMBER << place * WIDTH for place in places)


class _CanonicalStates:
    """Of all states that differ only in the names of replicas, the one with the smallest number."""

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
        """The index that a part moves to: a replica's part takes the index of the replica whose name it takes."""
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
    """The names of a machine's invariants, each once."""
    return list(dict.fromkeys(invariant.name for invariant in machine.invariants))


class Search:
    """All states of a machine up to the present depth, and the invariants that they break."""

    def __init__(self, machine: Machine, *, symmetric: bool = False, invariants: Iterable[str] | None = None) -> None:
        self.expansion = Expansion(machine, symmetric=symmetric, invariants=invariants)
        self.depth = 0
        self.parents: dict[int, int] = {}
        """Every state, and one that it follows from; the first is its own."""
        self.frontier: dict[int, int] = {}
        self.broken: dict[str, tuple[int, Steps]] = {}
        """By the name of an invariant, after how many actions it was first broken, and by what."""
        start = self.expansion.pack(machine.initial)
        self.take(0, {start: start})

    def advance(self) -> None:
        """Searches one level deeper."""
        self.take(self.depth + 1, self.expansion.expand(self.frontier, self.parents))

    def take(self, depth: int, found: dict[int, int]) -> None:
        """Keeps the new states of this depth and records the invariants that they break."""
        self.parents.update(found)
        self.frontier = found
        if found:
            self.depth = depth
        for name, steps in (self.expansion.missteps | self.expansion.violations(found)).items():
            self.broken.setdefault(name, (depth, steps))

    def path_to(self, state: int) -> list[int]:
        """The states of the search from the initial one to this one."""
        path = [state]
        while self.parents[path[-1]] != path[-1]:
            path.append(self.parents[path[-1]])
        return path[::-1]


def explore(
    machine: Machine,
    *,
    depth: int | None = None,
    symmetric: bool = False,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Searches all states of this machine, or those up to a depth."""
    search = Search(machine, symmetric=symmetric, invariants=invariants)
    while search.frontier and search.depth != depth:
        search.advance()
        if search.frontier:
            progress(Progress(depth=search.depth, states=len(search.parents), frontier=len(search.frontier)))
    return Exploration(
        states=len(search.parents),
        generated=search.expansion.generated,
        diameter=search.depth,
        violations={
            name: search.expansion.violation(at, [*search.path_to(steps[0]), *steps[1:]])
            for name, (at, steps) in search.broken.items()
        },
        complete=not search.frontier,
    )
