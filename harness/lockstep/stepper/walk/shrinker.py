"""Shrinks a walk that diverged: removes actions as long as the rest still diverges on a new topic."""

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
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.walk.runner import Steps

Diverges = Callable[[Sequence[Step]], bool]
"""Whether a walk of these actions diverges."""

ATTEMPTS = 40
"""Maximum number of attempts. Each is a walk on a live cluster."""


def shrunk(
    steps: Sequence[Step], diverges: Diverges, *, attempts: int = ATTEMPTS, in_time: Callable[[], bool] = lambda: True
) -> tuple[Step, ...]:
    """Remove halves, quarters and so on down to single actions, as long as the rest still diverges.

    The last action, which was seen to diverge, always stays. The result is the shortest walk found, not the shortest
    possible: the search ends after `attempts`, or when it is no longer `in_time`.
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
    """These actions in order, without those that are impossible because an earlier one was removed."""
    left = iter(steps)

    def next_step(situation: Situation, _: Done | None) -> Step | None:
        return next((step for step in left if makes_sense(step, situation)), None)

    return next_step


def makes_sense(step: Step, now: Situation) -> bool:
    """Whether an action is possible in this situation: a request needs a running broker, a start a stopped one."""
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
