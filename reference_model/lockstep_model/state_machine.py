"""State machines: a state of a few parts, and rules that each read some of them.

A *part* is an immutable, hashable value, such as the log of one replica. A *state* is a tuple of parts. A *rule* is one
action of a specification, bound to the indexes of certain parts: it gets these parts, checks its guard, and yields the
parts afterwards, once for each outcome, and nothing if the guard is false. A rule reads and changes no other part, so
it can be reviewed alone, and its effect on the same parts is computed once.

`enabled` and `apply` are total: every state has its enabled actions, and an action that is not enabled has no outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Part: TypeAlias = Any
"""Hashable and immutable; each machine has its own types."""
State: TypeAlias = tuple[Part, ...]
Outcomes: TypeAlias = Iterable[tuple[Part, ...]]
"""For each outcome of a rule, the parts that it reads as they are afterwards, in the same order."""


def always(_: Part) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One action of a specification, bound to certain brokers."""

    name: str
    """Unique in its machine, in words: "1 fetches from 0"."""
    reads: tuple[int, ...]
    effect: Callable[..., Outcomes]
    when: Callable[[Part], bool] = always
    """The part of the guard that depends on the first part alone: if it is false, the other parts need not be read."""
    and_when: tuple[Callable[[Part], bool], ...] = ()
    """The same for the second part, the third and so on."""

    @property
    def guards(self) -> tuple[Callable[[Part], bool], ...]:
        return self.when, *self.and_when

    def outcomes(self, parts: tuple[Part, ...]) -> Outcomes:
        allowed = all(guard(part) for guard, part in zip(self.guards, parts, strict=False))
        return self.effect(*parts) if allowed else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A predicate that holds for these parts in every state; one invariant may apply to several sets of indexes."""

    name: str
    reads: tuple[int, ...]
    holds: Callable[..., bool]
    when: Callable[[Part], bool] = always
    """The first parts that the invariant is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A predicate that holds for every change of one part, for example that an epoch never falls."""

    name: str
    place: int
    holds: Callable[[Part, Part], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Parts that are interchangeable, such as replicas: a permutation of them is an equivalent state."""

    places: tuple[int, ...]
    rename: Callable[[Part, tuple[int, ...]], Part]
    """The part with replica i renamed to permutation[i]."""


class Action(NamedTuple):
    """One outcome of a rule."""

    rule: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A state machine with its invariants."""

    initial: State
    rules: tuple[Rule, ...]
    invariants: tuple[Invariant | Transition, ...] = ()
    symmetry: Symmetry | None = None

    def enabled(self, state: State) -> Iterator[tuple[Action, State]]:
        """All actions enabled in this state, each with its next state."""
        for rule in self.rules:
            for choice, parts in enumerate(rule.outcomes(_at(state, rule.reads))):
                yield Action(rule.name, choice), _with(state, rule.reads, parts)

    def apply(self, state: State, action: Action) -> State | None:
        """The state after this action, or None if it is not enabled."""
        rule = next((rule for rule in self.rules if rule.name == action.rule), None)
        if rule is None:
            return None
        outcomes = list(rule.outcomes(_at(state, rule.reads)))
        return _with(state, rule.reads, outcomes[action.choice]) if action.choice < len(outcomes) else None

    def broken(self, state: State) -> set[str]:
        """The invariants of single states that this state breaks."""
        return {
            invariant.name
            for invariant in self.invariants
            if isinstance(invariant, Invariant)
            and invariant.when(state[invariant.reads[0]])
            and not invariant.holds(*_at(state, invariant.reads))
        }


def _at(state: State, places: tuple[int, ...]) -> tuple[Part, ...]:
    return tuple(state[place] for place in places)


def _with(state: State, places: tuple[int, ...], parts: tuple[Part, ...]) -> State:
    changed: Mapping[int, Part] = dict(zip(places, parts, strict=True))
    return tuple(changed.get(place, part) for place, part in enumerate(state))
