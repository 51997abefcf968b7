"""Writing to disk so that what is there is complete, and so that a full disk says so in one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import EnvironmentError_


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
