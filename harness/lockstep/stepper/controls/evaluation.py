"""Checks every wrong model against recorded events: when each diverged, in one walk or script and over many."""

from __future__ import annotations

import multiprocessing
import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import Protocol

import msgspec

from lockstep.stepper.controls.wrong_models import WRONG_MODELS, WrongModel, judge, wrong_model
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.model.events import Events
from lockstep_model.parameters import Parameters


class RecordedWalk(Protocol):
    """A walk that was taken, as far as a wrong model is held to it."""

    @property
    def steps(self) -> Sequence[Done]: ...

    @property
    def events(self) -> Sequence[Events]: ...


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one wrong model on the events of one walk."""

    name: str
    says: str
    diverged_after: int | None
    """Number of events up to the divergence; None if the wrong model explains them all."""
    step: int | None
    """Number of the action during which it diverged."""
    seen: str | None
    """The observation that it does not explain."""
    seconds: float | None = None
    """Duration of the walk up to the end of that action."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Minimum and median of several numbers."""

    least: float
    median: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread | None:
        return cls(least=min(numbers), median=median(numbers)) if numbers else None


class WrongModelFound(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one wrong model over several walks or scripts."""

    name: str
    says: str
    held_to: int
    """Number of walks or scripts."""
    diverged_in: tuple[str, ...]
    """Those in which it diverged. If empty, nothing told it apart from the right model."""
    steps: Spread | None
    """Number of actions until it diverged."""
    seconds: Spread | None


def controls(walks: Mapping[str, RecordedWalk], parameters: Parameters) -> dict[str, list[Control]]:
    """Check every wrong model against every walk, on all cores. A model that does not diverge reads all events."""
    tasks = [(walked, parameters, wrong.name) for walked in walks.values() for wrong in WRONG_MODELS]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as pool:
        found = list(pool.map(_control, *zip(*tasks, strict=True))) if tasks else []
    size = len(WRONG_MODELS)
    return {name: found[number * size : (number + 1) * size] for number, name in enumerate(walks)}


def _control(walked: RecordedWalk, parameters: Parameters, name: str) -> Control:
    """`control` in a worker process. The wrong model is passed by name, as its functions cannot be pickled."""
    return control(walked, parameters, wrong_model(name))


def control(walked: RecordedWalk, parameters: Parameters, wrong: WrongModel) -> Control:
    """Check one wrong model against the events of a walk."""
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
    """The number of the action during which the model had this number of events."""
    return bisect_left(steps, events, key=lambda done: done.events) + 1


def wrong_models_found(held: Mapping[str, Sequence[Control]]) -> list[WrongModelFound]:
    """The result of each wrong model over all walks or scripts, in the order of `WRONG_MODELS`."""
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
