"""A run without a bug is one that a correct cluster could have left behind, whatever the seed."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from lockstep.history.schema import Outcome
from tests.simulation.runs import Simulated, make


@pytest.fixture(scope="module", params=[(1, 4_000, 2), (2, 3_000, 3), (3, 1_000, 1)], ids=str)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    seed, ops, partitions = request.param
    simulated = make(tmp_path_factory.mktemp("run") / "run", seed=seed, ops=ops, partitions=partitions)
    assert len(simulated.tables["operations"]) == ops
    return simulated


def test_every_operation_has_its_own_number_and_returns_after_it_began(run: Simulated) -> None:
    operations = run.tables["operations"]
    assert len({row["op"] for row in operations}) == len(operations)
    assert all(row["invoke_ns"] <= row["return_ns"] for row in operations)


def test_records_repeat_their_operations(run: Simulated) -> None:
    of_op = {row["op"]: row for row in run.tables["operations"]}
    for table in ("records-sent", "records-read", "records-committed", "records-assigned", "records-revoked"):
        for row in run.tables[table]:
            assert all(row[name] == of_op[row["op"]][name] for name in ("process", "invoke_ns", "return_ns", "outcome"))


def test_positions_count_the_records_of_an_operation(run: Simulated) -> None:
    positions = defaultdict(list)
    for row in run.tables["records-read"]:
        positions[row["op"]].append(row["position"])
    assert all(sorted(found) == list(range(len(found))) for found in positions.values())


def test_a_reader_does_one_thing_at_a_time(run: Simulated) -> None:
    readers = {row["process"] for row in run.tables["processes"] if row["role"] != "writer"}
    of_process = defaultdict(list)
    for row in run.tables["operations"]:
        if row["process"] in readers and row["kind"] in ("poll", "commit"):
            of_process[row["process"]].append((row["invoke_ns"], row["return_ns"]))
    for spans in of_process.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(spans)))


def test_the_final_reader_sees_the_log_and_every_acknowledgement_is_in_it(run: Simulated) -> None:
    log = {(row["partition"], row["offset"]): row["value"] for row in run.rows("records-read", process=_final(run))}
    weak = {row["process"] for row in run.rows("processes", acks=1)}
    for row in run.tables["records-sent"]:
        if row["outcome"] == Outcome.OK and row["process"] not in weak:
            assert log[row["partition"], row["offset"]] == row["value"]
    failed = {row["value"] for row in run.rows("records-sent", outcome=Outcome.FAIL)}
    assert not failed & set(log.values())
    assert len(set(log.values())) == len(log)


def test_no_writer_overtakes_itself(run: Simulated) -> None:
    sent = {row["value"]: row for row in run.tables["records-sent"]}
    in_order = sorted(run.rows("records-read", process=_final(run)), key=lambda row: (row["partition"], row["offset"]))
    last: dict[tuple[int, int], int] = {}
    for row in in_order:
        key = (row["partition"], sent[row["value"]]["process"])
        assert last.get(key, -1) < row["value"]
        last[key] = row["value"]


def test_nothing_is_read_before_it_was_sent_and_leader_epochs_rise(run: Simulated) -> None:
    sent = {row["value"]: row for row in run.tables["records-sent"]}
    epochs: dict[int, tuple[int, int]] = {}
    for row in sorted(run.tables["records-read"], key=lambda row: (row["partition"], row["offset"])):
        assert sent[row["value"]]["invoke_ns"] < row["return_ns"]
        offset, epoch = epochs.get(row["partition"], (-1, 0))
        assert row["leader_epoch"] >= epoch
        assert row["offset"] > offset or row["leader_epoch"] == epoch
        epochs[row["partition"]] = (row["offset"], row["leader_epoch"])


def test_readers_of_committed_records_get_whole_transactions_that_were_committed(run: Simulated) -> None:
    reader = run.process("reader", "read_committed")
    returned = {row["value"]: row["return_ns"] for row in run.rows("records-read", process=reader)}
    invoked = {row["value"]: row["invoke_ns"] for row in run.rows("records-read", process=reader)}
    kinds = set()
    for one in run.transactions():
        acked = [row["value"] for row in one.sent if row["outcome"] == Outcome.OK]
        seen = [value for value in acked if value in returned]
        assert seen in ([], acked)
        assert not (one.aborted and seen)
        assert not (one.committed and not seen)
        assert one.end is None or all(one.end["invoke_ns"] < returned[value] for value in seen)
        assert all(invoked[value] > 0 for value in seen)
        kinds.add((one.committed, one.aborted))
    assert kinds == {(True, False), (False, True), (False, False)}


def test_a_fenced_producer_is_told_so(run: Simulated) -> None:
    errors = {row["error"] for row in run.tables["operations"] if row["transactional_id"] and row["outcome"] == 1}
    assert {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"} <= errors
    assert errors <= {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE"}  # the last one since KIP-890


def test_one_member_owns_a_partition_and_commits_what_it_has_read(run: Simulated) -> None:
    of_op = {row["op"]: row for row in run.tables["operations"]}
    owner = {(row["partition"], of_op[row["op"]]["generation"]): row for row in run.tables["records-assigned"]}
    assert len(owner) == len(run.tables["records-assigned"])
    last: dict[tuple[int, int], int] = {}
    for row in sorted(run.tables["records-committed"], key=lambda row: row["invoke_ns"]):
        generation = of_op[row["op"]]["generation"]
        assert owner[row["partition"], generation]["process"] == row["process"]
        read = [
            one["offset"]
            for one in run.rows("records-read", process=row["process"], partition=row["partition"])
            if one["return_ns"] <= row["invoke_ns"]
        ]
        assert row["offset"] >= max(read, default=-1) + 1
        if row["outcome"] == Outcome.OK:
            assert row["offset"] >= last.get((row["partition"], generation), 0)
            last[row["partition"], generation] = row["offset"]
    assert any(row["outcome"] == Outcome.FAIL for row in run.tables["records-committed"])


def test_what_leaders_say_fits_what_was_read(run: Simulated) -> None:
    reader = run.process("reader", "read_uncommitted")
    for partition in {row["partition"] for row in run.tables["records-read"]}:
        probes = sorted(
            run.rows("observations", source="replica-probe", partition=partition), key=lambda row: row["asked_ns"]
        )
        assert probes
        for one in probes:
            assert 0 <= one["last_stable_offset"] <= one["high_watermark"] <= one["log_end"]
            read = [
                row["offset"]
                for row in run.rows("records-read", process=reader, partition=partition)
                if row["return_ns"] < one["asked_ns"]
            ]
            assert max(read, default=-1) < one["high_watermark"]
        for name in ("last_stable_offset", "high_watermark", "log_end"):
            assert all(before[name] <= after[name] for before, after in pairwise(probes))


def test_brokers_agree_on_who_led_in_an_epoch(run: Simulated) -> None:
    leaders = defaultdict(set)
    newest: dict[tuple[int, int], int] = {}
    for row in sorted(run.rows("observations", source="metadata"), key=lambda row: row["asked_ns"]):
        leaders[row["partition"], row["leader_epoch"]].add(row["leader"])
        assert row["leader_epoch"] >= newest.get((row["partition"], row["node"]), 0)
        newest[row["partition"], row["node"]] = row["leader_epoch"]
    assert all(len(found) == 1 for found in leaders.values())
    assert max(epoch for _, epoch in leaders) > 0


def _final(run: Simulated) -> int:
    return run.process("final", "read_uncommitted")


def test_something_is_lost_only_with_acks_one(tmp_path: Path) -> None:
    """Seeds differ in whether a leader dies with records that it alone has."""
    lost = 0
    for seed in range(4):
        run = make(tmp_path / str(seed), seed=seed, ops=20_000)
        there = {row["value"] for row in run.rows("records-read", process=_final(run))}
        weak = {row["process"] for row in run.rows("processes", acks=1)}
        gone = [row for row in run.rows("records-sent", outcome=Outcome.OK) if row["value"] not in there]
        assert {row["process"] for row in gone} <= weak
        lost += len(gone)
    assert lost
