"""When things happened in a run: its origin, its length, its phases and its faults, from small files alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from lockstep.checker.sources import read_small
from lockstep.errors import HistoryError
from lockstep.history.store import SealedHistory

_BUCKETS_MAX = 80
_BUCKETS_MS = (100, 250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000)


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    start_ns: int
    end_ns: int | None = None


class _RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    phases: list[Phase] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault from its injection to its healing; `end_ns` is None if it was never healed."""

    fault: str
    asked: str
    resolved: str | None
    start_ns: int
    end_ns: int | None
    proof: object

    def __str__(self) -> str:
        return f"{self.fault} of {self.resolved} ({self.asked})" if self.resolved else f"{self.fault} of {self.asked}"

    def overlaps(self, start_ns: int, end_ns: int | None) -> bool:
        began_before = end_ns is None or self.start_ns <= end_ns
        return began_before and (self.end_ns is None or start_ns <= self.end_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Times are monotonic nanoseconds; `origin_ns` is when the load began."""

    origin_ns: int
    end_ns: int
    bucket_ns: int
    phases: tuple[Phase, ...]
    faults: tuple[Fault, ...]

    @property
    def unproven(self) -> tuple[str, ...]:
        """The faults that nothing proves to have had an effect."""
        return tuple(str(fault) for fault in self.faults if fault.proof is None)

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.origin_ns) / 1e9

    def since_origin(self, time_ns: int) -> float:
        return round((time_ns - self.origin_ns) / 1e9, 6)


def read_timeline(run_directory: Path, history: SealedHistory) -> Timeline:
    """Works without `run.json`: then the load began with the first operation."""
    phases = _phases(run_directory / "run.json")
    first_ns, last_ns = _extent(history.tables["operations"])
    origin_ns = next((phase.start_ns for phase in phases if phase.name == "load"), first_ns)
    end_ns = max(last_ns, origin_ns)
    length_ms = (end_ns - origin_ns) // 1_000_000
    bucket_ms = next((width for width in _BUCKETS_MS if length_ms <= width * _BUCKETS_MAX), _BUCKETS_MS[-1])
    return Timeline(
        origin_ns=origin_ns,
        end_ns=end_ns,
        bucket_ns=bucket_ms * 1_000_000,
        phases=phases,
        faults=read_faults(history),
    )


def _phases(path: Path) -> tuple[Phase, ...]:
    try:
        return tuple(msgspec.json.decode(path.read_bytes(), type=_RunInfo).phases)
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        raise HistoryError(
            f"{path} is damaged ({error}): restore it, or remove it to judge the history alone"
        ) from error


def _extent(operations: Path) -> tuple[int, int]:
    """The first invocation and the last event, from the statistics that Parquet keeps; (0, 0) without operations."""
    metadata = pq.read_metadata(operations)
    place = {column: index for index, column in enumerate(metadata.schema.names)}
    times: list[int] = []
    for group in range(metadata.num_row_groups):
        for name in ("invoke_ns", "return_ns"):
            statistics = metadata.row_group(group).column(place[name]).statistics
            if statistics is not None and statistics.has_min_max:
                times += [int(statistics.min or 0), int(statistics.max or 0)]
    return min(times, default=0), max(times, default=0)


def read_faults(history: SealedHistory) -> tuple[Fault, ...]:
    """Every fault that was injected, in order."""
    rows = sorted(
        read_small(history, "faults", "time_ns", "step", "fault", "target_asked", "target_resolved", "phase", "proof"),
        key=lambda row: (int(row["time_ns"]), int(row["step"])),
    )
    healed = {row["step"]: row["time_ns"] for row in rows if row["phase"] == "healed"}
    return tuple(
        Fault(
            fault=row["fault"],
            asked=row["target_asked"],
            resolved=row["target_resolved"],
            start_ns=row["time_ns"],
            end_ns=healed.get(row["step"]),
            proof=_json(row["proof"]),
        )
        for row in rows
        if row["phase"] == "inject"
    )


def _json(text: str | None) -> object:
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return text
