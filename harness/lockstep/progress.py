"""How long actions say how far they are: a bar on a terminal, a plain line now and then without one.

Everything goes to standard error, so that standard output stays what was asked for (`--json`).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

MEGABYTE = 1_000_000

Advance = Callable[[int], None]
"""Called with the number of bytes that were done since the last call, from any thread."""


class Progress:
    """Reports actions on a stream; `quiet` keeps them to itself."""

    def __init__(self, stream: TextIO | None = None, *, interval_s: float = 5.0, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._interval_s = interval_s
        self._quiet = quiet

    def say(self, line: str) -> None:
        if self._quiet:
            return
        try:
            print(line, file=self._stream, flush=True)
        except BrokenPipeError:  # the reader is gone, which is no reason to stop working
            self._quiet = True

    @contextmanager
    def action(self, what: str) -> Iterator[None]:
        """Something of unknown length: "building the archive"."""
        with self._shown(what, None):
            yield

    @contextmanager
    def transfer(self, what: str, total_bytes: int) -> Iterator[Advance]:
        """Something that moves a known number of bytes: "downloading Kafka 4.3.1"."""
        with self._shown(what, total_bytes) as advance:
            yield advance

    @contextmanager
    def _shown(self, what: str, total_bytes: int | None) -> Iterator[Advance]:
        start = time.monotonic()
        shown = self._bar if self._stream.isatty() and not self._quiet else self._lines
        with shown(what, total_bytes) as advance:
            yield advance
        self.say(f"{what}: done in {time.monotonic() - start:.1f} s")

    @contextmanager
    def _bar(self, what: str, total_bytes: int | None) -> Iterator[Advance]:
        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        amount = [BarColumn(), DownloadColumn()] if total_bytes is not None else []
        with Bars(*columns, *amount, TimeElapsedColumn(), console=Console(file=self._stream), transient=True) as bars:
            task = bars.add_task(what, total=total_bytes)
            yield lambda done: bars.advance(task, done)

    @contextmanager
    def _lines(self, what: str, total_bytes: int | None) -> Iterator[Advance]:
        self.say(f"{what} ..." if total_bytes is None else f"{what} ({total_bytes / MEGABYTE:.1f} MB) ...")
        lock = threading.Lock()
        done_bytes = 0
        said = time.monotonic()

        def advance(done: int) -> None:
            nonlocal done_bytes, said
            with lock:
                done_bytes += done
                if time.monotonic() - said >= self._interval_s:
                    said = time.monotonic()
                    self.say(f"{what}: {done_bytes / MEGABYTE:.1f} of {(total_bytes or 0) / MEGABYTE:.1f} MB")

        yield advance
