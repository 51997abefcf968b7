"""Recording a history while it happens: append-only, thread-safe, and on disk before anything is judged.

Every batch reaches the kernel in one write before `write` returns, so a harness killed with SIGKILL loses nothing
that it had recorded. The rule that makes the history sound is the caller's: record invocations *before* sending
anything, the operation before its records.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lockstep.closeable import Closeable
from lockstep.errors import HistoryError
from lockstep.history.lines import LINES, Line, ProcessLine
from lockstep.history.schema import DIRECTORY, HISTORY_VERSION, META, History
from lockstep.host.disk import AppendOnly, explained, replace_file

_FIRST_ID = 1


class Recorder(Closeable):
    """The one writer of `<run directory>/history/`; all methods may be called from any thread."""

    def __init__(self, run_directory: Path, run: str) -> None:
        self.run = run
        directory = run_directory / DIRECTORY
        if (directory / META).exists():
            raise HistoryError(f"{directory} already holds a history: give the new run a directory of its own")
        with explained(directory):
            directory.mkdir(parents=True, exist_ok=True)
        replace_file(directory / META, msgspec.json.encode(History(version=HISTORY_VERSION, run=run)))
        self._files = {table: AppendOnly(directory / f"{table}.jsonl") for table in LINES}
        self._encoder = msgspec.json.Encoder()
        self._ids = threading.Lock()
        self._next_process = _FIRST_ID
        self._next_op = _FIRST_ID

    def next_process(self) -> int:
        with self._ids:
            process = self._next_process
            self._next_process += 1
            return process

    def next_op(self) -> int:
        return self.reserve_ops(1)[0]

    def reserve_ops(self, count: int) -> range:
        """`count` fresh operation ids at once: one lock for a batch of sends."""
        with self._ids:
            first = self._next_op
            self._next_op += count
            return range(first, first + count)

    def process(self, line: ProcessLine) -> None:
        """Introduce a process, before its first operation; `acks` and `idempotent` decide what it was promised."""
        self.write("processes", [line])

    def write(self, table: str, rows: Sequence[Line]) -> None:
        """Append a batch of lines to one table, all of them or none."""
        if rows:
            self._files[table].append(self._encoder.encode_lines(rows))

    def close(self) -> None:
        """Close the files; the history stays unsealed until `seal`."""
        for file in self._files.values():
            file.close()
