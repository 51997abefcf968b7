"""A run that the model judged step by step, as all reports about walks, scripts and counterexamples need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from lockstep.errors import HistoryError, UsageError
from lockstep_model.verdicts import RunVerdict
from lockstep_reports import words
from lockstep_reports.content import Info
from lockstep_reports.document import VERDICTS, Number, document, environment_facts
from lockstep_reports.run import optional, printable, read
from lockstep_reports.walk_content import Step

STEPS = "steps.jsonl"
SHADES = 4


class Judged(Protocol):
    """What every `verdict.json` has."""

    @property
    def verdict(self) -> RunVerdict: ...

    @property
    def run(self) -> str | None: ...


T = TypeVar("T", bound=Judged)


@dataclass(frozen=True, slots=True, kw_only=True)
class SteppedRun(Generic[T]):
    """A run that was judged step by step while it was made, as far as all pages about such runs need it."""

    directory: Path
    scenario: str
    verdict: T
    info: Info
    notes: list[str]
    seed: int | None = None
    """Of one walk; several have many, scripts and counterexamples none."""

    @property
    def name(self) -> str:
        return self.verdict.run or self.info.run or printable(self.directory.name)

    def page(
        self,
        template: str,
        *,
        headline: str,
        numbers: Iterable[tuple[str, str]],
        alerts: Iterable[tuple[str, str]] = (),
        title: str = "",
        **content: Any,
    ) -> str:
        """The document, ready to be written."""
        return document(
            template,
            run=self,
            title=title or VERDICTS[self.verdict.verdict],
            headline=headline,
            numbers=[
                *(Number(label=label, value=value) for label, value in (*numbers, *self._cluster())),
                *(Number(label=label, value=value, alert=True) for label, value in alerts),
            ],
            environment=environment_facts(self.name, self.info),
            **content,
        )

    def _cluster(self) -> list[tuple[str, str]]:
        """What it ran on, in a few words."""
        spec = self.info.spec
        return [
            *((label, words.plain(spec[key])) for label, key in (("Kafka", "kafka"), ("mode", "mode")) if key in spec),
            *([("backend", self.info.backend)] if self.info.backend else []),
            *([("seed", str(self.seed))] if self.seed is not None else []),
        ]


def judged(directory: Path, type_: type[T], notes: list[str], what: str, *, home: Path | None = None) -> tuple[Info, T]:
    """`run.json`, as far as it is there or in the run that it is part of, and `verdict.json`."""
    info = optional((home or directory) / "run.json", Info, notes, "where and how it ran is not known") or Info()
    if not (directory / "verdict.json").is_file():
        again = f"take it again with `{info.command}`" if info.command else "take it again"
        raise UsageError(f"{directory} is {what} that did not come to a verdict: {again}")
    try:
        return info, read(directory / "verdict.json", type_)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HistoryError(f"verdict.json of {printable(directory.name)} cannot be read: {error}") from error


def read_steps(path: Path, notes: list[str]) -> list[Step]:
    """`steps.jsonl`, without what a crash has torn."""
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


def numbered(steps: Sequence[Step], last: int) -> list[tuple[int, Step]]:
    """The last so many steps, with their numbers."""
    first = max(0, len(steps) - last)
    return list(enumerate(steps[first:], start=first + 1))


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
