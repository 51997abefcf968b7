"""Replays one counterexample on a live cluster, and decides whether Kafka took its bad turn.

The bad turn of a counterexample is the step by which the broken protocol violates an invariant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from lockstep.cluster.cluster import Cluster
from lockstep.faults.support.roles import controller
from lockstep.faults.support.topics import delete
from lockstep.spec.cluster import Mode
from lockstep.stepper.conformance.runner import ATTEMPTS, SCRIPT_OVERRIDES
from lockstep.stepper.conformance.script import NotReached, Setting, Steps
from lockstep.stepper.controls.wrong_models import WrongModel, judge
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.model.belief import BeliefTooLarge
from lockstep.stepper.retrace.performer import Performance, Performed
from lockstep.stepper.retrace.permitted_turns import Known, known_of
from lockstep.stepper.retrace.promises import CALLED, UNSEEN, Broken, broken
from lockstep.stepper.retrace.traces import Trace
from lockstep.stepper.walk.runner import Walked, parameters_of, scripted, timing_of, walk
from lockstep_model.parameters import Parameters
from lockstep_model.verdicts import RunVerdict

REPLAY_OVERRIDES = SCRIPT_OVERRIDES
"""Broker configs for replays, the same as for conformance scripts: a short replica.lag.time.max.ms."""


class Turn(StrEnum):
    """Whether Kafka took the bad turn."""

    TAKEN = "taken"
    UNDECIDED = "undecided"
    PERMITTED = "permitted"  # taken, exactly as documented
    NOT_TAKEN = "not taken"

    @property
    def verdict(self) -> RunVerdict:
        """The verdict on the replay."""
        return {Turn.TAKEN: RunVerdict.VIOLATION, Turn.UNDECIDED: RunVerdict.UNDECIDED}.get(self, RunVerdict.PASS)


class BrokenModelResult(StrEnum):
    """Whether the model without the guard that the trace lacks diverges on the events of this replay."""

    APART = "diverged"
    NOT_APART = "explains it too"
    TOO_LARGE = "too many states"
    NONE = "no such model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A counterexample that was replayed, and its result."""

    trace: Trace
    brokers: tuple[int, ...]
    """Ids of the brokers that play brokers 0, 1, ... of the trace."""
    walked: Walked
    performed: tuple[Performed, ...]
    broken: tuple[Broken, ...]
    """Every invariant that was observed to be violated."""
    not_reached: str | None
    """Why the replay could not be completed, if so."""
    broken_model: BrokenModelResult
    known: Known | None
    """The documented violation of this counterexample, if Kafka is known to follow it."""
    attempts: int = 1

    @property
    def turn(self) -> Turn:
        """Whether Kafka took the bad turn.

        A documented violation is permitted only if the replay was completed and the right model explains every event.
        """
        permitted = self.known is not None and self.known.permits(one.promise for one in self.broken)
        if self.walked.divergence is not None or (self.broken and not permitted):
            return Turn.TAKEN
        if self.not_reached is not None or self.walked.undecided is not None:
            return Turn.UNDECIDED
        return Turn.PERMITTED if permitted else Turn.NOT_TAKEN

    @property
    def notice(self) -> str | None:
        """A notice if a documented violation did not occur: Kafka may have fixed it."""
        if self.known is None or self.turn is not Turn.NOT_TAKEN:
            return None
        return f"Kafka is known to take the bad turn of {self.trace.name}, and did not: look into {self.known.finding}"

    @property
    def promise(self) -> str:
        """The invariant that the trace violates, by our name."""
        return CALLED.get(self.trace.breaks, self.trace.breaks)

    @property
    def is_seen(self) -> bool:
        """Whether a violation of that invariant can be observed on a live cluster."""
        return self.promise not in UNSEEN

    @property
    def evidence(self) -> str | None:
        """The observed violation or divergence, or the reason why the replay is undecided."""
        if self.turn is Turn.UNDECIDED:
            return self.not_reached or self.walked.undecided
        if self.broken:
            return f"{self.broken[0].promise}: {self.broken[0].evidence}"
        if self.walked.divergence is not None:
            return f"{self.walked.diverged_at}: {self.walked.divergence.seen}"
        return None


def replay(
    cluster: Cluster,
    trace: Trace,
    on_step: Callable[[Done], None] = lambda _: None,
    *,
    wrong: WrongModel | None = None,
) -> Replayed:
    """Replay a counterexample on a new topic; again while the result is undecided, up to `ATTEMPTS` times."""
    for attempt in range(1, ATTEMPTS + 1):
        replayed = replace(_replay(cluster, trace, on_step, wrong), attempts=attempt)
        if replayed.turn is not Turn.UNDECIDED:
            break
    return replayed


def _replay(cluster: Cluster, trace: Trace, on_step: Callable[[Done], None], wrong: WrongModel | None) -> Replayed:
    replicas = played_by(cluster, trace)
    parameters = replace(parameters_of(cluster), min_isr=trace.min_isr, replication=trace.brokers)
    setting = Setting(parameters=parameters, lag_ms=timing_of(cluster).lag_ms)
    performance = Performance(trace)
    not_reached: str | None = None

    def script(now: Situation) -> Steps[None]:
        nonlocal not_reached
        try:
            yield from performance.script(setting, now)
        except NotReached as error:
            not_reached = str(error)

    walked = walk(cluster, scripted(script), parameters, on_step, replicas=replicas, wrong=wrong)
    delete(cluster, walked.topic)  # AlterPartition covers all partitions of a leader
    return Replayed(
        trace=trace,
        brokers=replicas,
        walked=walked,
        performed=tuple(performance.performed),
        broken=tuple(broken(walked.events, parameters)),
        not_reached=not_reached,
        broken_model=_held(walked, parameters, trace.lacks),
        known=known_of(trace.name, parameters.mode),
    )


def played_by(cluster: Cluster, trace: Trace) -> tuple[int, ...]:
    """The brokers that play those of the trace.

    In ZooKeeper mode the controller is not among them: its requests to itself pass no link that could be blocked.
    """
    others = {controller(cluster).spec.id} if cluster.spec.mode is Mode.ZK else set()
    return tuple(id_ for id_ in cluster.broker_ids if id_ not in others)[: trace.brokers]


def _held(walked: Walked, parameters: Parameters, lacks: str | None) -> BrokenModelResult:
    """Check the events against the model that lacks the guard."""
    if lacks is None:
        return BrokenModelResult.NONE
    try:
        judged = judge(walked.events, replace(parameters, dropped=frozenset({lacks})))
    except BeliefTooLarge:
        return BrokenModelResult.TOO_LARGE
    return BrokenModelResult.NOT_APART if judged.divergence is None else BrokenModelResult.APART
