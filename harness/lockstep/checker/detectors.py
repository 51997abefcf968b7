"""The anomalies: a table of predicates over the fact tables, and one sentence for each.

`when` and `effect` are Spark SQL over the columns of `facts`. The effect is what the anomaly means under the conditions
in which it happened: `violated`, `permitted` (nothing promised otherwise) or `undecided` (it cannot be told).
"""

from __future__ import annotations

from dataclasses import dataclass

from lockstep_model.verdicts import Status

VIOLATED, PERMITTED, UNDECIDED = Status.VIOLATED.value, Status.PERMITTED.value, Status.UNDECIDED.value

SUSPECT = "suspect"
"""The effect of a poll that has to be looked at record by record; never in a verdict."""

_ALWAYS = f"'{VIOLATED}'"
_BY_WHAT_IS_OWED = f"case when firm then '{VIOLATED}' when weak then '{PERMITTED}' else '{UNDECIDED}' end"

_SENT_AGAIN = "copy_log = log and (given_up or not keeps and not (at_end and copy_at_end))"
"""A copy that is permitted: the producer sent the record again in a new epoch, or after the log had lost it.

A record that the log holds twice in the end was not lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One kind of anomaly; `other` is the second place the sentence speaks of, `ops` the operations that show it."""

    guarantee: str
    name: str
    when: str
    effect: str
    ops: str
    text: str
    offset: str = "offset"
    value: str = "value"
    other: str = "struct(log, offset, value)"
    returned: str = "cast(null as bigint)"
    """When the other place is known only by when its send returned in the same log."""


PLACEMENTS: tuple[Detector, ...] = (
    Detector(
        guarantee="no-lost-acks",
        name="lost-ack",
        when="acked and proven and not survived and coalesce(offset >= log_start, true)",
        # Without an offset it is unknown whether the record was below the log start offset, and so deleted.
        effect=f"case when offset is null and log_start > 0 then '{UNDECIDED}' else {_BY_WHAT_IS_OWED} end",
        ops="array(send_op)",
        other="struct(log, log_end, value)",
        text="{place}: value {value} was acknowledged to writer {writer} (op {op})"
        " and is not in the log read to its end at {other_offset}",
    ),
    Detector(
        guarantee="one-value-per-offset",
        name="inconsistent-offset",
        when="same_offset",
        effect=f"case when firm and other_firm then '{VIOLATED}'"
        f" when (firm or weak) and (other_firm or other_weak) then '{PERMITTED}' else '{UNDECIDED}' end",
        ops="array(coalesce(send_op, read_op), other_op)",
        other="struct(log, offset, other_value)",
        text="{place}: value {value} (op {op}) and value {other_value} (op {other_op}) are both there",
    ),
    Detector(
        guarantee="one-value-per-offset",
        name="moved-ack",
        when="acked and gone and survived",
        effect=_BY_WHAT_IS_OWED,
        ops="array(send_op, copy_op)",
        other="struct(copy_log, copy_offset, value)",
        text="{place}: value {value} was acknowledged there to writer {writer} (op {op})"
        " and was read only at {other_place} (op {other_op})",
    ),
    Detector(
        guarantee="no-duplicates",
        name="duplicate",
        when="present and value is not null and (copy_log != log or copy_offset != offset)",
        effect=f"case when {_SENT_AGAIN} then '{PERMITTED}' when idempotent then '{VIOLATED}'"
        f" when not_idempotent then '{PERMITTED}' else '{UNDECIDED}' end",
        ops="array(coalesce(send_op, read_op), copy_op)",
        other="struct(copy_log, copy_offset, value)",
        text="{place}: value {value} is there (op {op}) and also at {other_place} (op {other_op})",
    ),
    Detector(
        guarantee="no-phantoms",
        name="phantom",
        when="was_read and value is not null and sent_op is null",
        effect=f"if(beyond, '{UNDECIDED}', '{VIOLATED}')",
        ops="array(read_op)",
        text="{place}: value {value} was read (op {op}) and never sent",
    ),
    Detector(
        guarantee="no-phantoms",
        name="failed-write-read",
        when="was_read and failed",
        effect=_ALWAYS,
        ops="array(read_op, sent_op)",
        text="{place}: value {value} was read (op {op}) although its send certainly failed (op {other_op})",
    ),
    Detector(
        guarantee="no-phantoms",
        name="foreign-bytes",
        when="was_read and value is null",
        effect=_ALWAYS,
        ops="array(read_op)",
        text="{place}: a record was read (op {op}) that is not one of this run's values",
    ),
    Detector(
        guarantee="real-time-order",
        name="reordered",
        # Two values at one offset are not out of order: that is for one-value-per-offset to say.
        when="present and firm and not gone and not coalesce(same_offset, false) and sent_invoke_ns > later_return_ns",
        effect=_ALWAYS,
        ops="array(sent_op)",
        returned="later_return_ns",
        text="{place}: value {value} was sent (op {op}) after value {other_value} had been acknowledged"
        " at offset {other_offset} (op {other_op}), and yet comes before it",
    ),
)

POLLS: tuple[Detector, ...] = (
    Detector(
        guarantee="monotonic-reads",
        name="backwards-poll",
        when="before.highest >= lowest",
        effect=_ALWAYS,
        ops="array(op, before.op)",
        offset="lowest",
        value="cast(null as bigint)",
        other="struct(log, before.highest, cast(null as bigint))",
        text="{place}: process {process} read it (op {op}) after it had read up to offset {other_offset}"
        " (op {other_op})",
    ),
    Detector(
        guarantee="monotonic-reads",
        name=SUSPECT,
        when="not in_order",
        effect=f"'{SUSPECT}'",
        ops="array(op)",
        offset="lowest",
        value="cast(null as bigint)",
        other="struct(log, lowest, cast(null as bigint))",
        text="",
    ),
)

STEPS: tuple[Detector, ...] = (
    Detector(
        guarantee="monotonic-reads",
        name="backwards-in-poll",
        when="offset <= offset_before",
        effect=_ALWAYS,
        ops="array(op)",
        other="struct(log, offset_before, value)",
        text="{place}: process {process} read it after offset {other_offset} in the same poll (op {op})",
    ),
)
