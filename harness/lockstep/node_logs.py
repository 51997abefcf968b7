"""The server logs of a run's nodes, found by the run directory alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

NODES = "nodes"
MOST_LINES = 60
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")
"""How a line begins (`harness/lockstep/cluster/distribution/log4j2.properties`)."""


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """What one node wrote in some time."""

    node: str
    lines: tuple[str, ...]
    left_out: int = 0
    """How many lines before these there were in that time."""


def node_names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / NODES).glob("*"))


def node_log(directory: Path, node: str) -> Path | None:
    """Where a node of a run wrote; None if it has written nothing yet."""
    files = [directory / NODES / node / name for name in ("server.log", "stdout.log")]
    return next((file for file in files if file.exists() and file.stat().st_size), None)


def excerpts(directory: Path, *, after_ns: int, before_ns: int) -> tuple[Excerpt, ...]:
    """What each node wrote between two moments, in nanoseconds since 1970; at most so many of the last lines."""
    first, last = _as_written(after_ns), _as_written(before_ns)
    found = []
    for node in node_names(directory):
        log = node_log(directory, node)
        lines = list(_between(log, first, last)) if log else []
        shown = tuple(lines[-MOST_LINES:])
        found.append(Excerpt(node=node, lines=shown, left_out=len(lines) - len(shown)))
    return tuple(found)


def _between(log: Path, first: str, last: str) -> Iterator[str]:
    """The lines of that time; what has no time of its own belongs to the line before it. Stack frames are left out."""
    inside = False
    with log.open(errors="replace") as lines:
        for line in lines:
            if _MOMENT.match(line):
                inside = first <= line[: len(first)] <= last
            if inside and not line.startswith("\t"):
                yield line.rstrip("\n")


def _as_written(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
