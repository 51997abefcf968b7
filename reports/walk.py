"""`report.html` of a walk: the reference model and a live cluster, step by step (`lockstep step`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.errors import HistoryError, UsageError
from reports import words
from reports.content import Info, Outcome
from reports.document import VERDICTS, Number, document, environment_facts
from reports.files import replace
from reports.run import optional, printable, read
from reports.walk_chart import Point, chart
from reports.walk_content import Control, Step, WalkVerdict

STEPS = "steps.jsonl"
SHOWN_STEPS = 1000
"""So many of the last steps are in the table, so that the page stays small."""
LAST_STEPS = 12
"""How many steps before a divergence are shown with it."""
DISTURBANCES = frozenset({"kill", "stop", "start", "pause", "resume", "cut", "mend", "elect", "reassign"})
"""Steps that change what the cluster is like, and do not only ask or write."""
SHADES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Everything that the page is made of."""

    name: str
    verdict: WalkVerdict
    info: Info = field(default_factory=Info)
    steps: Sequence[Step] = ()
    notes: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        return "walk"

    @property
    def seed(self) -> int | None:
        return self.info.seed

    def numbered(self, last: int) -> list[tuple[int, Step]]:
        """The last so many steps, with their numbers."""
        first = max(0, len(self.steps) - last)
        return list(enumerate(self.steps[first:], start=first + 1))


def is_walk(run_dir: Path) -> bool:
    return (run_dir / STEPS).is_file()


def render_walk(run_dir: Path) -> Path:
    """Write `report.html` of a walk, whole or not at all, and return its path."""
    return replace(run_dir.resolve() / "report.html", page(load_walk(run_dir)))


def load_walk(run_dir: Path) -> Walk:
    """Read the run directory of a walk."""
    directory = run_dir.resolve()
    notes: list[str] = []
    info = optional(directory / "run.json", Info, notes, "where and how it ran is not known") or Info()
    if not (directory / "verdict.json").is_file():
        again = f"take it again with `{info.command}`" if info.command else "take it again"
        raise UsageError(f"{run_dir} is a walk that did not come to a verdict: {again}")
    try:
        verdict = read(directory / "verdict.json", WalkVerdict)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HistoryError(f"verdict.json of {printable(directory.name)} cannot be read: {error}") from error
    return Walk(
        name=verdict.run or info.run or printable(directory.name),
        verdict=verdict,
        info=info,
        steps=_steps(directory / STEPS, notes),
        notes=tuple(notes),
    )


def _steps(path: Path, notes: list[str]) -> list[Step]:
    steps: list[Step] = []
    torn = 0
    for line in path.read_bytes().splitlines():
        try:
            steps.append(msgspec.convert(printable(msgspec.json.decode(line)), Step))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            torn += 1
    if torn:
        notes.append(f"{path.name} has {torn} unreadable line(s), which are left out.")
    return steps


def page(walk: Walk) -> str:
    """The document, ready to be written."""
    verdict = walk.verdict
    return document(
        "walk.html.j2",
        run=walk,
        diverged=verdict.diverged,
        title="Divergence" if verdict.verdict is Outcome.VIOLATION else VERDICTS[verdict.verdict],
        headline=headline(walk),
        numbers=_numbers(walk),
        environment=environment_facts(walk.name, walk.info),
        chart=chart(_points(walk), diverged=verdict.diverged is not None) if walk.steps else None,
        steps=walk.numbered(SHOWN_STEPS),
        last=walk.numbered(LAST_STEPS),
        answers=verdict.coverage.answers,
        pairs=Pairs.of(verdict.coverage.pairs),
        causes=verdict.coverage.causes,
        controls=sorted(verdict.controls, key=_by_step),
    )


def headline(walk: Walk) -> str:
    """One sentence why the verdict is what it is."""
    verdict = walk.verdict
    wrong = f" The model is a wrong one ({verdict.wrong_model})." if verdict.wrong_model else ""
    if verdict.diverged is not None:
        return f"At step {verdict.diverged.step} the cluster did what no state of the model permits.{wrong}"
    steps = words.plural(verdict.steps, "step")
    if verdict.verdict is Outcome.UNDECIDED:
        return f"After {steps} the model could not be followed any further: {verdict.reason or 'no reason is given'}."
    held = sum(control.step is not None for control in verdict.controls)
    controls = f" {held} of {len(verdict.controls)} wrong models could not explain it." if verdict.controls else ""
    return (
        f"In {steps} the model explains everything that the cluster answered and decided; "
        f"never by more than {words.plural(verdict.largest_belief, 'state')}.{controls}{wrong}"
    )


def _numbers(walk: Walk) -> list[Number]:
    verdict, spec = walk.verdict, walk.info.spec
    coverage = verdict.coverage
    known = [
        ("steps", words.count(verdict.steps)),
        ("duration", words.seconds(verdict.seconds)),
        ("quick steps / s", f"{verdict.quick_steps_per_second:g}"),
        ("largest belief", words.count(verdict.largest_belief)),
        ("decisions", words.count(sum(len(step.decisions) for step in walk.steps))),
        ("kinds of steps", words.count(len(coverage.answers))),
        ("pairs of kinds", words.count(sum(map(len, coverage.pairs.values())))),
        *((label, words.plain(spec[key])) for label, key in (("Kafka", "kafka"), ("mode", "mode")) if key in spec),
        *([("backend", walk.info.backend)] if walk.info.backend else []),
        *([("seed", str(walk.seed))] if walk.seed is not None else []),
    ]
    return [Number(label=label, value=value) for label, value in known]


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
        for number, step in walk.numbered(len(walk.steps))
    ]


def _by_step(control: Control) -> tuple[bool, int, str]:
    """Those that diverged early first, those that did not last."""
    return control.step is None, control.step or 0, control.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Which kind of step came right after which, as a table."""

    kinds: list[str]
    rows: list[list[tuple[int, int]]]
    """For each kind, how often each came after it, and how dark that is."""

    @classmethod
    def of(cls, pairs: dict[str, dict[str, int]]) -> Pairs:
        kinds = sorted({*pairs, *(then for row in pairs.values() for then in row)})
        most = max((count for row in pairs.values() for count in row.values()), default=1)

        def cell(first: str, then: str) -> tuple[int, int]:
            count = pairs.get(first, {}).get(then, 0)
            return count, -(-count * SHADES // max(most, 1))

        return cls(kinds=kinds, rows=[[cell(first, then) for then in kinds] for first in kinds])

    @property
    def taken(self) -> int:
        return sum(count > 0 for row in self.rows for count, _ in row)
