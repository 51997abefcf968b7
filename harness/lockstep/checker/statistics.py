"""The numbers of a run: sends and reads over time, latencies, and leaders of each partition. Aggregated in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from lockstep.checker.sources import LOG, RUN_OF_LOG, Sources, constants
from lockstep.checker.timeline import Timeline
from lockstep.checker.verdict import Series
from lockstep.history.schema import METADATA, Outcome, Role

_QUANTILES = "array(0.5D, 0.95D, 0.99D)"


@dataclass(slots=True, kw_only=True)
class Statistics:
    """The numbers of one run."""

    acknowledged: int = 0
    failed: int = 0
    unknown: int = 0
    read: int = 0
    acknowledged_by_log: dict[int, int] = field(default_factory=dict)
    throughput: dict[int, dict[str, int]] = field(default_factory=dict)
    latency: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    leaders: dict[tuple[str, int], list[Row]] = field(default_factory=dict)


def collect(spark: SparkSession, sources: Sources, timelines: Sequence[Timeline]) -> list[Statistics]:
    """One pass over sends, one over reads, one over the metadata observations."""
    runs = [Statistics() for _ in timelines]
    finals = {(process.r, process.process) for process in sources.processes if process.role == Role.FINAL}
    for row in _counts(spark, sources, timelines).collect():
        run = runs[row.r]
        if row.what == "log":
            run.acknowledged_by_log[row.key] = row.acknowledged
        elif row.what == "sends":
            run.acknowledged += row.acknowledged
            run.failed += row.failed
            run.unknown += row.unknown
            bucket = run.throughput.setdefault(row.key, {"acknowledged": 0, "unknown": 0, "read": 0})
            bucket["acknowledged"] += row.acknowledged
            bucket["unknown"] += row.unknown
            if row.quantiles is not None:
                run.latency[row.key] = (*row.quantiles, row.slowest)
        else:
            run.read += row.read
            if (row.r, row.process) not in finals:  # the final read is a phase of its own, not throughput
                bucket = run.throughput.setdefault(row.key, {"acknowledged": 0, "unknown": 0, "read": 0})
                bucket["read"] += row.read
    for row in _leaders(spark, sources).collect():
        runs[row.r].leaders.setdefault((row.topic, row.partition), []).append(row)
    return runs


def series(statistics: Statistics, timeline: Timeline) -> Series:
    """What the report plots of one run."""
    bucket_s = timeline.bucket_ns / 1e9
    last = max([*statistics.throughput, -1])
    empty = {"acknowledged": 0, "unknown": 0, "read": 0}
    return Series(
        origin_ns=timeline.origin_ns,
        seconds=timeline.seconds,
        bucket_s=bucket_s,
        throughput=[
            {"t": round(bucket * bucket_s, 6), **statistics.throughput.get(bucket, empty)} for bucket in range(last + 1)
        ],
        latency=[
            {"t": round(bucket * bucket_s, 6)}
            | {
                name: round(latency_ns / 1e6, 3)
                for name, latency_ns in zip(("p50_ms", "p95_ms", "p99_ms", "max_ms"), latencies, strict=True)
            }
            for bucket, latencies in sorted(statistics.latency.items())
        ],
        leaders=[
            {"topic": topic, "partition": partition, "lane": [_moment(row, timeline) for row in rows]}
            for (topic, partition), rows in sorted(statistics.leaders.items())
        ],
        faults=[
            {
                "fault": fault.fault,
                "target": fault.asked,
                "resolved": fault.resolved,
                "start_t": timeline.since_origin(fault.start_ns),
                "end_t": timeline.since_origin(timeline.end_ns if fault.end_ns is None else fault.end_ns),
                "proof": fault.proof,
            }
            for fault in timeline.faults
        ],
        phases=[
            {
                "name": phase.name,
                "start_t": timeline.since_origin(phase.start_ns),
                "end_t": timeline.since_origin(timeline.end_ns if phase.end_ns is None else phase.end_ns),
            }
            for phase in timeline.phases
        ],
    )


def _moment(row: Row, timeline: Timeline) -> dict[str, Any]:
    return {
        "t": timeline.since_origin(row.answered_ns),
        "leader": row.leader,
        "leader_epoch": row.leader_epoch,
        "isr": row.isr,
    }


def _counts(spark: SparkSession, sources: Sources, timelines: Sequence[Timeline]) -> DataFrame:
    buckets = constants(
        spark,
        {"r": "int", "origin_ns": "bigint", "bucket_ns": "bigint"},
        [(r, timeline.origin_ns, timeline.bucket_ns) for r, timeline in enumerate(timelines)],
    )
    # When it was answered: so a time in which nothing was acknowledged shows as one.
    bucket = "greatest(coalesce(return_ns, invoke_ns) - origin_ns, 0L) div bucket_ns as key"
    sent = sources.read(spark, "records-sent", "topic", "partition", "invoke_ns", "return_ns", "outcome").join(
        sf.broadcast(buckets), "r"
    )
    acknowledged = f"count_if(outcome = {Outcome.OK.value}) as acknowledged"
    by_bucket = (
        sent.selectExpr(
            "r", bucket, "outcome", f"if(outcome = {Outcome.OK.value}, return_ns - invoke_ns, null) as took"
        )
        .groupBy("r", "key")
        .agg(
            sf.expr(acknowledged),
            sf.expr(f"count_if(outcome = {Outcome.FAIL.value}) as failed"),
            sf.expr(f"count_if(outcome = {Outcome.UNKNOWN.value}) as unknown"),
            sf.expr(f"percentile_approx(took, {_QUANTILES}, 1000) as quantiles"),
            sf.expr("max(took) as slowest"),
        )
        .selectExpr("'sends' as what", "*")
    )
    by_log = (
        sent.selectExpr(f"{LOG} as log", "outcome")
        .groupBy("log")
        .agg(sf.expr(acknowledged))
        .selectExpr("'log' as what", f"{RUN_OF_LOG} as r", "log as key", "acknowledged")
    )
    reads = (
        sources.read(spark, "records-read", "process", "invoke_ns", "return_ns")
        .join(sf.broadcast(buckets), "r")
        .selectExpr("r", "process", bucket)
        .groupBy("r", "process", "key")
        .agg(sf.expr("count(*) as read"))
        .selectExpr("'reads' as what", "*")
    )
    return by_bucket.unionByName(by_log, allowMissingColumns=True).unionByName(reads, allowMissingColumns=True)


def _leaders(spark: SparkSession, sources: Sources) -> DataFrame:
    """Changes of leader, leader epoch and ISR per partition, as the first broker reported them.

    Metadata responses with a leader epoch below the newest one observed are left out.
    """
    columns = ("source", "answered_ns", "node", "topic", "topic_id", "partition", "leader", "leader_epoch", "isr")
    in_time = "over (partition by r, topic, partition order by answered_ns, leader_epoch, node)"
    return (
        sources.read(spark, "observations", *columns)
        .where(f"source = '{METADATA}' and topic is not null and partition is not null and leader_epoch is not null")
        .withColumn("isr", sf.expr("array_sort(isr)"))
        .selectExpr("*", f"max(leader_epoch) {in_time} as newest")
        .where("leader_epoch = newest")
        .selectExpr("*", f"lag(struct(leader, leader_epoch, isr)) {in_time} as known")
        .where("not (known <=> struct(leader, leader_epoch, isr))")
        .select("r", "topic", "partition", "answered_ns", "leader", "leader_epoch", "isr")
        .orderBy("r", "topic", "partition", "answered_ns", "leader_epoch")
    )
