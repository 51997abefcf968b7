"""What the files of a run directory hold, as values (docs/run-directory.md is the contract).

Fields that another version may leave out have defaults; fields that are unknown here are ignored.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep_model.verdicts import RunVerdict, Status


class Guarantee(msgspec.Struct, frozen=True, kw_only=True):
    """One promise, and whether it was kept."""

    name: str
    status: Status
    reason: str = ""
    count: int = 0


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario expected of a guarantee, and whether it came out so."""

    guarantee: str
    status: Status
    met: bool


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a client, as evidence."""

    op: int
    process: int
    kind: str
    invoke_ns: int
    return_ns: int | None = None
    outcome: str = "unknown"
    error: str | None = None
    offset: int | None = None
    value: int | str | None = None

    @property
    def who(self) -> str:
        return f"{ {'send': 'writer', 'poll': 'reader'}.get(self.kind, 'process') } {self.process}"


class Anomaly(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of evidence against a guarantee."""

    guarantee: str
    name: str
    text: str = ""
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    value: int | str | None = None
    operations: list[Operation] = []
    fault: str | None = None

    @property
    def place(self) -> str:
        """`orders-0, offset 17`, as far as it is known."""
        where = (
            [] if self.topic is None else [self.topic if self.partition is None else f"{self.topic}-{self.partition}"]
        )
        return ", ".join(where + ([] if self.offset is None else [f"offset {self.offset}"]))

    @property
    def began_ns(self) -> int | None:
        return min((operation.invoke_ns for operation in self.operations), default=None)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json`."""

    verdict: RunVerdict
    guarantees: list[Guarantee] = []
    anomalies: list[Anomaly] = []
    operations: int = 0
    records: int = 0
    seconds: float | None = None
    counts: dict[str, int] = {}
    run: str | None = None
    reason: str | None = None
    expectations: list[Expectation] = []


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A named stretch of the run, on the monotonic clock."""

    name: str
    start_ns: int
    end_ns: int | None = None


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """One instant, on both clocks."""

    monotonic_ns: int
    utc: str


class Info(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`; all of it optional, since a run can end before it is written in full."""

    run: str | None = None
    scenario: str | None = None
    seed: int | None = None
    lockstep: str | None = None
    spec: dict[str, Any] = {}
    external: dict[str, Any] = {}
    backend: str | None = None
    command: str | None = None
    replay: str | None = None
    environment: dict[str, Any] = {}
    clock: Clock | None = None
    nodes: list[dict[str, Any]] = []
    phases: list[Phase] = []


class Throughput(msgspec.Struct, frozen=True, kw_only=True):
    """What was begun in one bucket of time, and how it ended."""

    t: float
    acknowledged: int = 0
    unknown: int = 0
    read: int = 0


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long the writes acknowledged in one bucket took."""

    t: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class Leadership(msgspec.Struct, frozen=True, kw_only=True):
    """The leader and the ISR of a partition from `t` on."""

    t: float
    leader: int | None = None
    leader_epoch: int | None = None
    isr: list[int] = []


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The leaders of one partition, in time order."""

    topic: str
    partition: int
    lane: list[Leadership] = []

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class SeriesFault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault as the checker saw it in the history."""

    fault: str
    start_t: float
    end_t: float | None = None
    target: str = ""
    resolved: str | None = None
    proof: Any = None


class SeriesPhase(msgspec.Struct, frozen=True, kw_only=True):
    """A phase on the time axis of the series."""

    name: str
    start_t: float
    end_t: float | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """`series.json`: what is plotted, in seconds since the load began."""

    origin_ns: int
    seconds: float
    bucket_s: float
    throughput: list[Throughput] = []
    latency: list[Latency] = []
    leaders: list[Lane] = []
    faults: list[SeriesFault] = []
    phases: list[SeriesPhase] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`plan.json`; steps and workloads stay free-form, because scenarios and plugins add their own fields."""

    scenario: str | None = None
    seed: int | None = None
    topics: list[dict[str, Any]] = []
    workloads: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    cluster: dict[str, str] = {}


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a fault's life: what was intended, done, proved, healed."""

    phase: str
    t: float
    detail: dict[str, Any] = {}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault: its planned target, the resolved one, start and end (seconds; None = never healed), and the proofs."""

    fault: str
    asked: str
    resolved: str | None
    start_t: float
    end_t: float | None
    step: int | None = None
    moments: list[Moment] = []

    @property
    def title(self) -> str:
        return f"{self.fault} {self.resolved or self.asked}".strip()
