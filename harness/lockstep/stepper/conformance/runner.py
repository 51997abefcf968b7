"""Runs one script on a live cluster, with the reference model beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from lockstep.cluster.cluster import Cluster
from lockstep.stepper.conformance.registry import ClaimScript
from lockstep.stepper.conformance.script import NotReached, Setting, Steps, Unexpected
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.walk.runner import OVERRIDES, Walked, parameters_of, scripted, timing_of, walk
from lockstep_model.verdicts import RunVerdict

SCRIPT_OVERRIDES = {**OVERRIDES, "replica.lag.time.max.ms": "1000"}
"""Broker settings for scripts: a follower leaves the ISR soon, as many scripts wait for that."""
ATTEMPTS = 3
"""How often an undecided script is run, as when a broker's session expires on a busy machine."""


class Finding(StrEnum):
    """The finding about a claim, the worst first."""

    VIOLATED = "violated"
    UNDECIDED = "undecided"
    HOLDS = "holds"

    @property
    def verdict(self) -> RunVerdict:
        """The verdict on a run with this finding."""
        return {
            Finding.VIOLATED: RunVerdict.VIOLATION,
            Finding.UNDECIDED: RunVerdict.UNDECIDED,
            Finding.HOLDS: RunVerdict.PASS,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The result of one script."""

    script: ClaimScript
    walked: Walked
    unexpected: str | None = None
    """The claim that the cluster violated, in the words of the script."""
    not_reached: str | None = None
    """The state of the partition that the script needed and did not see."""
    attempts: int = 1

    @property
    def finding(self) -> Finding:
        if self.unexpected is not None or self.walked.divergence is not None:
            return Finding.VIOLATED
        undecided = self.not_reached is not None or self.walked.undecided is not None
        return Finding.UNDECIDED if undecided else Finding.HOLDS

    @property
    def evidence(self) -> str | None:
        """Why the claim is violated or undecided; None if it holds."""
        if self.unexpected is not None:
            return f"it is not so that {self.unexpected}, after {self.walked.steps[-1].seen}"
        if self.walked.divergence is not None:
            return f"{self.walked.diverged_at}: {self.walked.divergence.seen}"
        return self.not_reached or self.walked.undecided


def run_script(cluster: Cluster, script: ClaimScript, on_step: Callable[[Done], None] = lambda _: None) -> Ran:
    """Run a script on a fresh topic, and again on another while it is undecided."""
    for attempt in range(1, ATTEMPTS + 1):
        ran = replace(_run(cluster, script, on_step), attempts=attempt)
        if ran.finding is not Finding.UNDECIDED:
            break
    return ran


def _run(cluster: Cluster, script: ClaimScript, on_step: Callable[[Done], None]) -> Ran:
    parameters = parameters_of(cluster)
    setting = Setting(parameters=parameters, lag_ms=timing_of(cluster).lag_ms)
    unexpected: str | None = None
    not_reached: str | None = None

    def judged(now: Situation) -> Steps[None]:
        nonlocal unexpected, not_reached
        try:
            yield from script.script(setting, now)
        except Unexpected as error:
            unexpected = str(error)
        except NotReached as error:
            not_reached = str(error)

    backwards = cluster.broker_ids[::-1]  # so that the order of the assignment differs from the order of broker ids
    walked = walk(cluster, scripted(judged), parameters, on_step, replicas=backwards)
    return Ran(script=script, walked=walked, unexpected=unexpected, not_reached=not_reached)
