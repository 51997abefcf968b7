"""Putting files into a run directory: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from lockstep.errors import EnvironmentError_


def replace(path: Path, text: str) -> Path:
    """Write `text` to `path` so that a reader, or a crash, never sees half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise EnvironmentError_(
            f"cannot write {path.name} ({error.strerror or error}): free some space or make {path.parent} writable"
        ) from error
    return path
