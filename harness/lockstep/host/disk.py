"""Writing to disk so that what is there is complete, and so that a full disk says so in one sentence."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockstep.errors import EnvironmentError_


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a failure to write `path` into a sentence with the fix."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise EnvironmentError_(
                f"no space left to write {path}: free some, or give a directory on another disk with --runs-dir"
            ) from error
        raise EnvironmentError_(f"cannot write {path}: {error.strerror or error}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` at `path`, durably and at once: readers see the old file or the new one, never a part."""
    with explained(path):
        fresh = path.with_name(path.name + ".new")
        with fresh.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        fresh.replace(path)
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class AppendOnly:
    """A file of lines that only ever holds whole appends, whatever the disk says; may be used from any thread.

    What was appended has reached the kernel: it survives this process, though not a loss of power.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with explained(path):
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self.descriptor).st_size

    def append(self, data: bytes) -> None:
        with self._lock, explained(self._path):
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self.descriptor, rest) :]
            except OSError:
                os.ftruncate(self.descriptor, self._size)  # a full disk must not leave half a line in the middle
                raise
            self._size += len(data)

    def drop_torn_line(self) -> None:
        """Cut off the half line that a writer left when it died, so that nothing is glued to it."""
        content = self._path.read_bytes()
        self._size = content.rfind(b"\n") + 1
        os.ftruncate(self.descriptor, self._size)

    def close(self) -> None:
        with self._lock:
            if self.descriptor >= 0:
                os.close(self.descriptor)
                self.descriptor = -1
