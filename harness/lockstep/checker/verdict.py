"""`verdict.json` and `series.json`, as types (docs/run-directory.md says what they mean)."""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep_model.verdicts import RunVerdict


class GuaranteeResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    status: str
    reason: str
    count: int


class ExpectationResult(msgspec.Struct, frozen=True, kw_only=True):
    guarantee: str
    status: str
    """What the scenario expected it to be."""
    met: bool


class OperationRef(msgspec.Struct, frozen=True, kw_only=True):
    op: int
    process: int
    kind: str
    invoke_ns: int
    return_ns: int | None
    outcome: str


class Anomaly(msgspec.Struct, frozen=True, kw_only=True):
    guarantee: str
    name: str
    status: str
    """What this one means: violated, permitted or undecided."""
    topic: str
    partition: int
    offset: int | None
    value: int | None
    operations: list[OperationRef]
    fault: str | None
    text: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    verdict: RunVerdict
    guarantees: list[GuaranteeResult]
    anomalies: list[Anomaly]
    operations: int
    records: int
    seconds: float
    counts: dict[str, int]
    run: str
    reason: str | None = None
    """Why the verdict is not what the guarantees alone would say."""
    expectations: list[ExpectationResult] = []


class Series(msgspec.Struct, frozen=True, kw_only=True):
    origin_ns: int
    seconds: float
    bucket_s: float
    throughput: list[dict[str, Any]]
    latency: list[dict[str, Any]]
    leaders: list[dict[str, Any]]
    faults: list[dict[str, Any]]
    phases: list[dict[str, Any]]
