"""The series, brought to a number of buckets that a page can hold and an eye can tell apart."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from lockstep_reports.content import Latency, Series

BUCKETS_LIMIT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """One stretch of time: counts of what was answered in it, and how long the acknowledged writes took."""

    t: float
    acknowledged: int
    unknown: int
    read: int
    latency: Latency | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """All of them, in time order, each `width_s` wide; `merged` is how many recorded ones each stands for."""

    rows: tuple[Bucket, ...]
    width_s: float
    merged: int

    def per_second(self, count: int) -> float:
        return count / self.width_s

    def silences(self) -> list[tuple[float, float]]:
        """From when to when no write was acknowledged, though some were before and after."""
        return [
            (rows[0].t, rows[-1].t + self.width_s)
            for silent, rows in ((silent, list(group)) for silent, group in itertools.groupby(self._active(), _silent))
            if silent
        ]

    def _active(self) -> tuple[Bucket, ...]:
        heard = [index for index, bucket in enumerate(self.rows) if bucket.acknowledged]
        return self.rows[heard[0] : heard[-1] + 1] if heard else ()


def buckets(series: Series) -> Buckets:
    """Merge neighbours until at most `BUCKETS_LIMIT` remain: counts add up, latencies keep the worst."""
    width = series.bucket_s if series.bucket_s > 0 else 1.0
    slots = [*(item.t for item in series.throughput), *(item.t for item in series.latency)]
    recorded = 1 + int(max(slots, default=0.0) / width)
    merged = max(1, math.ceil(recorded / BUCKETS_LIMIT))
    width *= merged
    counts: dict[int, list[int]] = {}
    for item in series.throughput:
        row = counts.setdefault(_slot(item.t, width), [0, 0, 0])
        row[:] = [row[0] + item.acknowledged, row[1] + item.unknown, row[2] + item.read]
    worst: dict[int, Latency] = {}
    for latency in series.latency:
        slot = _slot(latency.t, width)
        worst[slot] = _worse(worst[slot], latency) if slot in worst else latency
    rows = [
        Bucket(t=slot * width, acknowledged=row[0], unknown=row[1], read=row[2], latency=worst.get(slot))
        for slot, row in sorted(counts.items())
    ]
    return Buckets(rows=tuple(rows[:BUCKETS_LIMIT]), width_s=width, merged=merged)


def _slot(t: float, width: float) -> int:
    return int(t / width + 1e-6)  # bucket times are sums of floats: 0.3 / 0.1 is 2.999...


def _silent(bucket: Bucket) -> bool:
    return not bucket.acknowledged


def _worse(one: Latency, other: Latency) -> Latency:
    return Latency(
        t=one.t,
        p50_ms=max(one.p50_ms, other.p50_ms),
        p95_ms=max(one.p95_ms, other.p95_ms),
        p99_ms=max(one.p99_ms, other.p99_ms),
        max_ms=max(one.max_ms, other.max_ms),
    )
