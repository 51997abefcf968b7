"""For every bug, what must be true of a run with it: read off the rows alone, and false without the bug."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.history.schema import Outcome
from lockstep.simulation import Planted
from tests.simulation.runs import Row, Simulated, Transaction

Claim = Callable[[Simulated, Planted], bool]
CLAIMS: dict[str, Claim] = {}
TABLES: dict[str, set[str]] = {}
"""By bug, the only tables whose rows it may change."""


def claim(*tables: str) -> Callable[[Claim], Claim]:
    def register(check: Claim) -> Claim:
        name = check.__name__.replace("_", "-")
        CLAIMS[name] = check
        TABLES[name] = set(tables)
        return check

    return register


READ, SENT, OPERATIONS, COMMITTED, SEEN = (
    "records-read",
    "records-sent",
    "operations",
    "records-committed",
    "observations",
)


def reads(run: Simulated, planted: Planted, **equal: object) -> list[Row]:
    found = run.rows(READ, partition=planted.partition, **equal)
    return sorted(found, key=lambda row: (row["invoke_ns"], row["position"]))


def final(run: Simulated, planted: Planted, **equal: object) -> list[Row]:
    return reads(run, planted, process=run.process("final", "read_uncommitted"), **equal)


def plain(run: Simulated, planted: Planted, **equal: object) -> list[Row]:
    return reads(run, planted, process=run.process("reader", "read_uncommitted"), **equal)


def strict(run: Simulated, planted: Planted, **equal: object) -> list[Row]:
    return reads(run, planted, process=run.process("reader", "read_committed"), **equal)


def sent(run: Simulated, planted: Planted) -> Row:
    (row,) = run.rows(SENT, value=planted.value)
    return row


def transaction(run: Simulated, planted: Planted) -> Transaction:
    return next(one for one in run.transactions() if any(row["value"] == planted.value for row in one.sent))


@claim(READ)
def lost_ack(run: Simulated, planted: Planted) -> bool:
    row = sent(run, planted)
    acked = row["outcome"] == Outcome.OK and row["offset"] == planted.offset
    return acked and not reads(run, planted, offset=planted.offset)


@claim(READ)
def phantom(run: Simulated, planted: Planted) -> bool:
    found = reads(run, planted, offset=planted.offset)
    return (
        bool(found) and {row["value"] for row in found} == {planted.value} and not run.rows(SENT, value=planted.value)
    )


@claim(READ)
def foreign_bytes(run: Simulated, planted: Planted) -> bool:
    found = reads(run, planted, offset=planted.offset)
    return bool(found) and {row["value"] for row in found} == {None}


@claim(SENT, OPERATIONS)
def failed_write_read(run: Simulated, planted: Planted) -> bool:
    failed = sent(run, planted)["outcome"] == Outcome.FAIL
    return failed and {row["value"] for row in final(run, planted, offset=planted.offset)} == {planted.value}


@claim(READ)
def duplicate(run: Simulated, planted: Planted) -> bool:
    offsets = {row["offset"] for row in final(run, planted, value=planted.value)}
    return offsets == {planted.offset, sent(run, planted)["offset"]} and len(offsets) == 2


@claim(READ)
def inconsistent_offset(run: Simulated, planted: Planted) -> bool:
    values = {row["value"] for row in reads(run, planted, offset=planted.offset)}
    return len(values) == 2 and planted.value in values


@claim(SENT)
def wrong_offset(run: Simulated, planted: Planted) -> bool:
    there = {row["offset"] for row in final(run, planted, value=planted.value)}
    return sent(run, planted)["offset"] == planted.offset and len(there) == 1 and planted.offset not in there


@claim(SENT, READ)
def reorder(run: Simulated, planted: Planted) -> bool:
    late = sent(run, planted)
    return late["offset"] == planted.offset and any(
        row["return_ns"] < late["invoke_ns"] and row["offset"] > late["offset"]
        for row in run.rows(SENT, partition=planted.partition, outcome=Outcome.OK)
    )


@claim(SENT, READ)
def nonmonotonic_send(run: Simulated, planted: Planted) -> bool:
    (here,) = final(run, planted, offset=planted.offset)
    assert planted.offset is not None
    (after,) = final(run, planted, offset=planted.offset + 1)
    writers = {row["process"] for value in (here["value"], after["value"]) for row in run.rows(SENT, value=value)}
    return here["value"] == planted.value and len(writers) == 1 and after["value"] < here["value"]


@claim(SENT, READ)
def stale_leader_write(run: Simulated, planted: Planted) -> bool:
    (here,) = final(run, planted, offset=planted.offset)
    before = [row for row in final(run, planted) if row["offset"] < here["offset"]]
    return bool(here["leader_epoch"] == sent(run, planted)["leader_epoch"] < before[-1]["leader_epoch"])


@claim(READ)
def vanished_read(run: Simulated, planted: Planted) -> bool:
    seen = plain(run, planted, offset=planted.offset)
    return [row["value"] for row in seen] == [planted.value] and not final(run, planted, offset=planted.offset)


@claim(READ)
def torn_transaction(run: Simulated, planted: Planted) -> bool:
    one = transaction(run, planted)
    seen = {row["value"] for row in strict(run, planted)} & {row["value"] for row in one.sent}
    return (
        not one.aborted and bool(seen) and planted.value not in seen and bool(final(run, planted, value=planted.value))
    )


@claim(READ)
def aborted_read(run: Simulated, planted: Planted) -> bool:
    one = transaction(run, planted)
    return not one.committed and [row["offset"] for row in strict(run, planted, value=planted.value)] == [
        planted.offset
    ]


@claim(READ)
def precommitted_read(run: Simulated, planted: Planted) -> bool:
    one = transaction(run, planted)
    (row,) = strict(run, planted, value=planted.value)
    return one.end is not None and bool(row["return_ns"] < one.end["invoke_ns"]) and row["offset"] == planted.offset


@claim(SENT, OPERATIONS, READ)
def zombie_write(run: Simulated, planted: Planted) -> bool:
    row = sent(run, planted)
    (operation,) = run.rows(OPERATIONS, op=row["op"])
    newer = [
        one for one in run.rows(SENT, producer_id=row["producer_id"]) if one["producer_epoch"] > row["producer_epoch"]
    ]
    taken = row["outcome"] == Outcome.OK and bool(final(run, planted, offset=planted.offset, value=planted.value))
    fenced = [
        one for one in run.rows(OPERATIONS, process=row["process"], kind="commit-txn", outcome=Outcome.FAIL)
        if one["transactional_id"] == operation["transactional_id"]
    ]  # fmt: skip
    return taken and bool(newer or fenced)


@claim(READ, COMMITTED, SEEN)
def stuck_lso(run: Simulated, planted: Planted) -> bool:
    probes = run.rows(SEEN, source="replica-probe", partition=planted.partition)
    last = max(probes, key=lambda row: int(row["asked_ns"]))
    beyond = [row for row in strict(run, planted) if row["offset"] >= planted.offset]
    return last["last_stable_offset"] == planted.offset < last["high_watermark"] and not beyond


def _skipped(run: Simulated, planted: Planted) -> tuple[Row, Row]:
    """What the plain reader got instead: the records before and after."""
    assert planted.offset is not None
    assert final(run, planted, offset=planted.offset)
    assert not plain(run, planted, offset=planted.offset)
    got = plain(run, planted)
    return [row for row in got if row["offset"] < planted.offset][-1], next(
        row for row in got if row["offset"] > planted.offset
    )


@claim(READ)
def poll_skip_internal(run: Simulated, planted: Planted) -> bool:
    before, after = _skipped(run, planted)
    return bool(before["op"] == after["op"])


@claim(READ)
def poll_skip_external(run: Simulated, planted: Planted) -> bool:
    before, after = _skipped(run, planted)
    return bool(before["op"] != after["op"])


@claim(READ)
def nonmonotonic_poll_internal(run: Simulated, planted: Planted) -> bool:
    got = plain(run, planted)
    place = next(place for place, row in enumerate(got) if row["offset"] == planted.offset)
    here, before = got[place], got[place - 1]
    return bool(here["op"] == before["op"] and here["offset"] < before["offset"])


@claim(READ)
def nonmonotonic_poll_external(run: Simulated, planted: Planted) -> bool:
    again = plain(run, planted, offset=planted.offset)
    return len({row["op"] for row in again}) == 2 and {row["value"] for row in again} == {planted.value}


def _commit(run: Simulated, planted: Planted) -> tuple[Row, Row]:
    (row,) = run.rows(COMMITTED, op=planted.operations[0])
    (operation,) = run.rows(OPERATIONS, op=row["op"])
    assert row["offset"] == planted.offset
    return row, operation


@claim(COMMITTED)
def commit_beyond_processing(run: Simulated, planted: Planted) -> bool:
    row, _ = _commit(run, planted)
    got = [one["offset"] for one in reads(run, planted, process=row["process"]) if one["return_ns"] < row["invoke_ns"]]
    everything = {one["offset"] for one in final(run, planted)}
    return row["offset"] - 1 not in got and (row["offset"] - 1 in everything or row["offset"] - 1 > max(got))


@claim(COMMITTED)
def commit_backwards(run: Simulated, planted: Planted) -> bool:
    row, operation = _commit(run, planted)
    same = {one["op"] for one in run.rows(OPERATIONS, kind="commit", generation=operation["generation"])}
    return any(
        one["offset"] > row["offset"] and one["invoke_ns"] < row["invoke_ns"]
        for one in run.rows(COMMITTED, partition=planted.partition)
        if one["op"] in same
    )


@claim(COMMITTED, OPERATIONS)
def zombie_commit(run: Simulated, planted: Planted) -> bool:
    row, operation = _commit(run, planted)
    later = [one for one in run.rows(OPERATIONS, kind="assign") if (one["generation"] or 0) > operation["generation"]]
    return row["outcome"] == Outcome.OK and any(one["return_ns"] < row["invoke_ns"] for one in later)


@claim("records-assigned")
def double_owner(run: Simulated, planted: Planted) -> bool:
    generations = {row["op"]: row["generation"] for row in run.rows(OPERATIONS, kind="assign")}
    owners = [
        (generations[row["op"]], row["process"])
        for row in run.rows("records-assigned", partition=planted.partition)
        if row["op"] in planted.operations
    ]
    return len(owners) == 2 and owners[0][0] == owners[1][0] and owners[0][1] != owners[1][1]


@claim(SEEN)
def read_above_high_watermark(run: Simulated, planted: Planted) -> bool:
    (probe,) = run.rows(SEEN, source="replica-probe", partition=planted.partition, asked_ns=planted.time_ns)
    (row,) = plain(run, planted, offset=planted.offset)
    return bool(probe["high_watermark"] <= row["offset"] and row["return_ns"] < probe["asked_ns"])


@claim(SEEN)
def epoch_backwards(run: Simulated, planted: Planted) -> bool:
    rows = run.rows(SEEN, source="metadata", partition=planted.partition)
    return any(
        one["leader_epoch"] > row["leader_epoch"] and one["node"] == row["node"]
        for row in rows
        if row["asked_ns"] == planted.time_ns
        for one in rows
        if one["asked_ns"] < row["asked_ns"]
    )


@claim(SEEN)
def two_leaders_in_one_epoch(run: Simulated, planted: Planted) -> bool:
    rows = run.rows(SEEN, source="metadata", partition=planted.partition)
    epochs = {row["leader_epoch"] for row in rows if row["asked_ns"] == planted.time_ns}
    return any(len({row["leader"] for row in rows if row["leader_epoch"] == epoch}) == 2 for epoch in epochs)
