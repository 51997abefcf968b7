"""Wrong models, held to what a cluster did: when each diverged, in one walk or script and in many."""

from __future__ import annotations

import multiprocessing
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median

import msgspec

from lockstep.stepper.controls.wrong_models import WRONG_MODELS, WrongModel, judge, wrong_model
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.walk.runner import Walked
from lockstep_model.parameters import Parameters


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong model, held to the same walk."""

    name: str
    says: str
    diverged_after: int | None
    """So many things that it was told, or None if it could explain them all."""
    step: int | None
    """During which step that was."""
    seen: str | None
    seconds: float | None = None
    """How long the walk had been going on at the end of that step."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Several numbers, in two."""

    least: float
    median: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread | None:
        return cls(least=min(numbers), median=median(numbers)) if numbers else None


class WrongModelFound(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong model, held to several walks or scripts."""

    name: str
    says: str
    held_to: int
    """How many walks or scripts there were."""
    diverged_in: tuple[str, ...]
    """In which of them it did not explain all; none means that it was not told from the right model."""
    steps: Spread | None
    """How many steps it took, where it diverged."""
    seconds: Spread | None


def controls(walks: Mapping[str, Walked], parameters: Parameters) -> dict[str, list[Control]]:
    """How far each wrong model could follow each of these walks; one that never diverges takes as long as the walk."""
    tasks = [(walked, parameters, wrong.name) for walked in walks.values() for wrong in WRONG_MODELS]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as pool:
        found = list(pool.map(_control, *zip(*tasks, strict=True))) if tasks else []
    size = len(WRONG_MODELS)
    return {name: found[number * size : (number + 1) * size] for number, name in enumerate(walks)}


def _control(walked: Walked, parameters: Parameters, name: str) -> Control:
    """In another process, which knows wrong models by their names."""
    return control(walked, parameters, wrong_model(name))


def control(walked: Walked, parameters: Parameters, wrong: WrongModel) -> Control:
    """How far a wrong model could follow a walk."""
    judged = judge(walked.events, wrong.parameters(parameters), wrong.reading, wrong.unconcerned)
    if judged.divergence is None:
        return Control(name=wrong.name, says=wrong.says, diverged_after=None, step=None, seen=None)
    step = step_of(walked.steps, judged.events)
    return Control(
        name=wrong.name,
        says=wrong.says,
        diverged_after=judged.events,
        step=step,
        seen=judged.divergence.seen,
        seconds=round(sum(done.took_ns for done in walked.steps[:step]) / 1e9, 3),
    )


def step_of(steps: Sequence[Done], events: int) -> int:
    """The number of the step during which the model was told so many things."""
    return bisect_left(steps, events, key=lambda done: done.events) + 1


def wrong_models_found(held: Mapping[str, Sequence[Control]]) -> list[WrongModelFound]:
    """For each wrong model what became of it in all walks or scripts, which have names; as the table has them."""
    return [_found(wrong, held) for wrong in WRONG_MODELS] if held else []


def _found(wrong: WrongModel, held: Mapping[str, Sequence[Control]]) -> WrongModelFound:
    mine = {where: one for where, tried in held.items() for one in tried if one.name == wrong.name}
    diverged = {where: one for where, one in mine.items() if one.step is not None}
    return WrongModelFound(
        name=wrong.name,
        says=wrong.says,
        held_to=len(mine),
        diverged_in=tuple(diverged),
        steps=Spread.of([one.step for one in diverged.values() if one.step is not None]),
        seconds=Spread.of([one.seconds for one in diverged.values() if one.seconds is not None]),
    )
