"""A judged run directory, as people and CI systems read it: `report.html`, `junit.xml`, `summary.md`."""

from __future__ import annotations

from pathlib import Path

from reports.junit import write_junit
from reports.page import render
from reports.summary import write_summary
from reports.walk import is_walk, render_walk

__all__ = ["is_walk", "render", "render_walk", "write_all", "write_junit", "write_summary"]


def write_all(run_dir: Path) -> tuple[Path, ...]:
    """Write `report.html`, `junit.xml` and `summary.md` of a judged run, the first of a walk; returns their paths."""
    if is_walk(run_dir):
        return (render_walk(run_dir),)
    return render(run_dir), write_junit(run_dir), write_summary(run_dir)
