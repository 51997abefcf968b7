"""Run directories of many walks, scripts and counterexamples, written with the harness's own types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from lockstep.stepper.conformance import Finding
from lockstep.stepper.conformance.suite import (
    ClaimVerdict,
    ConformanceVerdict,
    ScriptVerdict,
    conformance,
)
from lockstep.stepper.controls.evaluation import Spread, WrongModelFound
from lockstep.stepper.retrace.runner import Turn
from lockstep.stepper.retrace.suite import RetraceVerdict, Skipped, TraceVerdict, trace_walk, walk_of
from lockstep.stepper.walk.seeds import SeededWalk, WalksVerdict
from lockstep.stepper.walk.session import WalkVerdict
from lockstep_model.verdicts import worst
from tests.reports import sample_walks
from tests.reports.sample_runs import BREAKOUT, HOSTILE
from tests.reports.sample_walks import COVERAGE, DIVERGED, LINES

STEP_COMMAND = "lockstep step --seeds 3,5 --steps 4"
RETRACE_COMMAND = "lockstep retrace all --mode zk"
CONFORM_COMMAND = "lockstep conform --claims 34,68"
WRONG_MODELS = [
    WrongModelFound(
        name="elr",
        says="there are none",
        held_to=2,
        diverged_in=("3", "5"),
        steps=Spread(least=2, median=3.5),
        seconds=Spread(least=0.25, median=1.5),
    ),
    WrongModelFound(
        name="elect-anyone", says="a leader need not be in sync", held_to=2, diverged_in=(), steps=None, seconds=None
    ),
]
BAD = f"{HOSTILE} {BREAKOUT} {'x' * 5000}"


def walks(directory: Path, taken: Mapping[int, WalkVerdict], **others: object) -> Path:
    sample_walks.describe(directory, scenario="step", command=STEP_COMMAND)
    verdict = WalksVerdict(
        verdict=worst(walk.verdict for walk in taken.values()),
        run=directory.name,
        steps=8,
        seconds=5.0,
        coverage=COVERAGE,
        walks=[SeededWalk(seed=seed, walk=walk) for seed, walk in taken.items()],
    )
    verdict = msgspec.structs.replace(verdict, **others)
    (directory / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    for seed in taken:
        into = directory / "walks" / str(seed)
        into.mkdir(parents=True)
        sample_walks.write_steps(into, LINES)
    return directory


def pass_walks(directory: Path) -> Path:
    passed = sample_walks.verdict()
    return walks(directory, {3: passed, 5: passed}, wrong_models=WRONG_MODELS)


def diverged_walks(directory: Path) -> Path:
    diverged = msgspec.structs.replace(sample_walks.verdict("violation"), diverged=DIVERGED)
    return walks(directory, {3: sample_walks.verdict(), 5: diverged})


def undecided_walks(directory: Path) -> Path:
    undecided = msgspec.structs.replace(sample_walks.verdict("undecided"), reason="more than 100000 states explain it")
    return walks(directory, {3: undecided, 5: sample_walks.verdict()})


def hostile_walks(directory: Path) -> Path:
    diverged = msgspec.structs.replace(DIVERGED, words=BAD, seen=BAD, permitted=(BAD,), shrunk=(BAD,))
    walk = msgspec.structs.replace(sample_walks.verdict("violation"), diverged=diverged, wrong_model=BAD)
    return walks(directory, {3: walk}, wrong_models=[msgspec.structs.replace(WRONG_MODELS[0], name=BAD, says=BAD)])


def script(finding: Finding = Finding.HOLDS, **others: object) -> ScriptVerdict:
    verdict = ScriptVerdict(
        name="leader-writes",
        claims=(34,),
        shows="Only the leader takes writes.",
        finding=finding,
        attempts=1,
        steps=4,
        seconds=1.5,
    )
    return msgspec.structs.replace(verdict, **others)


def conformed(directory: Path, first: ScriptVerdict, **others: object) -> Path:
    """Two scripts, of which the second holds."""
    sample_walks.describe(directory, scenario="conform", command=CONFORM_COMMAND)
    second = script(name="min-isr", claims=(68,), shows="acks=all is refused.", attempts=2)
    verdict = ConformanceVerdict(
        verdict=first.finding.verdict,
        run=directory.name,
        kafka="3.9.2",
        mode="zk",
        seconds=3.0,
        claims=[
            ClaimVerdict(
                claim=one.claims[0],
                verdict=one.finding,
                seconds=one.seconds,
                scripts=(one.name,),
                evidence=one.evidence,
            )
            for one in (first, second)
        ],
        scripts=[first, second],
    )
    verdict = msgspec.structs.replace(verdict, **others)
    (directory / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    rows = [conformance(claim, verdict) for claim in verdict.claims]
    (directory / "conformance.json").write_bytes(msgspec.json.encode(rows))
    for one, lines in ((first, LINES), (second, LINES * 2)):
        into = directory / "scripts" / one.name
        into.mkdir(parents=True)
        sample_walks.write_steps(into, lines)
    return directory


def pass_conformance(directory: Path) -> Path:
    return conformed(directory, script(), wrong_models=WRONG_MODELS)


def violated_conformance(directory: Path) -> Path:
    return conformed(
        directory, script(Finding.VIOLATED, evidence="it is not so that followers refuse", diverged=DIVERGED)
    )


def undecided_conformance(directory: Path) -> Path:
    return conformed(directory, script(Finding.UNDECIDED, evidence="somebody else leads", attempts=3))


def hostile_conformance(directory: Path) -> Path:
    return conformed(directory, script(Finding.VIOLATED, evidence=BAD, shows=BAD))


def retraced(directory: Path, *traces: TraceVerdict, **others: object) -> Path:
    sample_walks.describe(directory, scenario="retrace", command=RETRACE_COMMAND)
    verdict = RetraceVerdict(
        verdict=worst(trace.turn.verdict for trace in traces),
        run=directory.name,
        kafka="3.9.2",
        mode="zk",
        seconds=5.0,
        wrong_model=None,
        traces=list(traces),
        skipped=[Skipped(name="kraft-3.9:fetch-broker-epoch", why="'1 sends a fetch to 0' cannot be brought about")],
    )
    verdict = msgspec.structs.replace(verdict, **others)
    (directory / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    for trace in traces:
        sample_walks.write(walk_of(directory, trace.name), trace_walk(sample_walks.verdict(), trace))
    return directory


def pass_retrace(directory: Path) -> Path:
    """One is not taken, and one that is known is."""
    return retraced(directory, sample_walks.trace(), sample_walks.PERMITTED)


def violation_retrace(directory: Path) -> Path:
    taken = sample_walks.trace("kip279", Turn.TAKEN, evidence="committed-reads-stable: 2 lacks a record")
    return retraced(directory, taken, sample_walks.PERMITTED)


def undecided_retrace(directory: Path) -> Path:
    return retraced(directory, sample_walks.trace(turn=Turn.UNDECIDED, evidence="somebody else leads"))


def hostile_retrace(directory: Path) -> Path:
    taken = sample_walks.trace(turn=Turn.TAKEN, evidence=BAD, breaks=BAD, notice=BAD)
    return retraced(directory, taken, wrong_model=BAD, skipped=[Skipped(name=BAD, why=BAD)])
