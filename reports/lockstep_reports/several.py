"""Runs of several walks or scripts on one cluster: `report.html`, and `junit.xml` with a case for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

from lockstep_reports.files import replace
from lockstep_reports.junit_cases import Case, junit_of_cases
from lockstep_reports.stepped_run import SteppedRun, T, judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[T]):
    """What such a run is of, and how it is told."""

    parts: str
    """The directory that has one for each."""
    command: str
    what: str
    verdict: type[T]
    called: Callable[[T], str]
    page: Callable[[SteppedRun[T]], str]
    cases: Callable[[T], Iterable[Case]]

    def fits(self, run_dir: Path) -> bool:
        return (run_dir / self.parts).is_dir()

    def load(self, run_dir: Path) -> SteppedRun[T]:
        """Read the run directory."""
        directory = run_dir.resolve()
        notes: list[str] = []
        info, verdict = judged(directory, self.verdict, notes, self.what)
        return SteppedRun(directory=directory, scenario=self.called(verdict), verdict=verdict, info=info, notes=notes)

    def write(self, run_dir: Path) -> tuple[Path, Path]:
        """Write both, each whole or not at all, and return their paths."""
        run = self.load(run_dir)
        junit = junit_of_cases(f"lockstep.{self.command}", run.name, run.info, self.cases(run.verdict))
        return replace(run.directory / "report.html", self.page(run)), replace(run.directory / "junit.xml", junit)
