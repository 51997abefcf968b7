"""`report.html` of a judged run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from lockstep.history.schema import sequence_of, writer_of
from lockstep_model.guarantees import GUARANTEES
from lockstep_model.verdicts import Status
from lockstep_reports import story, words
from lockstep_reports.buckets import Buckets, buckets
from lockstep_reports.content import Anomaly, Guarantee, Operation
from lockstep_reports.document import VERDICTS, Number, document, environment_facts
from lockstep_reports.files import replace
from lockstep_reports.run import Run, load
from lockstep_reports.spacetime import diagram
from lockstep_reports.timeline import Timeline, timeline

SHOWN_PER_GUARANTEE = 3
"""Anomalies with a diagram; the others are listed, so that the page stays small."""

_TABLE_LIMIT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One anomaly with what shows it."""

    anomaly: Anomaly
    value: str
    fault: str
    operations: Sequence[Operation]
    zero: str
    picture: Markup | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All evidence against one guarantee."""

    guarantee: Guarantee
    shown: Sequence[Evidence]
    listed: Sequence[Anomaly]


def render(run_dir: Path) -> Path:
    """Write `report.html` of a judged run, whole or not at all, and return its path."""
    return replace(run_dir.resolve() / "report.html", page(load(run_dir)))


def page(run: Run) -> str:
    """The document, ready to be written."""
    rows = buckets(run.series) if run.series else None
    picture = timeline(run.series, rows, run.bands) if run.series and rows else None
    return document(
        "report.html.j2",
        run=run,
        story=story,
        title=VERDICTS[run.verdict.verdict],
        headline=story.headline(run),
        numbers=_numbers(run, rows),
        promises={guarantee.name: guarantee for guarantee in GUARANTEES},
        cases=_cases(run),
        timeline=picture,
        rows=rows,
        pointer=_pointer(picture, rows) if picture and rows else None,
        environment=[*environment_facts(run.name, run.info), *_judged(run)],
        silences=rows.silences() if rows else [],
    )


def _numbers(run: Run, rows: Buckets | None) -> list[Number]:
    counts, spec = run.verdict.counts, run.info.spec
    silence = max((end - start for start, end in rows.silences()), default=None) if rows else None
    optional: list[tuple[str, str | None, bool]] = [
        ("writes acknowledged", _count(counts.get("acknowledged")), False),
        ("outcome unknown", _count(counts.get("unknown")), bool(counts.get("unknown"))),
        ("writes failed", _count(counts.get("failed")), False),
        ("records read", _count(counts.get("read")), False),
        ("partitions", _count(counts.get("partitions")), False),
        ("longest silence", None if silence is None else words.seconds(silence), False),
        ("duration", None if run.duration_s is None else words.seconds(run.duration_s), False),
        ("Kafka", _text(spec.get("kafka")), False),
        ("mode", _text(spec.get("mode")), False),
        ("backend", run.info.backend, False),
        ("seed", _text(run.seed), False),
    ]
    return [Number(label=label, value=value, alert=alert) for label, value, alert in optional if value is not None]


def _count(value: int | None) -> str | None:
    return None if value is None else words.count(value)


def _text(value: object) -> str | None:
    return None if value is None else words.plain(value)


def _cases(run: Run) -> list[Case]:
    """Broken promises first, then what could not be decided, then what happened and was permitted."""
    cases: list[Case] = []
    for status in (Status.VIOLATED, Status.UNDECIDED, Status.PERMITTED, Status.HELD, Status.NOT_APPLICABLE):
        for guarantee in run.with_status(status):
            found = run.anomalies_of(guarantee)
            if found:
                shown = [_evidence(run, anomaly) for anomaly in found[:SHOWN_PER_GUARANTEE]]
                cases.append(Case(guarantee=guarantee, shown=shown, listed=found[SHOWN_PER_GUARANTEE:]))
    return cases


def _evidence(run: Run, anomaly: Anomaly) -> Evidence:
    operations = sorted(anomaly.operations, key=lambda operation: operation.invoke_ns)
    ordered = anomaly.guarantee == "real-time-order"
    return Evidence(
        anomaly=anomaly,
        value=_value(anomaly.value),
        fault=story.active_fault(run, anomaly),
        operations=operations[:_TABLE_LIMIT],
        zero=words.moment(run.since_origin(operations[0].invoke_ns)) if operations else "",
        picture=diagram(operations, run.bands, origin_ns=run.origin_ns, ordered=ordered) if operations else None,
    )


def _value(value: int | str | None) -> str:
    """A value as what it is: which record of which writer."""
    if value is None:
        return ""
    if isinstance(value, str) or value < 0:
        return str(value)
    return f"{value} (record {sequence_of(value)} of writer {writer_of(value)})"


def _pointer(picture: Timeline, rows: Buckets) -> dict[str, Any]:
    """What the script needs to say what lies under the pointer."""
    return {
        "left": picture.left,
        "right": picture.right,
        "seconds": picture.seconds,
        "width": rows.width_s,
        "rows": [[row.t, *_readings(rows, index)] for index, row in enumerate(rows.rows)],
    }


def _readings(rows: Buckets, index: int) -> list[str]:
    row = rows.rows[index]
    latency = row.latency
    times = [latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms] if latency else []
    rates = [f"{rows.per_second(row.acknowledged):,.0f}", f"{rows.per_second(row.read):,.0f}", words.count(row.unknown)]
    return rates + [words.milliseconds(value) for value in times]


def _judged(run: Run) -> list[tuple[str, str]]:
    verdict = run.verdict
    if verdict.seconds is None:
        return []
    what = f"{words.plural(verdict.operations, 'operation')} and {words.plural(verdict.records, 'record')}"
    return [("judged", f"{what} in {words.span(verdict.seconds)}")]
