"""Rows as Arrow tables in the schemas of a sealed history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lockstep.history.schema import OPERATIONS, RECORDS, Outcome
from lockstep.simulation.log import ERRORS, NOTHING, Sends
from lockstep.simulation.readers import Commit, Polls
from lockstep.simulation.timeline import Ints

Columns = Mapping[str, Any]


def table(schema: pa.Schema, run: str, rows: int, columns: Columns) -> pa.Table:
    """Columns that are not given are null; NOTHING is null where null may be."""
    arrays: list[Any] = []
    for field in schema:
        if field.name == "run":
            arrays.append(pa.repeat(run, rows))
        elif field.name not in columns:
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(_column(field, columns[field.name], rows))
    return pa.table(arrays, schema=schema)


def _column(field: pa.Field[Any], column: Any, rows: int) -> Any:
    if isinstance(column, pa.Array):
        return column
    if not isinstance(column, np.ndarray):
        return pa.repeat(pa.scalar(column, field.type), rows)
    values = column.astype(field.type.to_pandas_dtype(), copy=False)
    if not field.nullable:
        return pa.array(values, field.type)
    null = column == NOTHING
    return pa.array(values, field.type, mask=null if null.any() else None)


def words(codes: Ints, meanings: Sequence[str | None]) -> pa.Array[Any]:
    """A column of strings by their places in a list."""
    return pa.array(list(meanings), pa.string()).take(codes)


def of_sends(run: str, partition: int, sends: Sends, op: Ints, producer: tuple[Ints, Ints]) -> pa.Table:
    columns = {
        "op": op,
        "position": 0,
        "topic": 0,
        "partition": partition,
        "offset": sends.offset,
        "value": sends.value,
        "leader_epoch": sends.epoch,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "process": sends.process,
        "invoke_ns": sends.invoke_ns,
        "return_ns": sends.return_ns,
        "outcome": sends.outcome,
    }
    return table(RECORDS, run, len(op), columns)


def of_send_operations(run: str, sends: Sends, op: Ints, transactional: pa.Array[Any]) -> pa.Table:
    columns = {
        "op": op,
        "process": sends.process,
        "kind": "send",
        "invoke_ns": sends.invoke_ns,
        "return_ns": sends.return_ns,
        "outcome": sends.outcome,
        "error": words(sends.error, ERRORS),
        "transactional_id": transactional,
    }
    return table(OPERATIONS, run, len(op), columns)


def of_polls(run: str, partition: int, polls: Polls, op: Ints) -> pa.Table:
    columns = {
        "op": op[polls.poll],
        "position": polls.position,
        "topic": 0,
        "partition": partition,
        "offset": polls.offset,
        "value": polls.value,
        "leader_epoch": polls.epoch,
        "timestamp_ms": polls.timestamp_ms,
        "process": polls.process,
        "invoke_ns": polls.invoke_ns[polls.poll],
        "return_ns": polls.return_ns[polls.poll],
        "outcome": Outcome.OK.value,
    }
    return table(RECORDS, run, len(polls.poll), columns)


def of_poll_operations(run: str, polls: Polls, op: Ints, group: str) -> pa.Table:
    columns: dict[str, Any] = {
        "op": op,
        "process": polls.process,
        "kind": "poll",
        "invoke_ns": polls.invoke_ns,
        "return_ns": polls.return_ns,
        "outcome": Outcome.OK.value,
    }
    if polls.generation != NOTHING:
        columns |= {"group": group, "generation": polls.generation}
    return table(OPERATIONS, run, len(op), columns)


def of_commits(run: str, partition: int, commits: Sequence[Commit], op: Ints) -> pa.Table:
    columns = _of_commits(commits, op) | {"position": 0, "topic": 0, "partition": partition}
    return table(RECORDS, run, len(op), columns | {"offset": np.array([one.offset for one in commits], np.int64)})


def of_commit_operations(run: str, commits: Sequence[Commit], op: Ints, group: str) -> pa.Table:
    columns = _of_commits(commits, op) | {
        "kind": "commit",
        "group": group,
        "generation": np.array([one.generation for one in commits], np.int64),
        "error": pa.array([one.error for one in commits], pa.string()),
    }
    return table(OPERATIONS, run, len(op), columns)


def _of_commits(commits: Sequence[Commit], op: Ints) -> dict[str, Any]:
    names = ("process", "invoke_ns", "return_ns", "outcome")
    return {"op": op} | {name: np.array([getattr(one, name) for one in commits], np.int64) for name in names}
