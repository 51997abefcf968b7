"""The registry of claims about Kafka and of the scripts that show them, filled by `lockstep_scenarios.conformance`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from lockstep.errors import UsageError
from lockstep.plan.scenario import BUNDLED, CONFORMANCE
from lockstep.stepper.conformance.script import Script


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim about Kafka's behaviour, as its sources word it, and the fact. Some sources are imprecise."""

    number: int
    family: str
    """The part of Kafka that the claim is about, such as leader election."""
    wording: str
    """The claim as it is commonly put."""
    fact: str
    """Kafka's behaviour in every version and mode, unless the fact names some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimScript:
    """A script, and the claims that it shows on a live cluster."""

    claims: tuple[int, ...]
    """Numbers of claims."""
    name: str
    shows: str
    """The behaviour of Kafka that is shown if the script comes to its end, in one sentence."""
    script: Script


_claims: dict[int, Claim] = {}
_scripts: dict[str, ClaimScript] = {}


def claim(*, number: int, family: str, wording: str, fact: str) -> None:
    """Declare a claim."""
    if number in _claims:
        raise UsageError(f"claim {number} is declared twice: give one of them another number")
    _claims[number] = Claim(number=number, family=family, wording=wording, fact=fact)


def claim_script(*, claims: Sequence[int], shows: str, name: str | None = None) -> Callable[[Script], Script]:
    """Register a generator function as a script for these claims; its name is the function's, with dashes."""

    def register(script: Script) -> Script:
        chosen = name or script.__name__.replace("_", "-")
        known = _scripts.get(chosen)
        if known is not None:
            modules = f"{known.script.__module__} and {script.__module__}"
            raise UsageError(f"two claim scripts are called {chosen} ({modules}): rename one")
        _scripts[chosen] = ClaimScript(claims=tuple(claims), name=chosen, shows=shows, script=script)
        return script

    return register


def find_claims() -> dict[int, Claim]:
    """Every declared claim, by its number."""
    _load()
    return dict(sorted(_claims.items()))


def find_scripts() -> tuple[ClaimScript, ...]:
    """Every claim script, in the order of running; scripts that `RUNNING_ORDER` does not name run last."""
    order = {name: place for place, name in enumerate(_load().RUNNING_ORDER)}
    return tuple(sorted(_scripts.values(), key=lambda script: order.get(script.name, len(order))))


def shown_claims() -> tuple[int, ...]:
    """The numbers of the claims that have a script."""
    return tuple(sorted({number for script in find_scripts() for number in script.claims}))


@cache
def _load() -> ModuleType:
    """Import every module of the bundled claims, by its own name: a claim module may be imported directly, too."""
    package = importlib.import_module(f"{BUNDLED}.{CONFORMANCE}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return package
