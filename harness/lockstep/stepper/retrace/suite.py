"""Counterexamples as a run of their own: one fresh cluster, a topic for each, a run directory, what Kafka did."""

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
from lockstep.stepper.retrace.performer import Outcome, Performed
from lockstep.stepper.retrace.runner import REPLAY_OVERRIDES, Replayed, Told, Turn, replay
from lockstep.stepper.retrace.traces import PUBLISHED, Trace, find, names
from lockstep.stepper.session import Ended, Session, WalkVerdict, open_session, save_verdict, seconds_of, worst

BROKERS = 3
"""No counterexample has more."""


class TraceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one counterexample; its steps and events are in `traces/<its name>`."""

    name: str
    breaks: str
    """What the broken machine breaks, by the name that it has in the specification."""
    seen: bool
    """Whether a live cluster lets see that it is broken."""
    turn: Turn
    finding: str | None
    """Where it is written down that Kafka takes this one."""
    notice: str | None
    """What should be looked into, though it is no violation."""
    stopped_by: str | None
    """The first action that Kafka did not take, and what it did instead."""
    broken_model: Told
    lacks: str | None
    """Which guard the broken model does without."""
    brokers: tuple[int, ...]
    """The ids of the brokers that the trace numbers from 0 on."""
    actions: tuple[Performed, ...]
    """In the order in which they were taken."""
    evidence: str | None
    attempts: int
    steps: int
    seconds: float


class TraceWalk(WalkVerdict, frozen=True, kw_only=True):
    """`verdict.json` of one counterexample: that of a walk, and of whom it was."""

    trace: TraceVerdict


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A counterexample that cannot be replayed, and why."""

    name: str
    why: str


class RetraceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of such a run."""

    verdict: str
    run: str
    kafka: str
    mode: str
    seconds: float
    wrong_model: str | None
    traces: list[TraceVerdict]
    skipped: list[Skipped]


def names_for(spec: ClusterSpec) -> tuple[str, ...]:
    """The counterexamples of the published variants, and of the mutants of what a cluster runs."""
    if spec.mode is Mode.ZK:
        machine = "zk-3.9"
    else:
        release = tuple(int(part) for part in spec.kafka.partition("-")[0].split(".")[:2])
        machine = "kraft-4" if release >= (4, 1) else "kraft-3.9"
    return tuple(name for name in names() if name in PUBLISHED or name.startswith(f"{machine}:"))


def brokers_for(mode: Mode) -> int:
    """How many brokers a cluster needs: in ZooKeeper mode one of them is the controller, and no replica."""
    return BROKERS + (mode is Mode.ZK)


def require_replayable(trace: Trace) -> None:
    """Raise `NotReplayable` where a counterexample has an action that cannot be brought about."""
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
) -> Ended[RetraceVerdict]:
    """Replay counterexamples, one after the other, on a fresh cluster: those of these names, or `all` that fit it.

    A `wrong` model takes the place of the right one: it takes the bad turn, so that Kafka seems to diverge.
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
    """Where the steps of a counterexample are."""
    return run / "traces" / name.replace(":", ".")


def _searched(spec: ClusterSpec, asked: Sequence[str], progress: Progress) -> tuple[list[Trace], list[Skipped]]:
    """Search for the counterexamples; of all, those that cannot be replayed are left out."""
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
    """What came of a counterexample, for the run directory."""
    trace, walked = replayed.trace, replayed.walked
    stopped = (f"{one.action}: {one.seen}" for one in replayed.performed if one.outcome is Outcome.NOT_DONE)
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
    """The verdict of the walk that a counterexample was, which is about its bad turn."""
    told = {name: getattr(walk, name) for name in WalkVerdict.__struct_fields__}
    return TraceWalk(**{**told, "verdict": trace.turn.verdict, "reason": trace.evidence}, trace=trace)
