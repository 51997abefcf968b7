"""A judged run directory, read once for every output (docs/run-directory.md says what the files hold).

Only `verdict.json` must be there. What else is missing or damaged becomes a note, because half a report beats none.
What is read may have been written by anyone (record contents end up in sentences), so every string is made printable
and bounded here, at the one place where it comes in; escaping is left to the writers of HTML, XML and Markdown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lockstep.errors import HistoryError, UsageError
from lockstep_model.verdicts import Status
from lockstep_reports.content import (
    Anomaly,
    Fault,
    Guarantee,
    Info,
    Moment,
    Plan,
    Series,
    SeriesFault,
    Verdict,
)

T = TypeVar("T")

TEXT_LIMIT = 2000
FAULTS_LIMIT = 200

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff\ud800-\udfff]"
)
"""Control characters, which XML cannot hold, and marks that reorder or hide the text around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything the outputs are made of."""

    name: str
    verdict: Verdict
    info: Info = field(default_factory=Info)
    plan: Plan | None = None
    series: Series | None = None
    faults: tuple[Fault, ...] = ()
    origin_ns: int = 0
    notes: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        return self.info.scenario or (self.plan.scenario if self.plan else None) or self.name

    @property
    def seed(self) -> int | None:
        return self.info.seed if self.info.seed is not None or self.plan is None else self.plan.seed

    @property
    def bands(self) -> tuple[Fault, ...]:
        """Faults as the plots show them: the checker's times where there are any, else the ledger's."""
        if self.series and self.series.faults:
            return tuple(map(_from_series, self.series.faults[:FAULTS_LIMIT]))
        return self.faults

    @property
    def duration_s(self) -> float | None:
        ends = [phase.end_ns for phase in self.info.phases if phase.end_ns is not None]
        if ends:
            return (max(ends) - min(phase.start_ns for phase in self.info.phases)) / 1e9
        return self.series.seconds if self.series else None

    def since_origin(self, time_ns: int) -> float:
        """Seconds since the load began."""
        return (time_ns - self.origin_ns) / 1e9

    def with_status(self, status: Status) -> list[Guarantee]:
        return [guarantee for guarantee in self.verdict.guarantees if guarantee.status is status]

    def anomalies_of(self, *guarantees: Guarantee) -> list[Anomaly]:
        """Evidence against these guarantees, earliest first; without operations last."""
        names = {guarantee.name for guarantee in guarantees}
        found = [anomaly for anomaly in self.verdict.anomalies if anomaly.guarantee in names]
        return sorted(found, key=lambda anomaly: (anomaly.began_ns is None, anomaly.began_ns or 0))


def load(run_dir: Path) -> Run:
    """Read a run directory; `runs/latest` is followed to the run it names."""
    directory = run_dir.resolve()
    name = printable(directory.name)
    if not directory.is_dir():
        raise UsageError(f"{run_dir} is not a run directory: give one of those under runs/")
    if not (directory / "verdict.json").is_file():
        raise UsageError(f"{run_dir} has no verdict yet: judge it first with `lockstep check {run_dir}`")
    try:
        verdict = read(directory / "verdict.json", Verdict)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HistoryError(
            f"verdict.json of {name} cannot be read ({error}): judge the run again with `lockstep check {run_dir}`"
        ) from error
    notes: list[str] = []
    info = optional(directory / "run.json", Info, notes, "where and how it ran is not known") or Info()
    plan = optional(directory / "plan.json", Plan, notes, "the plan cannot be shown")
    series = optional(directory / "series.json", Series, notes, "there is no timeline")
    lines, torn = _ledger_lines(directory / "ledger.jsonl", notes)
    origin_ns = _origin_ns(info, series, verdict, lines)
    if info.external:
        notes.append("The nodes of this cluster were not watched: a crash or a power loss of theirs counts as none.")
    if torn:
        notes.append(f"ledger.jsonl has {torn} unreadable line(s), which are left out.")
    return Run(
        name=verdict.run or info.run or name,
        verdict=verdict,
        info=info,
        plan=plan,
        series=series,
        faults=tuple(_faults(lines, origin_ns)[:FAULTS_LIMIT])
        or tuple(map(_from_series, series.faults if series else [])),
        origin_ns=origin_ns,
        notes=tuple(notes),
    )


def printable(value: Any) -> Any:
    """A JSON value whose strings can be shown anywhere: nothing invisible, nothing endless."""
    if isinstance(value, str):
        text = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
        return text if len(text) <= TEXT_LIMIT else f"{text[:TEXT_LIMIT]}… ({len(text)} characters)"
    if isinstance(value, list):
        return [printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    return value


def read(path: Path, type_: type[T]) -> T:
    """A JSON file of a run directory, with every string made printable."""
    return msgspec.convert(printable(msgspec.json.decode(path.read_bytes())), type_)


def optional(path: Path, type_: type[T], notes: list[str], without: str) -> T | None:
    """The same for a file that a report can do without; what is then missing becomes a note."""
    try:
        return read(path, type_)
    except FileNotFoundError:
        notes.append(f"This run has no {path.name}: {without}.")
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        notes.append(f"{path.name} cannot be read ({printable(str(error))}): {without}.")
    return None


def _ledger_lines(path: Path, notes: list[str]) -> tuple[list[dict[str, Any]], int]:
    """The fault lines, and how many lines could not be read: the last one is torn when the harness was killed."""
    try:
        raw = path.read_bytes()
    except OSError:
        notes.append(f"This run has no {path.name}: what was done to the cluster is known from the history alone.")
        return [], 0
    lines: list[dict[str, Any]] = []
    torn = 0
    for text in raw.splitlines():
        try:
            line = printable(msgspec.json.decode(text, type=dict[str, Any]))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            torn += 1
            continue
        if line.get("kind") == "fault" and isinstance(line.get("time_ns"), int):
            lines.append(line)
    return lines, torn


_LINE_FIELDS = frozenset(
    {"entry", "time_ns", "kind", "phase", "fault", "step", "target_asked", "target_resolved", "detail"}
)


def _faults(lines: list[dict[str, Any]], origin_ns: int) -> list[Fault]:
    """Lines of one entry, put together: a later line repeats only what is new."""
    entries: dict[Any, list[dict[str, Any]]] = {}
    for number, line in enumerate(lines):
        entries.setdefault(line.get("entry", f"line {number}"), []).append(line)
    return [_fault(entry, origin_ns) for entry in entries.values()]


def _fault(lines: list[dict[str, Any]], origin_ns: int) -> Fault:
    merged: dict[str, Any] = {}
    for line in lines:
        merged |= {key: value for key, value in line.items() if value is not None}
    moments = [
        Moment(phase=str(line.get("phase", "")), t=(line["time_ns"] - origin_ns) / 1e9, detail=_detail(line))
        for line in lines
    ]
    times = {moment.phase: moment.t for moment in reversed(moments)}  # the first of each phase
    step = merged.get("step")
    resolved = merged.get("target_resolved")
    return Fault(
        fault=str(merged.get("fault", "fault")),
        asked=str(merged.get("target_asked", "")),
        resolved=None if resolved is None else str(resolved),
        start_t=times.get("effect", moments[0].t),
        end_t=times.get("healed"),
        step=step if isinstance(step, int) else None,
        moments=moments,
    )


def _detail(line: dict[str, Any]) -> dict[str, Any]:
    detail = line.get("detail")
    named = detail if isinstance(detail, dict) else {} if detail is None else {"detail": detail}
    return {key: value for key, value in line.items() if key not in _LINE_FIELDS} | named


def _from_series(fault: SeriesFault) -> Fault:
    proof = fault.proof if isinstance(fault.proof, dict) else {} if fault.proof is None else {"proof": fault.proof}
    moments = [Moment(phase="proof", t=fault.start_t, detail=proof)] if proof else []
    if fault.end_t is not None:
        moments.append(Moment(phase="healed", t=fault.end_t))
    return Fault(
        fault=fault.fault,
        asked=fault.target,
        resolved=fault.resolved,
        start_t=fault.start_t,
        end_t=fault.end_t,
        moments=moments,
    )


def _origin_ns(info: Info, series: Series | None, verdict: Verdict, lines: list[dict[str, Any]]) -> int:
    """When time began: the load phase, or else the first thing known to have happened."""
    if series:
        return series.origin_ns
    load_starts = [phase.start_ns for phase in info.phases if phase.name == "load"]
    known = [line["time_ns"] for line in lines]
    known += [anomaly.began_ns for anomaly in verdict.anomalies if anomaly.began_ns is not None]
    return min(load_starts or known, default=0)
