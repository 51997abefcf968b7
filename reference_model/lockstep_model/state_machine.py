"""What a state machine is here: a state of a few parts, and rules that each look at some of them.

A *part* is an immutable, hashable value, as the log of one replica. A *state* is a tuple of parts, each at its place. A
*rule* is one action of a specification, bound to certain places: it is given the parts that it reads, checks its guard,
and yields what stands in their place afterwards, once for each way in which it can happen, and not at all where the
guard does not hold. It sees nothing else and changes nothing else, so it can be checked by reading it alone, and its
effect on the same few parts need be worked out only once.

`enabled` and `apply` are total: every state has its enabled actions, and an action that is not enabled leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Part: TypeAlias = Any
"""Hashable and immutable; each machine has its own kinds."""
State: TypeAlias = tuple[Part, ...]
Outcomes: TypeAlias = Iterable[tuple[Part, ...]]
"""For each way in which a rule can happen, the parts that it reads, as they are afterwards and in the same order."""


def always(_: Part) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One action of a specification, for certain brokers."""

    name: str
    """Unique in its machine, and in words: "1 fetches from 0"."""
    reads: tuple[int, ...]
    effect: Callable[..., Outcomes]
    when: Callable[[Part], bool] = always
    """What of the guard can be said of the first part alone: where it is not true, nobody need look at the others."""
    and_when: tuple[Callable[[Part], bool], ...] = ()
    """The same of the second part, the third and so on, as far as there is something to say."""

    @property
    def guards(self) -> tuple[Callable[[Part], bool], ...]:
        return self.when, *self.and_when

    def outcomes(self, parts: tuple[Part, ...]) -> Outcomes:
        allowed = all(guard(part) for guard, part in zip(self.guards, parts, strict=False))
        return self.effect(*parts) if allowed else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """What is true of the named parts in every state; one invariant may be said of several sets of places."""

    name: str
    reads: tuple[int, ...]
    holds: Callable[..., bool]
    when: Callable[[Part], bool] = always
    """Of which first part it says something at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """What is true of every change of one part: that an epoch never goes back, as an example."""

    name: str
    place: int
    holds: Callable[[Part, Part], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symmetry:
    """Which parts may change places with each other, because a state means the same after it: replicas."""

    places: tuple[int, ...]
    rename: Callable[[Part, tuple[int, ...]], Part]
    """A part with replica i called permutation[i] wherever it speaks of one."""


class Action(NamedTuple):
    """One way in which a rule can happen."""

    rule: str
    choice: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A state machine with what must be true of it."""

    initial: State
    rules: tuple[Rule, ...]
    invariants: tuple[Invariant | Transition, ...] = ()
    symmetry: Symmetry | None = None

    def enabled(self, state: State) -> Iterator[tuple[Action, State]]:
        """Everything that can happen in this state, and the state that it leads to."""
        for rule in self.rules:
            for choice, parts in enumerate(rule.outcomes(_at(state, rule.reads))):
                yield Action(rule.name, choice), _with(state, rule.reads, parts)

    def apply(self, state: State, action: Action) -> State | None:
        """The state after this action, or None where it cannot happen."""
        rule = next((rule for rule in self.rules if rule.name == action.rule), None)
        if rule is None:
            return None
        outcomes = list(rule.outcomes(_at(state, rule.reads)))
        return _with(state, rule.reads, outcomes[action.choice]) if action.choice < len(outcomes) else None

    def broken(self, state: State) -> set[str]:
        """The invariants of single states that are not true of this one."""
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
