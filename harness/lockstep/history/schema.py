"""The history, version 1: what was invoked, answered and observed, as tables.

Vocabulary
    process      one client (a writer, a reader, the final reader); never an operating-system process
    operation    one call by a process: invoked at `invoke_ns`, answered at `return_ns` or never
    outcome      ok, fail (certainly did not happen), unknown (may or may not have happened)
    record       one record sent or read by an operation, at `position` within it
    value        the unique id of a record's content: `process << 40 | sequence`; null when the bytes are not ours

On disk, while running: `history/history.json` (`History`, sealed=false) and `history/<table>.jsonl`, append-only; the
lines are typed in `lockstep.history.lines`. A line completes earlier lines with the same key (`KEYS`): non-null fields
of later lines win. So an operation is written when it is invoked (before anything is sent) and again, with only its
key and what is new, when it returns. An operation without a return is `unknown`. A line may also be written once,
complete.

Sealed: `history/<table>.parquet` (zstd) in the schemas below; records split by direction into `records-sent.parquet`,
`records-read.parquet` and so on, each row repeating process, invoke, return and outcome of its operation, so judging
needs no join. `topic` there is an index into `History.topics`. `history.json` is replaced last, with sealed=true: the
seal proves that every table is complete, not that it is unedited.

All times are `time.monotonic_ns()` of the one machine that ran the harness; `run.json` relates them to the wall clock.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pyarrow as pa

HISTORY_VERSION = 1

DIRECTORY = "history"
META = "history.json"

SEQUENCE_BITS = 40


def value_id(process: int, sequence: int) -> int:
    """The unique id of the `sequence`-th record that `process` sends."""
    return process << SEQUENCE_BITS | sequence


def writer_of(value: int) -> int:
    return value >> SEQUENCE_BITS


def sequence_of(value: int) -> int:
    return value & ((1 << SEQUENCE_BITS) - 1)


class Outcome(IntEnum):
    """What is known about an operation; `UNKNOWN` is never guessed away."""

    OK = 0
    FAIL = 1
    UNKNOWN = 2


class Role(StrEnum):
    """What a process is for."""

    WRITER = "writer"
    READER = "reader"
    FINAL = "final"


class Direction(StrEnum):
    """Which way a record went; of a group's member also which offset it committed, which partition it got or lost."""

    SENT = "sent"
    READ = "read"
    COMMITTED = "committed"
    ASSIGNED = "assigned"
    REVOKED = "revoked"


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic by name and id: a recreated topic is another one."""

    name: str
    id: str


class History(msgspec.Struct, kw_only=True):
    """`history.json`: which version, whose, and whether it is complete."""

    version: int
    run: str
    sealed: bool = False
    topics: list[Topic] = []
    torn: dict[str, int] = {}


KEYS: dict[str, tuple[str, ...]] = {
    "processes": ("process",),
    "operations": ("op",),
    "records": ("op", "position"),
    "observations": (),
    "faults": (),
}
"""What identifies a row: a later line with the same key completes an earlier one; () means every line is a row."""


def _schema(*fields: pa.Field[Any]) -> pa.Schema:
    return pa.schema(fields)


PROCESSES = _schema(
    pa.field("run", pa.string(), nullable=False),
    pa.field("process", pa.int32(), nullable=False),
    pa.field("role", pa.string(), nullable=False),
    pa.field("client", pa.string()),
    pa.field("version", pa.string()),
    pa.field("acks", pa.int16()),  # -1 is all
    pa.field("idempotent", pa.bool_()),
    pa.field("retries", pa.int64()),
    pa.field("in_flight", pa.int32()),
    pa.field("isolation", pa.string()),
    pa.field("group_protocol", pa.string()),
    pa.field("commit_mode", pa.string()),
)

OPERATIONS = _schema(
    pa.field("run", pa.string(), nullable=False),
    pa.field("op", pa.int64(), nullable=False),
    pa.field("process", pa.int32(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),  # send, poll, assign, ...
    pa.field("invoke_ns", pa.int64(), nullable=False),
    pa.field("return_ns", pa.int64()),
    pa.field("outcome", pa.int8(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("transactional_id", pa.string()),
    pa.field("group", pa.string()),
    pa.field("generation", pa.int64()),
)

RECORDS = _schema(
    pa.field("run", pa.string(), nullable=False),
    pa.field("op", pa.int64(), nullable=False),
    pa.field("position", pa.int32(), nullable=False),
    pa.field(
        "topic", pa.int32(), nullable=False
    ),  # index into History.topics; JSONL lines carry topic name and topic_id
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("offset", pa.int64()),  # null: sent, and no acknowledgement told where
    pa.field("value", pa.int64()),
    pa.field("key_hash", pa.int64()),
    pa.field("leader_epoch", pa.int32()),
    pa.field("producer_id", pa.int64()),
    pa.field("producer_epoch", pa.int16()),
    pa.field("sequence", pa.int32()),
    pa.field("timestamp_ms", pa.int64()),
    pa.field("bytes", pa.int32()),
    pa.field("process", pa.int32(), nullable=False),
    pa.field("invoke_ns", pa.int64(), nullable=False),
    pa.field("return_ns", pa.int64()),
    pa.field("outcome", pa.int8(), nullable=False),
)
"""Sealed records, the same for all directions."""

OBSERVATIONS = _schema(
    pa.field("run", pa.string(), nullable=False),
    pa.field("asked_ns", pa.int64(), nullable=False),
    pa.field("answered_ns", pa.int64(), nullable=False),
    pa.field("source", pa.string(), nullable=False),  # metadata, final-read, ...
    pa.field("node", pa.int32()),
    pa.field("incarnation", pa.string()),
    pa.field("metadata_offset", pa.int64()),
    pa.field("topic", pa.string()),
    pa.field("topic_id", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("leader", pa.int32()),
    pa.field("leader_epoch", pa.int32()),
    pa.field("partition_epoch", pa.int32()),
    pa.field("isr", pa.list_(pa.int32())),
    pa.field("elr", pa.list_(pa.int32())),
    pa.field("high_watermark", pa.int64()),
    pa.field("log_end", pa.int64()),
    pa.field("log_start", pa.int64()),
    pa.field("last_stable_offset", pa.int64()),
    pa.field("controller", pa.int32()),
    pa.field("controller_epoch", pa.int32()),
    pa.field("extra", pa.string()),  # free fields, as JSON
)

FAULTS = _schema(
    pa.field("run", pa.string(), nullable=False),
    pa.field("time_ns", pa.int64(), nullable=False),
    pa.field("step", pa.int32(), nullable=False),
    pa.field("fault", pa.string(), nullable=False),
    pa.field("target_asked", pa.string(), nullable=False),
    pa.field("target_resolved", pa.string()),
    pa.field("phase", pa.string(), nullable=False),  # inject, healed
    pa.field("proof", pa.string()),  # as JSON
)

SEALED: dict[str, pa.Schema] = {
    "processes": PROCESSES,
    "operations": OPERATIONS,
    **{f"records-{direction}": RECORDS for direction in Direction},
    "observations": OBSERVATIONS,
    "faults": FAULTS,
}
"""The tables of a sealed history, by file stem."""

ADDED = tuple(f"records-{direction}" for direction in (Direction.COMMITTED, Direction.ASSIGNED, Direction.REVOKED))
"""Tables that histories do not have which were sealed before there were groups in them."""

METADATA = "metadata"
"""Source of the observations of what brokers answered about leaders."""

FINAL_READ = "final-read"
"""Source of the observation that a partition was read to its end: log_start, log_end, and extra `{"position": n}`."""
