"""Run directories of walks, written with the harness's own types: what it writes is what the report must read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstep.node_logs import Excerpt
from lockstep.stepper.controls.evaluation import Control
from lockstep.stepper.driver.actions import Kill, Read, Step, Until, Wait, Write
from lockstep.stepper.model.description import Believed, Way
from lockstep.stepper.retrace.performer import MoveOutcome, Performed
from lockstep.stepper.retrace.runner import BrokenModelResult, Turn
from lockstep.stepper.retrace.suite import TraceVerdict, trace_walk
from lockstep.stepper.walk.coverage import CauseCount, Coverage
from lockstep.stepper.walk.session import Diverged, StepLine, WalkVerdict
from lockstep_model.verdicts import RunVerdict
from tests.reports.sample_runs import BREAKOUT, HOSTILE

COMMAND = "lockstep step --seed 7 --steps 4 --mode zk"
DECISION = "leader 2 in epoch 1, ISR [2, 3], partition epoch 1, gone [1] (a session ended: 1)"
STEPS: tuple[Step, ...] = (
    Write(broker=1, acks=1, records=2),
    Kill(broker=1),
    Wait(until=Until.LED),
    Read(broker=2, offset=0),
)
LINES = [
    StepLine(
        step=str(step),
        action=step,
        seen="OFFSET_OUT_OF_RANGE",
        decisions=(DECISION,) if isinstance(step, Wait) else (),
        belief=4**number,
        took_ns=10**number * 1_000_000,
        events=2 * number,
    )
    for number, step in enumerate(STEPS, start=1)
]
COVERAGE = Coverage(
    answers={
        "write with acks=1": {"answered": 1},
        "kill": {"done": 1},
        "wait until a broker that runs leads": {"it came about": 1},
        "read to the high watermark": {"OFFSET_OUT_OF_RANGE": 1},
    },
    pairs={
        "write with acks=1": {"kill": 1},
        "kill": {"wait until a broker that runs leads": 1},
        "wait until a broker that runs leads": {"read to the high watermark": 1},
    },
    causes={"a session ended": CauseCount(certain=1, possible=1)},
)
CONTROLS = [
    Control(name="elect-anyone", says="a leader need not be in sync", diverged_after=None, step=None, seen=None),
    Control(name="late", says="nothing of interest", diverged_after=9, step=4, seen="OFFSET_OUT_OF_RANGE"),
    Control(name="early", says="a write with acks=1 waits for the ISR", diverged_after=3, step=1, seen="written at 0"),
]
DIVERGED = Diverged(
    step=5,
    words="ask 2 for its log end",
    seen="offset 1 of epoch 0",
    permitted=("offset 2 of epoch 0", "NOT_LEADER_OR_FOLLOWER"),
    decisions=("leader 3 in epoch 2, ISR [3], partition epoch 2",),
    states=3,
    belief=(
        Believed(part="broker 1", ways=(Way(words="does not run; on its disk log 0 to 2", states=3),)),
        Believed(part="broker 2", ways=(Way(words="leads in epoch 1", states=2), Way(words="follows 1", states=1))),
        Believed(part="broker 3", ways=(Way(words="follows 2 in epoch 1", states=3),), others=4),
    ),
    examples=(("broker 1: does not run", "broker 2: leads in epoch 1"),),
    logs=(Excerpt(node="broker-1", lines=()), Excerpt(node="broker-2", lines=("line one", "line two"), left_out=7)),
    shrunk=("kill 1", "ask 2 for its log end"),
)


def verdict(word: str = "pass") -> WalkVerdict:
    return WalkVerdict(
        verdict=RunVerdict(word),
        run="20261116T080000Z-step-7",
        steps=4,
        seconds=2.5,
        quick_steps_per_second=41.5,
        largest_belief=247,
        coverage=COVERAGE,
    )


def pass_walk(directory: Path) -> Path:
    """Four steps, of which the model explains everything, and three wrong models."""
    return write(directory, msgspec.structs.replace(verdict(), controls=CONTROLS))


def diverged_walk(directory: Path) -> Path:
    return write(directory, msgspec.structs.replace(verdict("violation"), diverged=DIVERGED))


def undecided_walk(directory: Path) -> Path:
    return write(directory, msgspec.structs.replace(verdict("undecided"), reason="more than 20000 states explain it"))


def trace(name: str = "kip101", turn: Turn = Turn.NOT_TAKEN, **others: object) -> TraceVerdict:
    action = Performed(position=8, action="2 fetches from 0", outcome=MoveOutcome.NOT_DONE, seen="FENCED_LEADER_EPOCH")
    verdict = TraceVerdict(
        name=name,
        breaks="strong-isr",
        seen=True,
        turn=turn,
        finding=None,
        notice=None,
        stopped_by="2 fetches from 0",
        broken_model=BrokenModelResult.NOT_APART,
        lacks="fetch-leader-epoch",
        brokers=(1, 2, 3),
        actions=(action,),
        evidence=None,
        attempts=1,
        steps=4,
        seconds=2.5,
    )
    return msgspec.structs.replace(verdict, **others)


def retraced_walk(directory: Path) -> Path:
    """A counterexample along which a cluster was led, in the run directory of several."""
    return write(directory, trace_walk(verdict(), trace()))


def permitted_walk(directory: Path) -> Path:
    return write(directory, trace_walk(verdict(), PERMITTED))


def hostile_walk(directory: Path) -> Path:
    """Markup, script and control characters wherever a broker's answer or its log could have put them."""
    bad = f"{HOSTILE} {BREAKOUT} {'x' * 5000}"
    diverged = msgspec.structs.replace(
        DIVERGED,
        words=bad,
        seen=bad,
        permitted=(bad,),
        decisions=(bad,),
        belief=(Believed(part=bad, ways=(Way(words=bad, states=1),)),),
        examples=((bad,),),
        logs=(Excerpt(node=bad, lines=(bad,)),),
        shrunk=(bad,),
    )
    control = Control(name=bad, says=bad, diverged_after=1, step=1, seen=bad)
    coverage = Coverage(answers={bad: {bad: 1}}, pairs={bad: {bad: 1}}, causes={bad: CauseCount(certain=1, possible=1)})
    judged = msgspec.structs.replace(
        verdict("violation"), diverged=diverged, controls=[control], coverage=coverage, wrong_model=bad, run=bad
    )
    steps = [msgspec.structs.replace(line, step=bad, seen=bad, decisions=(bad,)) for line in LINES]
    return write(directory, judged, steps=steps, command=bad)


def write(
    directory: Path, judged: WalkVerdict, *, steps: Sequence[StepLine] | None = None, command: str = COMMAND
) -> Path:
    describe(directory, scenario="step", command=command)
    (directory / "verdict.json").write_bytes(msgspec.json.encode(judged))
    write_steps(directory, steps or LINES)
    return directory


def write_steps(directory: Path, steps: Sequence[StepLine]) -> None:
    (directory / "steps.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in steps))


def describe(directory: Path, *, scenario: str, command: str) -> None:
    """A fresh run directory, with its `run.json`."""
    directory.mkdir(parents=True)
    run = {
        "run": directory.name,
        "scenario": scenario,
        "seed": 7,
        "spec": {"kafka": "3.9.2", "mode": "zk", "brokers": 3},
        "backend": "process",
        "command": command,
        "replay": command,
        "clock": {"monotonic_ns": 1, "utc": "2026-11-16T08:00:00.000000Z"},
        "nodes": [],
        "lockstep": "0.1.0",
        "environment": {"cpus": 2},
    }
    (directory / "run.json").write_text(json.dumps(run))


PERMITTED = trace(
    "kip320:hw-epoch",
    Turn.PERMITTED,
    finding="docs/findings.md: what is known",
    evidence="leader-candidate-completeness: 2 lacks a record",
)
