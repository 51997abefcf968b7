"""A judged run directory, as people and CI systems read it: `report.html`, `junit.xml`, `summary.md`."""

from __future__ import annotations

from pathlib import Path

from reports.conformance import SCRIPTS
from reports.junit import write_junit
from reports.page import render
from reports.summary import write_summary
from reports.walk import render_walk, walks_of
from reports.walks import WALKS

__all__ = ["is_stepped", "render", "render_walk", "write_all", "write_junit", "write_summary"]


def is_stepped(run_dir: Path) -> bool:
    """Whether it was judged while it was made, step by step: it has neither a plan nor a history."""
    return bool(walks_of(run_dir)) or WALKS.fits(run_dir) or SCRIPTS.fits(run_dir)


def write_all(run_dir: Path) -> tuple[Path, ...]:
    """Write `report.html` and what else there is of such a run for CI systems; returns the paths, the report first."""
    if walks := walks_of(run_dir):
        return tuple(map(render_walk, walks))
    if WALKS.fits(run_dir):
        return WALKS.write(run_dir)
    if SCRIPTS.fits(run_dir):
        return SCRIPTS.write(run_dir)
    return render(run_dir), write_junit(run_dir), write_summary(run_dir)
