"""The lines of an unsealed history, typed: one struct per table, and what is not known yet is left out.

Only the key of a line is required, so the line that completes an operation says no more than what is new.
"""

from __future__ import annotations

import msgspec

from lockstep.history.schema import Direction, Outcome, Role


class ProcessLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    process: int
    role: Role | None = None
    client: str | None = None
    version: str | None = None
    acks: int | None = None
    idempotent: bool | None = None
    retries: int | None = None
    in_flight: int | None = None
    isolation: str | None = None
    group_protocol: str | None = None
    commit_mode: str | None = None


class OperationLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    op: int
    process: int | None = None
    kind: str | None = None
    invoke_ns: int | None = None
    return_ns: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    transactional_id: str | None = None
    group: str | None = None
    generation: int | None = None


class RecordLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    op: int
    position: int
    direction: Direction | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    key_hash: int | None = None
    leader_epoch: int | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    sequence: int | None = None
    timestamp_ms: int | None = None
    bytes: int | None = None


class ObservationLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    asked_ns: int
    answered_ns: int
    source: str
    node: int | None = None
    incarnation: str | None = None
    metadata_offset: int | None = None
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    isr: list[int] | None = None
    elr: list[int] | None = None
    high_watermark: int | None = None
    log_end: int | None = None
    log_start: int | None = None
    last_stable_offset: int | None = None
    controller: int | None = None
    controller_epoch: int | None = None
    extra: str | None = None
    """Free fields, as JSON text."""


class FaultLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    time_ns: int
    step: int
    fault: str
    target_asked: str
    phase: str
    target_resolved: str | None = None
    proof: str | None = None
    """What shows that it had effect, as JSON text."""


CRASHED = "crashed"
LOSSY = "lossy"
ELECTED_UNCLEANLY = "elected_uncleanly"
"""What judging must know of a fault, as keys of its proof: which nodes died without a shutdown, which of them lost the
end of their logs with it, and which partitions (`topic-number`) were given a leader from outside the ISR."""

Line = ProcessLine | OperationLine | RecordLine | ObservationLine | FaultLine

LINES: dict[str, type[Line]] = {
    "processes": ProcessLine,
    "operations": OperationLine,
    "records": RecordLine,
    "observations": ObservationLine,
    "faults": FaultLine,
}
"""The tables of an unsealed history, by file stem."""
