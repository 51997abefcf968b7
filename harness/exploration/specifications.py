"""The specifications that can be searched, by name: the published ones, and our own model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.errors import UsageError
from harness.scenario import suggestion
from reference_model.machine import Machine
from reference_model.published import async_isr, replication


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """A machine that is made within bounds, as it is or without one of its guards."""

    name: str
    summary: str
    bounds: Any
    """A dataclass of numbers, which are the default."""
    make: Callable[[Any, str | None], Machine]
    mutants: tuple[str, ...] = ()

    def within(self, given: Mapping[str, int]) -> Any:
        """Its bounds, with these in place of the default."""
        has = {field.name for field in dataclasses.fields(self.bounds)}
        for name in given:
            if name not in has:
                raise UsageError(f"{self.name} has no bound --{name.replace('_', '-')}: leave it out")
        return dataclasses.replace(self.bounds, **given)


def get_specification(name: str) -> Specification:
    if name not in SPECIFICATIONS:
        raise UsageError(f"there is no specification {name!r}{suggestion(name, SPECIFICATIONS)}")
    return SPECIFICATIONS[name]


def machine(name: str, mutant: str | None, bounds: Any) -> Machine:
    """Made by name, which another process can do as well."""
    return SPECIFICATIONS[name].make(bounds, mutant)


def chosen(name: str, mutant: str | None, given: Mapping[str, int]) -> Callable[[], Machine]:
    """What makes the machine that was asked for."""
    specification = get_specification(name)
    if mutant is not None and mutant not in specification.mutants:
        raise UsageError(f"{name} has no mutant {mutant!r}{suggestion(mutant, specification.mutants)}")
    return partial(machine, name, mutant, specification.within(given))


def _published(variant: replication.Variant, bounds: replication.Bounds, mutant: str | None) -> Machine:
    return replication.replication(variant if mutant is None else replication.MUTANTS[mutant], bounds)


def _async_isr(bounds: async_isr.Bounds, mutant: str | None) -> Machine:
    return async_isr.async_isr(bounds, maximal=mutant is None)


_SUMMARIES = {
    "truncate-to-hw": "before 0.11: followers truncate to their own high watermark",
    "kip101": "0.11: followers truncate by the leader's epochs",
    "kip279": "2.0: followers truncate behind the last record that both have",
    "kip320-first-try": "a draft of KIP-320: epochs are compared with each fetch, and truncation waits for it",
    "kip320": "2.1: fetches, truncation and the high watermark are fenced by the leader epoch",
    "kip320-unfenced": "KIP-320 without its fence on truncation",
}

SPECIFICATIONS: dict[str, Specification] = {
    specification.name: specification
    for specification in (
        *(
            Specification(
                name=name,
                summary=summary,
                bounds=replication.Bounds(),
                make=partial(_published, replication.VARIANTS[name]),
                mutants=tuple(replication.MUTANTS) if name == "kip320" else (),
            )
            for name, summary in _SUMMARIES.items()
        ),
        Specification(
            name="async-isr",
            summary="KIP-497: the leader counts with every ISR that the controller may have",
            bounds=async_isr.Bounds(),
            make=_async_isr,
            mutants=("maximal-isr",),
        ),
    )
}
