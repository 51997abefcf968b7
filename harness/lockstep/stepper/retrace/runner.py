"""One counterexample on a live cluster, and whether Kafka took the bad turn."""

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
from lockstep.stepper.model.belief import BeliefTooLarge
from lockstep.stepper.retrace.performer import Performance, Performed
from lockstep.stepper.retrace.permitted_turns import Known, known_of
from lockstep.stepper.retrace.promises import CALLED, UNSEEN, Broken, broken
from lockstep.stepper.retrace.traces import Trace
from lockstep.stepper.walk.generator import Situation
from lockstep.stepper.walk.runner import Walked, parameters_of, scripted, timing_of, walk
from lockstep_model.parameters import Parameters

REPLAY_OVERRIDES = SCRIPT_OVERRIDES
"""Clusters for counterexamples are like those for scripts: the lag time passes soon."""


class Turn(StrEnum):
    """Whether Kafka took the bad turn."""

    TAKEN = "taken"
    UNDECIDED = "undecided"
    PERMITTED = "permitted"  # taken, as it is known to be
    NOT_TAKEN = "not taken"

    @property
    def verdict(self) -> str:
        """What it makes of the run."""
        return {"taken": "violation", "undecided": "undecided"}.get(self, "pass")


class Told(StrEnum):
    """Whether a model without the guard that the trace lacks was told apart from Kafka by this."""

    APART = "diverged"
    NOT_APART = "explains it too"
    TOO_LARGE = "too many states"
    NONE = "no such model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of a counterexample."""

    trace: Trace
    brokers: tuple[int, ...]
    """The ids of the brokers that the trace numbers from 0 on."""
    walked: Walked
    performed: tuple[Performed, ...]
    broken: tuple[Broken, ...]
    """Every promise that was seen not to be kept."""
    not_reached: str | None
    broken_model: Told
    known: Known | None
    """What is known of Kafka's taking the bad turn."""
    attempts: int = 1

    @property
    def turn(self) -> Turn:
        """What is known of Kafka is permitted only where all was seen to the end, which the right model explains."""
        permitted = self.known is not None and self.known.permits(one.promise for one in self.broken)
        if self.walked.divergence is not None or (self.broken and not permitted):
            return Turn.TAKEN
        if self.not_reached is not None or self.walked.undecided is not None:
            return Turn.UNDECIDED
        return Turn.PERMITTED if permitted else Turn.NOT_TAKEN

    @property
    def notice(self) -> str | None:
        """What should be looked into, though no promise is broken by it."""
        if self.known is None or self.turn is not Turn.NOT_TAKEN:
            return None
        return f"Kafka is known to take the bad turn of {self.trace.name}, and did not: look into {self.known.finding}"

    @property
    def promise(self) -> str:
        """The promise that the trace breaks, by the name that it has here."""
        return CALLED.get(self.trace.breaks, self.trace.breaks)

    @property
    def is_seen(self) -> bool:
        """Whether it could be seen on a live cluster that it is broken."""
        return self.promise not in UNSEEN

    @property
    def evidence(self) -> str | None:
        """Why the bad turn was taken, or why that is not known."""
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
    """Replay a counterexample on a fresh topic; again, if it came to no end."""
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
    delete(cluster, walked.topic)  # leaders ask for the ISRs of all their partitions at once
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
    """The brokers that are those of the trace.

    In ZooKeeper mode none of them is the controller: what that one decides, and what it asks of itself, passes no link.
    """
    others = {controller(cluster).spec.id} if cluster.spec.mode is Mode.ZK else set()
    return tuple(id_ for id_ in cluster.broker_ids if id_ not in others)[: trace.brokers]


def _held(walked: Walked, parameters: Parameters, lacks: str | None) -> Told:
    """Hold the model that lacks the guard to what was seen."""
    if lacks is None:
        return Told.NONE
    try:
        judged = judge(walked.events, replace(parameters, dropped=frozenset({lacks})))
    except BeliefTooLarge:
        return Told.TOO_LARGE
    return Told.NOT_APART if judged.divergence is None else Told.APART
