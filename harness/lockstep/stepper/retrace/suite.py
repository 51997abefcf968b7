"""Replays several counterexamples as one run: a fresh cluster, a topic for each, and a verdict on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstep.cluster.backends import Backend
from lockstep.errors import UsageError
from lockstep.progress import Progress
from lockstep.spec.cluster import ClusterSpec, Mode
from lockstep.stepper.controls.wrong_models import WrongModel
from lockstep.stepper.retrace.moves import NotReplayable, read
from lockstep.stepper.retrace.performer import MoveOutcome, Performed
from lockstep.stepper.retrace.runner import REPLAY_OVERRIDES, BrokenModelResult, Replayed, Turn, replay
from lockstep.stepper.retrace.traces import PUBLISHED, Trace, find, names
from lockstep.stepper.walk.session import EndedSession, Session, WalkVerdict, open_session, save_verdict, seconds_of
from lockstep_model.verdicts import RunVerdict, worst

BROKERS = 3
"""Largest number of brokers in any counterexample."""


class TraceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one counterexample. Its steps and events are in `traces/<its name>`."""

    name: str
    breaks: str
    """The invariant that the broken protocol violates, by its name in the specification."""
    seen: bool
    """Whether a violation of it can be observed on a live cluster."""
    turn: Turn
    finding: str | None
    """The finding that documents that Kafka takes this bad turn, if it is known to."""
    notice: str | None
    """A documented violation that did not occur."""
    stopped_by: str | None
    """The first action that Kafka did not take, and what was observed instead."""
    broken_model: BrokenModelResult
    lacks: str | None
    """The guard that the broken model lacks."""
    brokers: tuple[int, ...]
    """Ids of the brokers that play brokers 0, 1, ... of the trace."""
    actions: tuple[Performed, ...]
    """In the order in which they were taken on the cluster."""
    evidence: str | None
    attempts: int
    steps: int
    seconds: float


class TraceWalk(WalkVerdict, frozen=True, kw_only=True):
    """`verdict.json` of one counterexample: that of its walk, and the result of the replay."""

    trace: TraceVerdict


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A counterexample that cannot be replayed, and why."""

    name: str
    why: str


class RetraceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a run of counterexamples."""

    verdict: RunVerdict
    run: str
    kafka: str
    mode: str
    seconds: float
    wrong_model: str | None
    traces: list[TraceVerdict]
    skipped: list[Skipped]


def names_for(spec: ClusterSpec) -> tuple[str, ...]:
    """The counterexamples of the published variants, and of the mutants of the model of this cluster's version."""
    if spec.mode is Mode.ZK:
        machine = "zk-3.9"
    else:
        release = tuple(int(part) for part in spec.kafka.partition("-")[0].split(".")[:2])
        machine = "kraft-4" if release >= (4, 1) else "kraft-3.9"
    return tuple(name for name in names() if name in PUBLISHED or name.startswith(f"{machine}:"))


def brokers_for(mode: Mode) -> int:
    """Number of brokers that a cluster needs. In ZooKeeper mode one more: the controller has no replica."""
    return BROKERS + (mode is Mode.ZK)


def require_replayable(trace: Trace) -> None:
    """Raise `NotReplayable` if a counterexample has an action that cannot be brought about on a live cluster."""
    for action in trace.actions:
        read(action)


def retrace(
    spec: ClusterSpec,
    *,
    backend: Backend,
    asked: Sequence[str],
    runs: Path,
    progress: Progress,
    wrong: WrongModel | None = None,
) -> EndedSession[RetraceVerdict]:
    """Replay the named counterexamples, or `all` that fit the cluster, one after the other on a fresh cluster.

    A `wrong` model, if given, is tracked instead of the right one: it takes the bad turn, so Kafka seems to diverge.
    """
    if spec.brokers != (needed := brokers_for(spec.mode)):
        besides = f", and in ZooKeeper mode another one is the controller: they need {needed}"
        needs = besides if needed > BROKERS else f": they need {needed}"
        raise UsageError(f"counterexamples have up to {BROKERS} brokers{needs}")
    traces, skipped = _searched(spec, asked, progress)
    command = ["retrace", *asked, *(["--wrong-model", wrong.name] if wrong else [])]
    with open_session(
        spec, backend=backend, settings=REPLAY_OVERRIDES, asked=command, runs=runs, progress=progress
    ) as session:
        found = [_retrace(session, trace, wrong) for trace in traces]
    verdict = RetraceVerdict(
        verdict=worst(one.turn.verdict for one in found),
        run=session.name,
        kafka=spec.kafka,
        mode=spec.mode,
        seconds=seconds_of(found),
        wrong_model=None if wrong is None else wrong.name,
        traces=found,
        skipped=skipped,
    )
    return session.end(verdict)


def _retrace(session: Session, trace: Trace, wrong: WrongModel | None) -> TraceVerdict:
    directory = walk_of(session.run.path, trace.name)
    with session.recording(directory, trace.name) as on_step:
        replayed = replay(session.cluster, trace, on_step, wrong=wrong)
    verdict = trace_verdict(replayed)
    save_verdict(directory, trace_walk(session.judged(directory, replayed.walked, wrong), verdict))
    return verdict


def walk_of(run: Path, name: str) -> Path:
    """The directory with the steps and events of a counterexample."""
    return run / "traces" / name.replace(":", ".")


def _searched(spec: ClusterSpec, asked: Sequence[str], progress: Progress) -> tuple[list[Trace], list[Skipped]]:
    """Search for the counterexamples. With `all`, those that cannot be replayed are skipped."""
    everything = list(asked) == ["all"]
    traces: list[Trace] = []
    skipped: list[Skipped] = []
    with progress.action("searching for counterexamples"):
        for name in names_for(spec) if everything else asked:
            trace = find(name)
            try:
                require_replayable(trace)
            except NotReplayable as error:
                if not everything:
                    raise
                skipped.append(Skipped(name=name, why=str(error)))
            else:
                traces.append(trace)
    return traces, skipped


def trace_verdict(replayed: Replayed) -> TraceVerdict:
    """The result of a replay, for the run directory."""
    trace, walked = replayed.trace, replayed.walked
    stopped = (f"{one.action}: {one.seen}" for one in replayed.performed if one.outcome is MoveOutcome.NOT_DONE)
    return TraceVerdict(
        name=trace.name,
        breaks=trace.breaks,
        seen=replayed.is_seen,
        turn=replayed.turn,
        finding=None if replayed.known is None else replayed.known.finding,
        notice=replayed.notice,
        stopped_by=next(stopped, None),
        broken_model=replayed.broken_model,
        lacks=trace.lacks,
        brokers=replayed.brokers,
        actions=replayed.performed,
        evidence=replayed.evidence,
        attempts=replayed.attempts,
        steps=len(walked.steps),
        seconds=round(walked.seconds, 3),
    )


def trace_walk(walk: WalkVerdict, trace: TraceVerdict) -> TraceWalk:
    """The verdict on the walk of a replay, with the replay's own verdict and evidence in it."""
    told = {name: getattr(walk, name) for name in WalkVerdict.__struct_fields__}
    return TraceWalk(**{**told, "verdict": trace.turn.verdict, "reason": trace.evidence}, trace=trace)
