"""A judged run directory, as people and CI systems read it: `report.html`, `junit.xml`, `summary.md`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep_reports.conformance import SCRIPTS
from lockstep_reports.junit import write_junit
from lockstep_reports.page import render
from lockstep_reports.retrace import COUNTEREXAMPLES
from lockstep_reports.several import Kind
from lockstep_reports.summary import write_summary
from lockstep_reports.walk import render_walk, walks_of
from lockstep_reports.walks import WALKS

__all__ = ["is_stepped", "render", "render_walk", "write_all", "write_junit", "write_summary"]

KINDS: tuple[Kind[Any], ...] = (WALKS, SCRIPTS, COUNTEREXAMPLES)


def is_stepped(run_dir: Path) -> bool:
    """Whether it was judged while it was made, step by step: it has neither a plan nor a history."""
    return bool(walks_of(run_dir)) or any(kind.fits(run_dir) for kind in KINDS)


def write_all(run_dir: Path) -> tuple[Path, ...]:
    """Write `report.html` and what else there is of such a run for CI systems; returns the paths, the report first."""
    of_several = (path for kind in KINDS if kind.fits(run_dir) for path in kind.write(run_dir))
    of_walks = map(render_walk, walks_of(run_dir))
    return (*of_several, *of_walks) or (render(run_dir), write_junit(run_dir), write_summary(run_dir))
