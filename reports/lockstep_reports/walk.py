"""`report.html` of a walk: the reference model and a live cluster, step by step (`lockstep step`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lockstep_model.verdicts import RunVerdict
from lockstep_reports import words
from lockstep_reports.files import replace
from lockstep_reports.stepped_run import STEPS, Pairs, SteppedRun, judged, numbered, read_steps
from lockstep_reports.walk_chart import Point, chart
from lockstep_reports.walk_content import Control, Step, Trace, Turn, WalkVerdict

TRACES = "traces"
"""Where a run that replays counterexamples has the steps of each."""
DIVERGENCE = {RunVerdict.VIOLATION: "Divergence"}
"""What a violation is called where the model and a cluster are compared."""
SHOWN_STEPS = 1000
"""So many of the last steps are in the table, so that the page stays small."""
LAST_STEPS = 12
"""How many steps before a divergence are shown with it."""
DISTURBANCES = frozenset(
    {"kill", "crash", "stop", "start", "pause", "resume", "cut", "mend", "withhold", "release", "elect", "reassign"}
)
"""Steps that change what the cluster is like, and do not only ask or write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk(SteppedRun[WalkVerdict]):
    """Everything that the page is made of."""

    steps: Sequence[Step]

    @property
    def trace(self) -> Trace | None:
        return self.verdict.trace or None


def walks_of(run_dir: Path) -> list[Path]:
    """The walks in a run directory: it is one itself, or has one for each counterexample that was replayed."""
    directories = [run_dir, *sorted((run_dir / TRACES).glob("*"))]
    return [directory for directory in directories if (directory / STEPS).is_file()]


def render_walk(run_dir: Path) -> Path:
    """Write `report.html` of a walk, whole or not at all, and return its path."""
    return replace(run_dir.resolve() / "report.html", page(load_walk(run_dir)))


def load_walk(run_dir: Path) -> Walk:
    """Read the run directory of a walk."""
    directory = run_dir.resolve()
    notes: list[str] = []
    home = directory.parent.parent if directory.parent.name == TRACES else directory
    info, verdict = judged(directory, WalkVerdict, notes, "a walk", home=home)
    return Walk(
        directory=directory,
        scenario="walk" if verdict.trace is msgspec.UNSET else verdict.trace.name,
        verdict=verdict,
        info=info,
        notes=notes,
        seed=info.seed,
        steps=read_steps(directory / STEPS, notes),
    )


def page(walk: Walk) -> str:
    """The document, ready to be written."""
    verdict = walk.verdict
    return walk.page(
        "walk.html.j2",
        title=DIVERGENCE.get(verdict.verdict, "Permitted" if walk.trace and known(walk.trace) else ""),
        headline=headline(walk),
        numbers=_numbers(walk),
        diverged=verdict.diverged,
        trace=walk.trace,
        chart=chart(_points(walk), diverged=verdict.diverged is not None) if walk.steps else None,
        steps=numbered(walk.steps, SHOWN_STEPS),
        last=numbered(walk.steps, LAST_STEPS),
        coverage=verdict.coverage,
        pairs=Pairs.of(verdict.coverage.pairs),
        controls=sorted(verdict.controls, key=_by_step),
    )


def headline(walk: Walk) -> str:
    """One sentence why the verdict is what it is."""
    verdict = walk.verdict
    if (trace := walk.trace) is not None:
        why = f": {trace.evidence}" if trace.evidence else ""
        turn = "taken" if trace.turn is Turn.PERMITTED else trace.turn
        more = trace.notice or known(trace)
        told = f"The bad turn of {trace.name}, which breaks {trace.breaks}, was {turn}{why}."
        return f"{told} {more[0].upper()}{more[1:]}." if more else told
    wrong = f" The model is a wrong one ({verdict.wrong_model})." if verdict.wrong_model else ""
    if verdict.diverged is not None:
        return f"At step {verdict.diverged.step} the cluster did what no state of the model permits.{wrong}"
    steps = words.plural(verdict.steps, "step")
    if verdict.verdict is RunVerdict.UNDECIDED:
        return f"After {steps} the model could not be followed any further: {verdict.reason or 'no reason is given'}."
    held = sum(control.step is not None for control in verdict.controls)
    controls = f" {held} of {len(verdict.controls)} wrong models could not explain it." if verdict.controls else ""
    return (
        f"In {steps} the model explains everything that the cluster answered and decided; "
        f"never by more than {words.plural(verdict.largest_belief, 'state')}.{controls}{wrong}"
    )


def known(trace: Trace) -> str:
    """That a bad turn was taken as it is known to be, if so."""
    return f"permitted: that is known ({trace.finding})" if trace.turn is Turn.PERMITTED else ""


def _numbers(walk: Walk) -> list[tuple[str, str]]:
    verdict, coverage = walk.verdict, walk.verdict.coverage
    return [
        ("steps", words.count(verdict.steps)),
        ("duration", words.seconds(verdict.seconds)),
        ("quick steps / s", f"{verdict.quick_steps_per_second:g}"),
        ("largest belief", words.count(verdict.largest_belief)),
        ("decisions", words.count(sum(len(step.decisions) for step in walk.steps))),
        ("kinds of steps", words.count(len(coverage.answers))),
        ("pairs of kinds", words.count(sum(map(len, coverage.pairs.values())))),
    ]


def _points(walk: Walk) -> list[Point]:
    return [
        Point(
            step=number,
            words=step.step,
            belief=step.belief,
            took_s=step.took_ns / 1e9,
            disturbance=str(step.action.get("step")) in DISTURBANCES,
            decisions=tuple(step.decisions),
        )
        for number, step in enumerate(walk.steps, start=1)
    ]


def _by_step(control: Control) -> tuple[bool, int, str]:
    """Those that diverged early first, those that did not last."""
    return control.step is None, control.step or 0, control.name
