from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from lockstep.errors import EnvironmentError_, HistoryError
from lockstep.history import OperationLine, ProcessLine, Recorder, RecordLine
from lockstep.history.schema import Outcome, Role


def lines(run: Path, table: str) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in (run / "history" / f"{table}.jsonl").read_bytes().splitlines()]


def test_lines_hold_only_what_is_new(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r") as recorder:
        recorder.process(ProcessLine(process=1, role=Role.WRITER, acks=-1))
        recorder.write("operations", [OperationLine(op=1, process=1, kind="send", invoke_ns=5)])
        recorder.write("operations", [OperationLine(op=1, return_ns=9, outcome=Outcome.OK)])

    assert lines(tmp_path, "processes") == [{"process": 1, "role": "writer", "acks": -1}]
    assert lines(tmp_path, "operations") == [
        {"op": 1, "process": 1, "kind": "send", "invoke_ns": 5},
        {"op": 1, "return_ns": 9, "outcome": 0},
    ]


def test_a_batch_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = os.write

    def spy(descriptor: int, data: bytes) -> int:
        writes.append(bytes(data))
        return real(descriptor, data)

    with Recorder(tmp_path, "r") as recorder:
        monkeypatch.setattr(os, "write", spy)
        recorder.write("records", [RecordLine(op=op, position=0) for op in range(100)])
        recorder.write("records", [])

    assert len(writes) == 1
    assert writes[0].count(b"\n") == 100


def test_a_killed_recorder_loses_nothing_it_was_given(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from lockstep.history import *\n"
        "recorder = Recorder(Path(sys.argv[1]), 'r')\n"
        "recorder.write('operations', [OperationLine(op=op) for op in range(1000)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert lines(tmp_path, "operations") == [{"op": op} for op in range(1000)]


def test_many_threads_get_whole_lines_and_ids_of_their_own(tmp_path: Path) -> None:
    with Recorder(tmp_path, "r") as recorder:

        def work() -> None:
            for _ in range(50):
                recorder.write("operations", [OperationLine(op=op) for op in recorder.reserve_ops(7)])
                recorder.write("operations", [OperationLine(op=recorder.next_op())])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert {line["op"] for line in lines(tmp_path, "operations")} == set(range(1, 8 * 50 * 8 + 1))
    assert recorder.next_process() != recorder.next_process()


def test_a_full_disk_says_what_to_do_and_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def half(descriptor: int, data: memoryview) -> int:
        if len(data) > 20:
            return real(descriptor, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Recorder(tmp_path, "r") as recorder:
        recorder.write("operations", [OperationLine(op=1)])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            with pytest.raises(EnvironmentError_, match=r"operations\.jsonl: free some.*--runs-dir"):
                recorder.write("operations", [OperationLine(op=op) for op in range(2, 5)])
        recorder.write("operations", [OperationLine(op=9)])

    assert lines(tmp_path, "operations") == [{"op": 1}, {"op": 9}]


def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(EnvironmentError_, match="cannot write"):
        Recorder(tmp_path / "file", "r")


def test_a_second_recorder_is_refused(tmp_path: Path) -> None:
    Recorder(tmp_path, "r").close()

    with pytest.raises(HistoryError, match="already holds a history"):
        Recorder(tmp_path, "r")
