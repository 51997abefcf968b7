"""Simulated runs as plain rows, for tests that look at every one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from lockstep.simulation import PLANTED, Planted, Settings, simulate

Row = dict[str, Any]

OPS, PARTITIONS = 4_000, 2


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """One run, read back from its files."""

    directory: Path
    tables: dict[str, list[Row]]
    planted: Planted | None

    def rows(self, table: str, **equal: object) -> list[Row]:
        return [row for row in self.tables[table] if all(row[name] == value for name, value in equal.items())]

    def process(self, role: str, isolation: str | None = None) -> int:
        found = [row for row in self.rows("processes", role=role, isolation=isolation) if not row["group_protocol"]]
        return int(found[0]["process"])

    def transactions(self) -> Iterator[Transaction]:
        """As their producers saw them: one after another on every process."""
        sent = defaultdict(list)
        for row in self.rows("records-sent"):
            sent[row["process"]].append(row)
        of_process: dict[int, list[Row]] = defaultdict(list)
        for row in self.tables["operations"]:
            if row["kind"] in ("begin", "commit-txn", "abort-txn"):
                of_process[row["process"]].append(row)
        for process, operations in of_process.items():
            operations.sort(key=lambda row: row["invoke_ns"])
            begins = [row for row in operations if row["kind"] == "begin"]
            for number, begin in enumerate(begins):
                until_ns = begins[number + 1]["invoke_ns"] if number + 1 < len(begins) else 1 << 60
                inside = [row for row in sent[process] if begin["invoke_ns"] <= row["invoke_ns"] < until_ns]
                ends = [row for row in operations if begin["invoke_ns"] < row["invoke_ns"] < until_ns]
                yield Transaction(begin=begin, end=ends[0] if ends else None, sent=inside)


@dataclass(frozen=True, kw_only=True)
class Transaction:
    begin: Row
    end: Row | None
    sent: list[Row] = field(default_factory=list)

    @property
    def committed(self) -> bool:
        """Certainly."""
        return self.end is not None and self.end["kind"] == "commit-txn" and self.end["outcome"] == 0

    @property
    def aborted(self) -> bool:
        """Certainly."""
        if self.end is None:
            return True
        return bool(self.end["outcome"] == 1 or (self.end["kind"] == "abort-txn" and self.end["outcome"] == 0))


def make(
    directory: Path, *, seed: int, bug: str | None = None, ops: int = OPS, partitions: int = PARTITIONS
) -> Simulated:
    simulate(Settings(seed=seed, ops=ops, partitions=partitions, bug=bug), directory)
    return read(directory)


def read(directory: Path) -> Simulated:
    tables = {
        path.stem: pq.read_table(path).drop_columns(["run"]).to_pylist()
        for path in sorted((directory / "history").glob("*.parquet"))
    }
    planted = directory / PLANTED
    found = msgspec.json.decode(planted.read_bytes(), type=Planted) if planted.exists() else None
    return Simulated(directory=directory, tables=tables, planted=found)


def different(one: Iterable[Row], other: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that only one of them has."""
    left, right = ({repr(row): row for row in rows} for rows in (one, other))
    return [left[key] for key in left.keys() - right.keys()], [right[key] for key in right.keys() - left.keys()]
