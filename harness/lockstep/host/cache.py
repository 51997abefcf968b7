"""The user's cache: what is downloaded or built once per machine and shared by every run.

Several processes may want the same thing at the same moment, so everything is made under a file lock, beside its place,
and renamed into it: a path that exists here is complete.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from lockstep.errors import EnvironmentError_

CACHE_VARIABLE = "LOCKSTEP_CACHE"


def cache_dir() -> Path:
    """Where the cache is; it is created when something is first put there."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen).absolute() if chosen else Path(platformdirs.user_cache_dir("lockstep"))


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """One process at a time for what `path` names; the kernel releases the lock if the holder dies."""
    lock = path.parent / f".{path.name}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = lock.open("a")
    except OSError as error:
        raise EnvironmentError_(
            f"cannot write to the cache {path.parent} ({error.strerror}): free the place or set {CACHE_VARIABLE}"
        ) from error
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """A temporary place for a file or directory beside `path`, moved there when the block ends well."""
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        yield temporary
        temporary.replace(path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def make_once(path: Path, make: Callable[[Path], None]) -> Path:
    """`path`, made by `make(temporary place)` if it is not there yet."""
    if not path.exists():
        with exclusive(path):
            if not path.exists():  # the process that held the lock before may have made it
                with atomically(path) as temporary:
                    make(temporary)
    return path
