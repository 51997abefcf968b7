"""Judges runs: history in, `verdict.json` and `series.json` out; many runs in one set of Spark jobs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lockstep.checker import SAMPLE, evidence, statistics
from lockstep.checker.conditions import read_conditions
from lockstep.checker.decide import compare, decide, doubts, log_name, overall
from lockstep.checker.detectors import PERMITTED, UNDECIDED, VIOLATED
from lockstep.checker.evidence import SHOWN_MAX, Evidence, Place
from lockstep.checker.sources import Sources, constants, open_sources, partition_of, topic_of
from lockstep.checker.timeline import Timeline, read_timeline
from lockstep.checker.verdict import Anomaly, OperationRef, Series, Verdict
from lockstep.errors import CheckerError, HistoryError
from lockstep.history.schema import Outcome, sequence_of, writer_of
from lockstep.host.disk import replace_file
from lockstep_model.guarantees import GUARANTEES

VERDICT, SERIES = "verdict.json", "series.json"

_RECORDS_PER_TASK = 1_000_000
_TASKS_MIN, _TASKS_MAX = 2, 200

_SEVERITY = {VIOLATED: 0, UNDECIDED: 1, PERMITTED: 2}
_ORDER = {guarantee.name: place for place, guarantee in enumerate(GUARANTEES)}


def judge(run_directories: Sequence[Path], spark: SparkSession) -> list[Verdict]:
    """Judge every run, and leave `verdict.json` and `series.json` in its directory; the history is not touched."""
    verdicts = []
    for directory, (verdict, series) in zip(run_directories, assess(run_directories, spark), strict=True):
        replace_file(directory / VERDICT, _pretty(verdict))
        replace_file(directory / SERIES, _pretty(series))
        verdicts.append(verdict)
    return verdicts


def warm_up(spark: SparkSession) -> None:
    """Judge the bundled sample for nothing: the first run of every plan takes seconds, and the next ones do not."""
    assess([SAMPLE], spark)


def assess(run_directories: Sequence[Path], spark: SparkSession) -> list[tuple[Verdict, Series]]:
    """What `judge` writes, without writing it."""
    if not run_directories:
        return []
    began = time.perf_counter()
    with open_sources(run_directories) as sources, _explained(sources):
        timelines = [
            read_timeline(directory, history)
            for directory, history in zip(run_directories, sources.histories, strict=True)
        ]
        conditions = [
            read_conditions(r, directory, history)
            for r, (directory, history) in enumerate(zip(run_directories, sources.histories, strict=True))
        ]
        sizes = [_sizes(sources, r) for r in range(len(timelines))]
        tasks = sum(records for _, records in sizes) // _RECORDS_PER_TASK
        spark.conf.set("spark.sql.shuffle.partitions", str(min(max(tasks, _TASKS_MIN), _TASKS_MAX)))
        # Side by side, because planning one query leaves the cores to the other.
        with ThreadPoolExecutor(max_workers=3, thread_name_prefix="judge") as pool:
            placements = pool.submit(evidence.of_placements, spark, sources, conditions)
            polls = pool.submit(evidence.of_polls, spark, sources)
            numbers = pool.submit(statistics.collect, spark, sources, timelines).result()
            found = [*placements.result(), *polls.result()]
        operations = _operations(spark, sources, found)
        seconds = time.perf_counter() - began
        judged = []
        for r, (timeline, run_numbers, size) in enumerate(zip(timelines, numbers, sizes, strict=True)):
            mine = [one for one in found if one.r == r]
            counts = {(one.detector.guarantee, one.effect): one.count for one in mine}
            guarantees = decide(r, sources, conditions[r], run_numbers, counts)
            expectations = compare(conditions[r].expectations, guarantees)
            doubted = doubts(timeline.unproven, guarantees, expectations)
            verdict = Verdict(
                verdict=overall(guarantees, doubted),
                reason="; ".join(doubted) or None,
                guarantees=guarantees,
                expectations=expectations,
                anomalies=_anomalies(mine, sources, timeline, operations),
                operations=size[0],
                records=size[1],
                seconds=round(seconds, 3),
                counts={
                    "acknowledged": run_numbers.acknowledged,
                    "failed": run_numbers.failed,
                    "unknown": run_numbers.unknown,
                    "read": run_numbers.read,
                    "partitions": len(run_numbers.acknowledged_by_log),
                },
                run=sources.histories[r].meta.run,
            )
            judged.append((verdict, statistics.series(run_numbers, timeline)))
        return judged


def _sizes(sources: Sources, r: int) -> tuple[int, int]:
    """Operations and records of a run."""
    rows = {table: pq.read_metadata(path).num_rows for table, path in sources.histories[r].tables.items()}
    return rows["operations"], rows["records-sent"] + rows["records-read"]


def _operations(
    spark: SparkSession, sources: Sources, found: Sequence[Evidence]
) -> dict[tuple[int, int], OperationRef]:
    """The operations that the evidence speaks of, by run and number."""
    wanted = sorted({(one.r, op) for one in found for op in one.ops})
    if not wanted:
        return {}
    rows = (
        sources.read(spark, "operations", "op", "process", "kind", "invoke_ns", "return_ns", "outcome")
        .join(sf.broadcast(constants(spark, {"r": "int", "op": "bigint"}, wanted)), ["r", "op"])
        .collect()
    )
    return {
        (row.r, row.op): OperationRef(
            op=row.op,
            process=row.process,
            kind=row.kind,
            invoke_ns=row.invoke_ns,
            return_ns=row.return_ns,
            outcome=Outcome(row.outcome).name.lower(),
        )
        for row in rows
    }


def _anomalies(
    found: Sequence[Evidence], sources: Sources, timeline: Timeline, operations: dict[tuple[int, int], OperationRef]
) -> list[Anomaly]:
    """In a total order, the gravest first, and at most `SHOWN_MAX` of each guarantee."""

    def order(one: Evidence) -> tuple[int, ...]:
        place = [
            one.at.log,
            -1 if one.at.offset is None else one.at.offset,
            -1 if one.at.value is None else one.at.value,
        ]
        return (_ORDER[one.detector.guarantee], _SEVERITY[one.effect], *place, *one.ops)

    shown: dict[str, list[Anomaly]] = defaultdict(list)
    for one in sorted(found, key=order):
        if len(shown[one.detector.guarantee]) < SHOWN_MAX:
            refs = [operations[one.r, op] for op in one.ops if (one.r, op) in operations]
            shown[one.detector.guarantee].append(_anomaly(one, sources, timeline, refs))
    return [anomaly for anomalies in shown.values() for anomaly in anomalies]


def _anomaly(one: Evidence, sources: Sources, timeline: Timeline, operations: list[OperationRef]) -> Anomaly:
    active = [
        str(fault)
        for fault in timeline.faults
        if any(fault.overlaps(operation.invoke_ns, operation.return_ns) for operation in operations)
    ]
    text = one.detector.text.format(
        place=_place(sources, one.at),
        value=_value(one.at.value),
        writer="?" if one.at.value is None else writer_of(one.at.value),
        process=operations[0].process if operations else "?",
        op=one.ops[0] if one.ops else "?",
        other_place=_place(sources, one.other),
        other_value=_value(one.other.value),
        other_offset=one.other.offset,
        other_op=one.ops[1] if len(one.ops) > 1 else "?",
    )
    return Anomaly(
        guarantee=one.detector.guarantee,
        name=one.detector.name,
        status=one.effect,
        topic=sources.histories[one.r].meta.topics[topic_of(one.at.log)].name,
        partition=partition_of(one.at.log),
        offset=one.at.offset,
        value=one.at.value,
        operations=operations,
        fault="; ".join(active) or None,
        text=text,
    )


def _place(sources: Sources, place: Place) -> str:
    name = log_name(sources, place.log)
    return f"{name} at an unknown offset" if place.offset is None else f"{name} offset {place.offset}"


def _value(value: int | None) -> str:
    return "of foreign bytes" if value is None else f"w{writer_of(value)}#{sequence_of(value)}"


def _pretty(value: Verdict | Series) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


@contextmanager
def _explained(sources: Sources) -> Iterator[None]:
    """Turn what Spark throws into one sentence."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        path = sources.original(text)
        if path is not None:
            raise HistoryError(f"{path} is damaged, so this history cannot be judged: restore it") from error
        first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
        raise CheckerError(f"Spark failed while judging: {first}") from error
