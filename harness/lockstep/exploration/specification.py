"""What can be searched: a machine made within bounds, as it is or without one of its guards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockstep.errors import UsageError
from lockstep_model.state_machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Where it shows that a guard is needed."""

    bounds: Any
    depth: int | None = None
    """How deep the search must go; without it, it goes to its end."""
    breaks: str | None = None
    """The invariant that it breaks there, where others break too or the first is not what counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    name: str
    summary: str
    bounds: Any
    """A dataclass; these are the default."""
    make: Callable[[Any, str | None], Machine]
    """From bounds, and the guard that is left out, if any."""
    mutants: Mapping[str, Shown] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    """Names of bounds that differ from those of the command line."""

    def within(self, mutant: str | None, given: Mapping[str, int]) -> Any:
        """Its bounds, or those that show that a guard is needed, with the given ones in their place."""
        bounds = self.bounds if mutant is None else self.mutants[mutant].bounds
        has = {field.name for field in dataclasses.fields(bounds)}
        own = {self.called.get(name, name): value for name, value in given.items()}
        for name in given:
            if self.called.get(name, name) not in has:
                raise UsageError(f"{self.name} has no bound --{name.replace('_', '-')}: leave it out")
        return dataclasses.replace(bounds, **own)
