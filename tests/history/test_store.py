from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from lockstep.errors import HistoryError
from lockstep.history import (
    FaultLine,
    ObservationLine,
    OperationLine,
    ProcessLine,
    Recorder,
    RecordLine,
    open_history,
    read_meta,
    seal,
)
from lockstep.history.schema import SEALED, Direction, History, Outcome, Role, Topic


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A writer whose first send is acknowledged and whose second never returns, and a poll of the first."""
    with Recorder(tmp_path, "r") as recorder:
        recorder.process(ProcessLine(process=1, role=Role.WRITER, acks=-1, idempotent=True))
        recorder.process(ProcessLine(process=2, role=Role.READER))
        sends = [OperationLine(op=op, process=1, kind="send", invoke_ns=op * 10) for op in (2, 1)]
        recorder.write("operations", sends)
        recorder.write("records", [sent(op=op) for op in (2, 1)])
        recorder.write("operations", [OperationLine(op=1, return_ns=15, outcome=Outcome.OK)])
        recorder.write("records", [RecordLine(op=1, position=0, offset=7)])
        poll = OperationLine(op=3, process=2, kind="poll", invoke_ns=30, return_ns=35, outcome=Outcome.OK)
        recorder.write("operations", [poll])
        recorder.write("records", [read(op=3, offset=7)])
        recorder.write("observations", [ObservationLine(asked_ns=1, answered_ns=2, source="metadata", isr=[1, 2])])
        recorder.write("faults", [FaultLine(time_ns=1, step=0, fault="kill", target_asked="x", phase="inject")])
    return tmp_path


def sent(*, op: int) -> RecordLine:
    return RecordLine(
        op=op, position=0, direction=Direction.SENT, topic="t", topic_id="new", partition=0, value=100 + op
    )


def read(*, op: int, offset: int) -> RecordLine:
    return RecordLine(
        op=op, position=0, direction=Direction.READ, topic="t", topic_id="old", partition=0, offset=offset, value=101
    )


def rows(run: Path, table: str) -> list[dict[str, Any]]:
    return pq.read_table(run / "history" / f"{table}.parquet").to_pylist()


def jsonl(run: Path, table: str) -> Path:
    return run / "history" / f"{table}.jsonl"


def test_later_lines_complete_earlier_ones(run: Path) -> None:
    seal(run)

    first, second, poll = rows(run, "operations")
    assert (first["op"], first["kind"], first["invoke_ns"], first["return_ns"]) == (1, "send", 10, 15)
    assert first["outcome"] == Outcome.OK
    assert (second["op"], second["return_ns"], second["outcome"]) == (2, None, Outcome.UNKNOWN)
    assert poll["op"] == 3
    assert {row["run"] for row in (first, second, poll)} == {"r"}


def test_of_two_values_the_later_one_wins(run: Path) -> None:
    with jsonl(run, "operations").open("ab") as file:
        file.write(b'{"op":1,"outcome":2,"error":"late"}\n{"op":1,"error":null}\n')

    seal(run)

    first = rows(run, "operations")[0]
    assert (first["outcome"], first["error"], first["return_ns"]) == (Outcome.UNKNOWN, "late", 15)


def test_records_repeat_their_operation_and_number_their_topics(run: Path) -> None:
    meta = seal(run)

    acknowledged, unknown = rows(run, "records-sent")
    (polled,) = rows(run, "records-read")
    assert meta.topics == [Topic(name="t", id="new"), Topic(name="t", id="old")]
    assert (acknowledged["topic"], polled["topic"]) == (0, 1)
    assert [acknowledged[name] for name in ("process", "invoke_ns", "return_ns", "outcome")] == [1, 10, 15, Outcome.OK]
    assert (acknowledged["offset"], acknowledged["value"]) == (7, 101)
    assert (unknown["offset"], unknown["return_ns"], unknown["outcome"]) == (None, None, Outcome.UNKNOWN)
    assert (polled["process"], polled["offset"]) == (2, 7)


def test_a_sealed_history_has_every_table_and_no_lines(run: Path) -> None:
    meta = seal(run)

    assert {path.name for path in (run / "history").iterdir()} == {
        "history.json",
        *(f"{table}.parquet" for table in SEALED),
    }
    assert meta.sealed
    assert read_meta(run) == meta == seal(run)
    for table, schema in SEALED.items():
        assert pq.read_schema(run / "history" / f"{table}.parquet").equals(schema)
    with open_history(run) as history:
        assert history.meta == meta
        assert all(path.is_file() for path in history.tables.values())


def test_lists_and_repeated_rows_survive(run: Path) -> None:
    with jsonl(run, "observations").open("ab") as file:
        file.write(b'{"asked_ns":1,"answered_ns":2,"source":"metadata","isr":[]}\n')

    seal(run)

    assert [row["isr"] for row in rows(run, "observations")] == [[1, 2], []]


def test_history_json_is_replaced_last(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealing that dies on the way leaves an unsealed history with all its lines."""

    def die(descriptor: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", die)
        with pytest.raises(KeyboardInterrupt):
            seal(run)

    assert not read_meta(run).sealed
    assert seal(run).sealed
    assert len(rows(run, "operations")) == 3


def test_an_unsealed_history_is_opened_elsewhere(run: Path) -> None:
    before = sorted(path.name for path in (run / "history").iterdir())

    with open_history(run) as history:
        assert not history.meta.sealed
        assert history.meta.topics
        assert pq.read_metadata(history.tables["operations"]).num_rows == 3
        assert run not in history.tables["operations"].parents

    assert not history.tables["operations"].exists()
    assert sorted(path.name for path in (run / "history").iterdir()) == before


@pytest.mark.parametrize("tail", [b'{"op":9,"proc', b'{"op":9}', b'{"op":"x"}\n', b"\x00\x00\x00\n"])
def test_a_torn_last_line_is_dropped_and_counted(run: Path, tail: bytes) -> None:
    path = jsonl(run, "operations")
    torn = path.read_bytes() + tail
    path.write_bytes(torn)

    with open_history(run) as history:
        assert history.meta.torn == {"operations": 1}
        assert pq.read_metadata(history.tables["operations"]).num_rows == 3
    assert path.read_bytes() == torn
    assert seal(run).torn == {"operations": 1}


def test_what_hung_on_a_torn_line_is_torn_too(run: Path) -> None:
    """The invocation of the poll is gone with its line, so its records have no operation."""
    path = jsonl(run, "operations")
    path.write_bytes(path.read_bytes()[:-3])

    with open_history(run) as history:
        assert history.meta.torn == {"operations": 1, "records": 1}
        assert pq.read_metadata(history.tables["records-read"]).num_rows == 0


def test_a_bad_line_in_the_middle_is_named(run: Path) -> None:
    path = jsonl(run, "records")
    first, second, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, second[:-5] + b"\n", *rest]))

    with pytest.raises(HistoryError, match=r"records\.jsonl line 2 is damaged"), open_history(run):
        pass


def test_a_record_of_no_operation_is_refused(run: Path) -> None:
    with jsonl(run, "records").open("ab") as file:
        file.write(msgspec.json.encode(sent(op=99)) + b"\n")

    with pytest.raises(HistoryError, match=r"records-sent\.jsonl has 1 rows without process"):
        seal(run)


def test_a_record_without_direction_is_refused(run: Path) -> None:
    with jsonl(run, "records").open("ab") as file:
        file.write(b'{"op":1,"position":5,"offset":3}\n')

    with pytest.raises(HistoryError, match="neither sent nor read"):
        seal(run)


def test_an_empty_history_can_be_sealed(tmp_path: Path) -> None:
    Recorder(tmp_path, "r").close()

    assert seal(tmp_path) == History(version=1, run="r", sealed=True)
    assert rows(tmp_path, "records-sent") == []


@pytest.mark.parametrize("table", list(SEALED))
def test_a_truncated_sealed_file_is_named(run: Path, table: str) -> None:
    seal(run)
    path = run / "history" / f"{table}.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(HistoryError, match=rf"{table}\.parquet is truncated or damaged"), open_history(run):
        pass


def test_a_missing_sealed_file_is_named(run: Path) -> None:
    seal(run)
    (run / "history" / "faults.parquet").unlink()

    with pytest.raises(HistoryError, match=r"faults\.parquet is missing"), open_history(run):
        pass


def test_a_sealed_file_of_another_shape_is_named(run: Path) -> None:
    seal(run)
    path = run / "history" / "operations.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["invoke_ns"]), path)

    with pytest.raises(HistoryError, match=r"operations\.parquet lacks the column invoke_ns"), open_history(run):
        pass


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b'{"version":2,"run":"r"}', "is of version 2"), (b'{"version":1}', "is damaged"), (b"{", "is damaged")],
)
def test_a_history_that_cannot_be_understood_is_refused(run: Path, content: bytes, complaint: str) -> None:
    (run / "history" / "history.json").write_bytes(content)

    with pytest.raises(HistoryError, match=complaint):
        read_meta(run)


def test_a_directory_without_a_history_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="holds no history"), open_history(tmp_path):
        pass


def test_missing_lines_are_refused(run: Path) -> None:
    jsonl(run, "records").unlink()

    with pytest.raises(HistoryError, match=r"cannot read .*records\.jsonl"):
        seal(run)
