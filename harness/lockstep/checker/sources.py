"""The tables of many runs as Spark DataFrames, one per table, without copying anything.

Two runs may have the same name (a copied directory), so a run is known here by its place in the list, the column `r`. A
directory of links, `<table>/r=<place>/`, gives Spark that column for free.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lockstep.errors import HistoryError
from lockstep.history.schema import FINAL_READ, SEALED
from lockstep.history.store import SealedHistory, open_history

TOPIC_BITS = 20
PARTITION_BITS = 24

LOG = (
    f"shiftleft(cast(r as bigint), {TOPIC_BITS + PARTITION_BITS})"
    f" | shiftleft(cast(topic as bigint), {PARTITION_BITS}) | cast(partition as bigint)"
)
"""One partition of one topic of one run as one number, since grouping and sorting by it takes most of the time."""

RUN_OF_LOG = f"cast(shiftright(log, {TOPIC_BITS + PARTITION_BITS}) as int)"

_DDL = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.list_(pa.int32()): "array<int>",
}


def run_of(log: int) -> int:
    return log >> TOPIC_BITS + PARTITION_BITS


def topic_of(log: int) -> int:
    return log >> PARTITION_BITS & (1 << TOPIC_BITS) - 1


def partition_of(log: int) -> int:
    return log & (1 << PARTITION_BITS) - 1


def log_of(r: int, topic: int, partition: int) -> int:
    return r << TOPIC_BITS + PARTITION_BITS | topic << PARTITION_BITS | partition


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The proof that a log was read to its end."""

    log: int
    log_start: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A client of the history: its role, and the settings on which its guarantees depend."""

    r: int
    process: int
    role: str
    acks: int | None
    idempotent: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The histories to judge, in order, and where Spark finds their tables.

    Processes and final reads are a handful of rows per run, so they are read here and handed to Spark as constants.
    """

    histories: tuple[SealedHistory, ...]
    links: Path
    processes: tuple[Process, ...]
    ends: tuple[End, ...]

    def read(self, spark: SparkSession, table: str, *columns: str) -> DataFrame:
        """One table of all runs, with `r`; the schema is given, so that nothing has to be looked at to infer it."""
        schema = ", ".join(f"`{field.name}` {_DDL[field.type]}" for field in SEALED[table])
        return spark.read.schema(f"{schema}, r int").parquet(str(self.links / table)).select("r", *columns)

    def original(self, text: str) -> Path | None:
        """The file of a history that a message of Spark's speaks of."""
        for r, history in enumerate(self.histories):
            for table, path in history.tables.items():
                if f"{table}/r={r}/" in text:
                    return path
        return None


def constants(spark: SparkSession, schema: dict[str, str], rows: Sequence[tuple[int | None, ...]]) -> DataFrame:
    """A handful of rows of numbers, as a relation that Spark needs no job to broadcast."""
    cells = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows or [(0,) * len(schema)])
    table = spark.sql(f"values {cells} as constants({', '.join(schema)})")
    typed = table.selectExpr(*(f"cast({name} as {kind}) as {name}" for name, kind in schema.items()))
    return typed if rows else typed.where("false")


def _literal(number: int | None) -> str:
    return "null" if number is None else str(number)


@contextmanager
def open_sources(run_directories: Sequence[Path]) -> Iterator[Sources]:
    """Open every history; any that cannot be read is an error that names the file."""
    with ExitStack() as stack:
        links = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lockstep-check-")))
        histories = tuple(stack.enter_context(open_history(directory)) for directory in run_directories)
        for r, history in enumerate(histories):
            for table, path in history.tables.items():
                place = links / table / f"r={r}"
                place.mkdir(parents=True)
                (place / path.name).symlink_to(path.resolve())
        yield Sources(
            histories=histories,
            links=links,
            processes=tuple(process for r, history in enumerate(histories) for process in _processes(r, history)),
            ends=tuple(end for r, history in enumerate(histories) for end in _ends(r, history)),
        )


def read_small(history: SealedHistory, table: str, *columns: str, **equal: str) -> list[dict[str, Any]]:
    """The rows of a small table, or the few of a larger one where a column has the given value."""
    path = history.tables[table]
    try:
        rows = pq.read_table(
            path, columns=list(columns), filters=[(name, "=", value) for name, value in equal.items()] or None
        )
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{path} is truncated or damaged, so this history cannot be judged: restore it") from error
    return rows.to_pylist()


def _processes(r: int, history: SealedHistory) -> Iterator[Process]:
    for row in read_small(history, "processes", "process", "role", "acks", "idempotent"):
        yield Process(r=r, **row)


def _ends(r: int, history: SealedHistory) -> Iterator[End]:
    """The last final read of each log, if it got to the end; a torn line may have been part of what it read."""
    if history.meta.torn.keys() & {"operations", "records"}:
        return
    index = {(topic.name, topic.id): number for number, topic in enumerate(history.meta.topics)}
    columns = ("answered_ns", "topic", "topic_id", "partition", "log_start", "log_end", "extra")
    last: dict[int, dict[str, Any]] = {}
    for row in sorted(
        read_small(history, "observations", *columns, source=FINAL_READ), key=lambda row: int(row["answered_ns"])
    ):
        topic = index.get((row["topic"], row["topic_id"] or ""))
        if topic is not None and row["partition"] is not None:
            last[log_of(r, topic, row["partition"])] = row
    for log, row in last.items():
        position = _position(row["extra"])
        if position is None or row["log_start"] is None or row["log_end"] is None:
            continue
        if position >= row["log_end"]:
            yield End(log=log, log_start=row["log_start"], position=position)


class _Extra(msgspec.Struct):
    position: int | None = None


def _position(extra: str | None) -> int | None:
    try:
        return msgspec.json.decode(extra or "{}", type=_Extra).position
    except msgspec.MsgspecError:
        return None  # a proof that cannot be read proves nothing
