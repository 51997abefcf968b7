"""Sealing a history into Parquet, and opening one, sealed or not.

Sealing merges the lines of each table by key, gives every record the times and outcome of its operation, and replaces
`history.json` last: until then the JSONL files are the history, afterwards the Parquet files are.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from lockstep.errors import HistoryError
from lockstep.history.lines import LINES
from lockstep.history.schema import (
    ADDED,
    DIRECTORY,
    FAULTS,
    HISTORY_VERSION,
    KEYS,
    META,
    OBSERVATIONS,
    OPERATIONS,
    PROCESSES,
    RECORDS,
    SEALED,
    Direction,
    History,
    Outcome,
    Topic,
)
from lockstep.host.disk import explained, replace_file, sync_directory

_READ_BLOCK_BYTES = 4 << 20
_ROW_GROUP_ROWS = 1 << 17  # a row group is the smallest thing Spark can split off: about 2 MB of records

_REPEATED = ("process", "invoke_ns", "return_ns", "outcome")
"""What every record repeats of its operation."""


def _line_schema(sealed: pa.Schema, keys: tuple[str, ...], *, without: tuple[str, ...] = ()) -> pa.Schema:
    """What a line may hold: only the key is required of lines that complete each other."""
    fields = [field for field in sealed if field.name not in ("run", *without)]
    return pa.schema([field.with_nullable(field.name not in keys) if keys else field for field in fields])


_LINE_SCHEMAS: dict[str, pa.Schema] = {
    "processes": _line_schema(PROCESSES, KEYS["processes"]),
    "operations": _line_schema(OPERATIONS, KEYS["operations"]),
    "records": _line_schema(RECORDS, KEYS["records"], without=("topic", *_REPEATED))
    .append(pa.field("direction", pa.string()))
    .append(pa.field("topic", pa.string()))
    .append(pa.field("topic_id", pa.string())),
    "observations": _line_schema(OBSERVATIONS, KEYS["observations"]),
    "faults": _line_schema(FAULTS, KEYS["faults"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedHistory:
    """A history ready to be judged; `meta.sealed` is false when its recorder died and it was sealed for reading."""

    tables: dict[str, Path]
    meta: History


def seal(run_directory: Path) -> History:
    """Turn the JSONL of a finished run into Parquet, in place; sealing twice does nothing."""
    directory = run_directory / DIRECTORY
    meta = read_meta(run_directory)
    if meta.sealed:
        return meta
    meta = _write_tables(directory, directory, meta)
    meta.sealed = True
    replace_file(directory / META, msgspec.json.encode(meta))
    for table in LINES:
        (directory / f"{table}.jsonl").unlink(missing_ok=True)
    return meta


@contextmanager
def open_history(run_directory: Path) -> Iterator[SealedHistory]:
    """The history of a run; one whose recorder died is sealed elsewhere first, and its own files stay as they are."""
    directory = run_directory / DIRECTORY
    meta = read_meta(run_directory)
    if meta.sealed:
        yield _sealed(directory, meta)
        return
    with tempfile.TemporaryDirectory(prefix="lockstep-history-") as temporary:
        meta = _write_tables(directory, Path(temporary), meta)
        yield _sealed(Path(temporary), meta)


def read_meta(run_directory: Path) -> History:
    """`history.json` of a run, refused if it is of a version that this Lockstep does not know."""
    path = run_directory / DIRECTORY / META
    try:
        content = path.read_bytes()
    except OSError as error:
        raise HistoryError(f"{run_directory} holds no history: cannot read {path} ({error.strerror})") from error
    try:
        version = msgspec.json.decode(content, type=_Version).version
        if version != HISTORY_VERSION:
            raise HistoryError(
                f"{path} is of version {version} and this Lockstep reads version {HISTORY_VERSION}: "
                "use the Lockstep that recorded it"
            )
        return msgspec.json.decode(content, type=History)
    except msgspec.MsgspecError as error:
        raise HistoryError(f"{path} is damaged: {error}") from error


class _Version(msgspec.Struct):
    version: int


def _sealed(directory: Path, meta: History) -> SealedHistory:
    tables = {table: directory / f"{table}.parquet" for table in SEALED}
    tables = {table: path for table, path in tables.items() if table not in ADDED or path.exists()}
    for table, path in tables.items():
        _require_readable(path, SEALED[table])
    return SealedHistory(tables=tables, meta=meta)


def _require_readable(path: Path, schema: pa.Schema) -> None:
    """Refuse a file whose Parquet footer is missing or has another schema; its pages are read later, by the checker."""
    if not path.is_file():
        raise HistoryError(f"{path} is missing, so this history cannot be judged: restore it")
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise HistoryError(f"{path} is truncated or damaged, so this history cannot be judged: restore it") from error
    for field in schema:
        if field.name not in found.names or found.field(field.name).type != field.type:
            raise HistoryError(f"{path} lacks the column {field.name} ({field.type}) of history version 1")


def _write_tables(source: Path, target: Path, meta: History) -> History:
    """Read every JSONL table of `source`, and write every sealed table to `target`; returns what is now known."""
    lines: dict[str, pa.Table] = {}
    torn: dict[str, int] = {}
    for table in LINES:
        lines[table], dropped = _read_lines(source / f"{table}.jsonl", table)
        if dropped:
            torn[table] = dropped
    processes = _merge(lines["processes"], KEYS["processes"])
    operations = _merge(lines["operations"], KEYS["operations"])
    outcome = operations["outcome"].fill_null(pa.scalar(Outcome.UNKNOWN.value, pa.int8()))
    operations = operations.set_column(operations.column_names.index("outcome"), "outcome", outcome)
    if torn:
        operations = _known_only(operations, "invoke_ns", torn, "operations")
    records = _with_operation(_merge(lines["records"], KEYS["records"]), operations)
    if torn:
        records = _known_only(records, "invoke_ns", torn, "records")
        records = _known_only(records, "direction", torn, "records")
    records, topics = _with_topic_index(records)
    split = {
        f"records-{way}": records.filter(pc.equal(records["direction"], pa.scalar(way.value))) for way in Direction
    }
    if sum(map(len, split.values())) < len(records):
        raise HistoryError(f"{source / 'records'}.jsonl has records that were neither sent nor read: restore the file")
    tables = {
        "processes": processes,
        "operations": operations,
        **split,
        "observations": lines["observations"],
        "faults": lines["faults"],
    }
    for table, rows in tables.items():
        _write_parquet(target / f"{table}.parquet", _shaped(rows, SEALED[table], meta.run, source / table))
    with explained(target):
        sync_directory(target)
    return History(version=meta.version, run=meta.run, sealed=meta.sealed, topics=topics, torn=torn)


def _read_lines(path: Path, table: str) -> tuple[pa.Table, int]:
    """The lines of one JSONL file as they were written, and how many torn ones were left out at its end."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HistoryError(f"cannot read {path}: {error.strerror}") from error
    whole = data[: data.rfind(b"\n") + 1]
    dropped = int(len(whole) < len(data))
    try:
        return _parse(whole, table), dropped
    except pa.ArrowInvalid as error:
        end = _end_of_good_lines(whole, path, table, error)
        return _parse(whole[:end], table), 1


def _parse(data: bytes, table: str) -> pa.Table:
    schema = _LINE_SCHEMAS[table]
    if not data.strip():
        return schema.empty_table()
    return pa_json.read_json(
        io.BytesIO(data),
        read_options=pa_json.ReadOptions(block_size=_READ_BLOCK_BYTES),
        parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).select(schema.names)


def _end_of_good_lines(data: bytes, path: Path, table: str, cause: pa.ArrowInvalid) -> int:
    """Where the last line starts, if it alone is bad; a bad line anywhere else is an error that names it."""
    decoder = msgspec.json.Decoder(LINES[table])
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            decoder.decode(line)
        except msgspec.MsgspecError as error:
            if number == len(lines):
                return len(data) - len(line)
            raise HistoryError(f"{path} line {number} is damaged ({error}): restore the file") from error
    raise HistoryError(f"{path} is damaged ({cause}): restore the file") from cause


def _merge(table: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """One row per key, in the order of the keys; of every column the last value that is not null."""
    if not len(table):
        return table
    table = table.combine_chunks()
    order, group = _groups(table, keys)
    if len(order) == len(table):
        return table.take(pa.array(order))
    rows = np.arange(len(table))
    columns = []
    for column in table.itercolumns():
        present = rows if column.null_count == 0 else np.flatnonzero(column.is_valid().to_numpy())
        pick = np.full(len(order), -1)
        pick[group[present]] = present  # of repeated indices the last one stays
        columns.append(column.take(pa.array(pick, mask=pick < 0)))
    return pa.table(columns, schema=table.schema)


def _groups(table: pa.Table, keys: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For every key, in order, a row that has it; and for every row the number of its key."""
    key = table[keys[0]].to_numpy().astype(np.int64)
    for name in keys[1:]:
        minor = table[name].to_numpy().astype(np.int64)
        key = key * (int(minor.max()) + 1) + minor
    _, order, group = np.unique(key, return_index=True, return_inverse=True)
    return order, group


def _with_operation(records: pa.Table, operations: pa.Table) -> pa.Table:
    row = pc.index_in(records["op"], value_set=operations["op"])
    for name in _REPEATED:
        records = records.append_column(name, operations[name].take(row))
    return records


def _with_topic_index(records: pa.Table) -> tuple[pa.Table, list[Topic]]:
    """Replace topic name and id by an index into the topics that occur, in order of name and id."""
    names, ids = records["topic"].unique(), records["topic_id"].unique()
    name_code = pc.index_in(records["topic"], value_set=names).to_numpy()
    id_code = pc.index_in(records["topic_id"], value_set=ids).to_numpy()
    _, first, group = np.unique(name_code.astype(np.int64) * len(ids) + id_code, return_index=True, return_inverse=True)
    found = [
        Topic(name=names[name_code[row]].as_py() or "", id=ids[id_code[row]].as_py() or "") for row in first.tolist()
    ]
    topics = sorted(found, key=lambda topic: (topic.name, topic.id))
    index = np.array([topics.index(topic) for topic in found], dtype=np.int32)[group]
    return records.drop_columns(["topic", "topic_id"]).append_column("topic", pa.array(index, pa.int32())), topics


def _known_only(table: pa.Table, column: str, torn: dict[str, int], name: str) -> pa.Table:
    """Without the rows whose beginning was in a torn line; they count as torn too."""
    known = table.filter(table[column].is_valid())
    if len(known) < len(table):
        torn[name] = torn.get(name, 0) + len(table) - len(known)
    return known


def _shaped(table: pa.Table, schema: pa.Schema, run: str, origin: Path) -> pa.Table:
    """In the columns and types of the sealed table; a hole where there must be none is an error."""
    columns = []
    for field in schema:
        column = pa.repeat(run, len(table)) if field.name == "run" else table[field.name].cast(field.type)
        if column.null_count and not field.nullable:
            raise HistoryError(f"{origin}.jsonl has {column.null_count} rows without {field.name}: restore the file")
        columns.append(column)
    return pa.table(columns, schema=schema)


def _write_parquet(path: Path, table: pa.Table) -> None:
    fresh = path.with_name(path.name + ".new")
    with explained(path):
        with fresh.open("wb") as handle:
            pq.write_table(table, handle, compression="zstd", row_group_size=_ROW_GROUP_ROWS)
            handle.flush()
            os.fsync(handle.fileno())
        fresh.replace(path)
