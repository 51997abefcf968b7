"""The shortest steps that still make a cluster diverge: what is not needed is left out, on a fresh topic each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstep.stepper.driver.actions import (
    Ask,
    AskEpochEnd,
    Crash,
    Cut,
    GroupStep,
    Kill,
    Mend,
    Pause,
    Read,
    Resume,
    Start,
    Step,
    Stop,
    Write,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.walk.generator import Situation
from lockstep.stepper.walk.runner import Steps

Diverges = Callable[[Sequence[Step]], bool]
"""Whether a cluster still diverges when it takes these steps."""

ATTEMPTS = 40
"""How often at most: each attempt is a walk on a live cluster."""


def shrunk(
    steps: Sequence[Step], diverges: Diverges, *, attempts: int = ATTEMPTS, in_time: Callable[[], bool] = lambda: True
) -> tuple[Step, ...]:
    """Leave out halves, quarters and so on down to single steps, as long as what is left still diverges.

    The last step is what was seen to diverge, and stays. What is left is the shortest found, not the shortest there is:
    no further attempt is begun when there were so many, or when it is no longer `in_time`.
    """
    kept, last = list(steps[:-1]), steps[-1]
    size = max(1, len(kept) // 2)
    while kept and attempts > 0 and in_time():
        start = 0
        before = len(kept)
        while start < len(kept) and attempts > 0 and in_time():
            fewer = [*kept[:start], *kept[start + size :]]
            attempts -= 1
            if diverges([*fewer, last]):
                kept = fewer
            else:
                start += size
        if size == 1 and len(kept) == before:
            break
        size = max(1, size // 2)
    return *kept, last


def in_order(steps: Sequence[Step]) -> Steps:
    """These steps, without those that make no sense where others were left out."""
    left = iter(steps)

    def next_step(situation: Situation, _: Done | None) -> Step | None:
        return next((step for step in left if makes_sense(step, situation)), None)

    return next_step


def makes_sense(step: Step, now: Situation) -> bool:
    """Whether a step can be taken at all: nobody asks a broker that does not run, or starts one that does."""
    if isinstance(step, GroupStep):
        return step.broker in now.running and now.groups is not None and now.groups.calm
    match step:
        case Write() | Read() | Ask() | AskEpochEnd() | Kill() | Crash() | Stop() | Pause():
            return step.broker in now.running
        case Start():
            return step.broker in now.ended
        case Resume():
            return step.broker in now.paused
        case Cut():
            return (step.follower, step.leader) not in now.cut
        case Mend():
            return (step.follower, step.leader) in now.cut
        case _:
            return True
