"""`summary.md`: a screenful for a CI job page or a pull request, the broken promise first."""

from __future__ import annotations

import html
import re
from pathlib import Path

from lockstep_model.verdicts import RunVerdict, Status
from lockstep_reports import story, words
from lockstep_reports.content import Guarantee
from lockstep_reports.files import replace
from lockstep_reports.run import Run, load

WORDS = {RunVerdict.PASS: "✅ Pass", RunVerdict.VIOLATION: "❌ Violation", RunVerdict.UNDECIDED: "❔ Undecided"}
ORDER = (Status.VIOLATED, Status.UNDECIDED, Status.PERMITTED, Status.HELD, Status.NOT_APPLICABLE)

_MARKS = re.compile(r"([\\`*_\[\]|~])")


def write_summary(run_dir: Path) -> Path:
    """Write `summary.md` of a judged run and return its path."""
    return replace(run_dir.resolve() / "summary.md", summary(load(run_dir)))


def summary(run: Run) -> str:
    """The document, ready to be written."""
    seed = "" if run.seed is None else f", seed {run.seed}"
    lines = [f"# {WORDS[run.verdict.verdict]}: {text(run.scenario)}{seed}", "", text(story.headline(run)), ""]
    bad = story.first_bad(run)
    if bad is not None:
        lines += [
            f"* **First bad operation:** {text(story.bad_operation(run, bad))}",
            f"* **What is wrong with it:** {text(bad.text or bad.name)}",
            f"* **Fault active then:** {text(story.active_fault(run, bad))}",
        ]
    lines += [f"* **Replay:** {code(story.replay_command(run))}"]
    if run.info.command:
        lines += [f"* **Ran as:** {code(run.info.command)}"]
    lines += ["", "| guarantee | status | anomalies | reason |", "|---|---|--:|---|"]
    lines += [_row(run, it) for it in sorted(run.verdict.guarantees, key=lambda it: ORDER.index(it.status))]
    counts = run.verdict.counts
    said = [f"{words.count(counts[key])} {label}" for key, label in COUNTS if key in counts]
    said += [words.plural(counts["partitions"], "partition")] if "partitions" in counts else []
    where = [str(run.info.spec[key]) for key in ("kafka", "mode") if key in run.info.spec]
    where += [run.info.backend] if run.info.backend else []
    lines += ["", text("; ".join(part for part in (", ".join(said), " ".join(where)) if part))]
    return "\n".join(lines).rstrip() + "\n"


COUNTS = (
    ("acknowledged", "writes acknowledged"),
    ("unknown", "unknown"),
    ("failed", "failed"),
    ("read", "records read"),
)


def text(value: str) -> str:
    """`value` as one line of Markdown that says exactly that and nothing else."""
    return _MARKS.sub(r"\\\1", html.escape(" ".join(value.split()), quote=False))


def code(value: str) -> str:
    """`value` as a code span, fenced with more backticks than it holds in a row."""
    value = " ".join(value.split())
    longest = max((len(run) for run in re.findall("`+", value)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{value}{pad}{fence}"


def _row(run: Run, guarantee: Guarantee) -> str:
    mark = {Status.VIOLATED: "**violated**", Status.UNDECIDED: "**undecided**"}.get(guarantee.status, guarantee.status)
    expected = story.expected(run, guarantee)
    mark = f"{mark}, {expected}" if expected else mark
    return f"| {text(guarantee.name)} | {mark} | {words.count(guarantee.count)} | {text(guarantee.reason)} |"
