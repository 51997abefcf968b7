"""Exhaustive search of the reference model by name, on one processor or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lockstep.errors import UsageError
from lockstep.exploration.workers import explore_together, without_collection
from lockstep.names import suggestion
from lockstep_model.search import Exploration, Progress, TooManyValues, names_of
from lockstep_model.search import explore as explore_alone
from lockstep_model.state_machine import Machine

__all__ = ["explore"]


def explore(
    machine: Machine,
    *,
    workers: int = 1,
    depth: int | None = None,
    symmetric: bool = False,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Exploration:
    """Search what a machine can reach, with so many processes."""
    known = names_of(machine)
    for name in invariants or ():
        if name not in known:
            raise UsageError(f"there is no invariant {name!r} here{suggestion(name, known)}")
    if symmetric and machine.symmetry is None:
        raise UsageError("the brokers of this specification are not interchangeable: leave --symmetry out")
    try:
        if workers > 1:
            return explore_together(
                machine, workers=workers, depth=depth, symmetric=symmetric, invariants=invariants, progress=progress
            )
        with without_collection():
            return explore_alone(machine, depth=depth, symmetric=symmetric, invariants=invariants, progress=progress)
    except TooManyValues as error:
        raise UsageError(str(error)) from error
