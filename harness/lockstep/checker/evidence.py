"""Runs the detectors over the facts, and brings home a bounded, totally ordered sample of what they found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row, SparkSession

from lockstep.checker import facts
from lockstep.checker.conditions import Conditions
from lockstep.checker.detectors import PLACEMENTS, POLLS, STEPS, SUSPECT, Detector
from lockstep.checker.sources import RUN_OF_LOG, Sources

SHOWN_MAX = 20
"""Anomalies per guarantee that a verdict shows; all of them are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    log: int
    offset: int | None
    value: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One anomaly as the facts tell it; `count` is how many there are of its guarantee and effect."""

    r: int
    detector: Detector
    effect: str
    at: Place
    other: Place
    ops: tuple[int, ...]
    returned_ns: int | None
    count: int


def of_placements(spark: SparkSession, sources: Sources, conditions: Sequence[Conditions]) -> list[Evidence]:
    found = _collect(facts.placements(spark, sources, conditions), PLACEMENTS)
    moments = sorted({(one.at.log, one.returned_ns) for one in found if one.returned_ns is not None})
    if not moments:
        return found
    rows = facts.returned(spark, sources, moments).orderBy("op", ascending=False).collect()
    sends = {(row.log, row.return_ns): row for row in rows}  # of several at one instant the first
    return [one if one.returned_ns is None else _completed(one, sends[one.at.log, one.returned_ns]) for one in found]


def _completed(one: Evidence, send: Row) -> Evidence:
    other = Place(log=send.log, offset=send.offset, value=send.value)
    return replace(one, other=other, ops=(*one.ops, send.op))


def of_polls(spark: SparkSession, sources: Sources) -> list[Evidence]:
    """Polls that go backwards; where only the records can tell, in a second pass over the suspect polls alone."""
    polls = facts.polls(spark, sources)
    found = _collect(polls, POLLS)
    certain = [evidence for evidence in found if evidence.effect != SUSPECT]
    if len(certain) < len(found):
        suspects = polls.where("not in_order").select("r", "op", "log")
        return _added(certain, _collect(facts.steps(spark, sources, suspects), STEPS))
    return certain


def _added(*collections: Sequence[Evidence]) -> list[Evidence]:
    """What was found in several passes, counted together."""
    totals: Counter[tuple[int, str, str]] = Counter()
    for found in collections:
        totals.update({(one.r, one.detector.guarantee, one.effect): one.count for one in found})
    return [
        replace(one, count=totals[one.r, one.detector.guarantee, one.effect]) for found in collections for one in found
    ]


def _collect(rows: DataFrame, detectors: Sequence[Detector]) -> list[Evidence]:
    """One pass: a row that no detector wants goes no further, and the others become one row per anomaly."""
    candidates = [
        f"if({detector.when}, named_struct('detector', {index}, 'guarantee', '{detector.guarantee}',"
        f" 'effect', {detector.effect}, 'at', named_struct('offset', {detector.offset}, 'value', {detector.value}),"
        f" 'other', cast({detector.other} as struct<log: bigint, offset: bigint, value: bigint>),"
        f" 'ops', {detector.ops}, 'returned_ns', {detector.returned}), null)"
        for index, detector in enumerate(detectors)
    ]
    found = (
        rows.where(" or ".join(f"({detector.when})" for detector in detectors))
        .selectExpr("log", f"explode(filter(array({', '.join(candidates)}), found -> found is not null)) as found")
        .selectExpr(f"{RUN_OF_LOG} as r", "log", "found.*")
    )
    of_kind = "partition by r, guarantee, effect"
    ranked = found.selectExpr(
        "*",
        f"count(*) over ({of_kind}) as count",
        f"row_number() over ({of_kind} order by log, at.offset, at.value, detector, ops) as rank",
    )
    return [
        Evidence(
            r=row.r,
            detector=detectors[row.detector],
            effect=row.effect,
            at=Place(log=row.log, offset=row.at.offset, value=row.at.value),
            other=Place(log=row.other.log, offset=row.other.offset, value=row.other.value),
            ops=tuple(op for op in row.ops if op is not None),
            returned_ns=row.returned_ns,
            count=row["count"],
        )
        for row in ranked.where(f"rank <= {SHOWN_MAX}").collect()
    ]
