"""Formatting a node's storage by writing the files, instead of a JVM per node.

What to write is learnt from one real `StorageTool format` per Kafka version and set of feature levels:
`bootstrap.checkpoint` is the same for every node and cluster, and `meta.properties` differs in three ids.
"""

from __future__ import annotations

import base64
import re
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lockstep.errors import ClusterError, EnvironmentError_, UsageError
from lockstep.host.cache import make_once

META = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"
STORAGE_TOOL = "kafka.tools.StorageTool"
TOOL_TIMEOUT_S = 120

Features = Mapping[str, int]
Tool = Callable[[Path, Sequence[str]], list[str]]
"""The command line of the storage tool, from where it may log and its arguments."""

_NO_FEATURES = "unrecognized arguments: '--feature"
_FEATURE = re.compile(r"[a-z][a-z0-9.]*")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_NODE = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUser:
    """A user whose credentials are in the metadata from the first moment on."""

    mechanism: str
    """`SCRAM-SHA-256` or `SCRAM-SHA-512`"""
    name: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        # The tool has a little language of its own around them.
        if not _PLAIN.fullmatch(self.name) or not _PLAIN.fullmatch(self.password):
            raise ValueError("a SCRAM user's name and password are made of letters, digits, - and _")


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What formatted storage is: the same for all nodes of a cluster but for the ids."""

    meta: Mapping[str, str]
    bootstrap: bytes = field(repr=False)

    def write(self, directory: Path, *, cluster_id: str, node_id: int, directory_id: str | None = None) -> None:
        """Make `directory` what `StorageTool format` would make it for a cluster with static voters."""
        meta = directory / META
        if meta.exists():
            raise ClusterError(
                f"{directory} is already formatted: stop the node and delete it, or use another directory"
            )
        directory.mkdir(parents=True, exist_ok=True)
        (directory / BOOTSTRAP).write_bytes(self.bootstrap)
        ids = {"cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id or random_id()}
        meta.write_text(_lines({name: ids.get(name, value) for name, value in self.meta.items()}))


def random_id() -> str:
    """A random cluster or directory id as Kafka writes them (Uuid.randomUuid: never with a leading dash)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def learn(version: str, tool: Tool, learnt: Path, features: Features, scram: Sequence[ScramUser]) -> Format:
    """How the storage tool formats with these feature levels and users.

    It is asked once per set of feature levels, and the answer kept in `learnt`; one with users is kept nowhere.
    """
    for name in features:
        if not _FEATURE.fullmatch(name):
            raise UsageError(f"{name!r} is not the name of a Kafka feature such as transaction.version")
    levels = [f"{name}={level}" for name, level in sorted(features.items())]
    if scram:
        return _ask(version, tool, levels, scram)

    def make(place: Path) -> None:
        _keep(_ask(version, tool, levels, ()), place)

    return _read(make_once(learnt / (",".join(levels) or "default"), make))


def read_meta(directory: Path) -> dict[str, str]:
    """What `meta.properties` says."""
    lines = (directory / META).read_text().splitlines()
    pairs = (line.partition("=")[::2] for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def _keep(learnt: Format, place: Path) -> None:
    place.mkdir()
    (place / BOOTSTRAP).write_bytes(learnt.bootstrap)
    (place / META).write_text(_lines(learnt.meta))


def _read(directory: Path) -> Format:
    return Format(meta=read_meta(directory), bootstrap=(directory / BOOTSTRAP).read_bytes())


def _lines(meta: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in meta.items())


def _ask(version: str, tool: Tool, levels: Sequence[str], scram: Sequence[ScramUser]) -> Format:
    """Run the storage tool."""
    arguments = [word for level in levels for word in ("--feature", level)]
    for user in scram:
        arguments += ["--add-scram", f'{user.mechanism}=[name={user.name},password="{user.password}"]']
    # The storage tool reads arguments from a file given with @: passwords in a pipe do not show up in ps.
    more = ["@/dev/stdin"] if arguments else []
    with tempfile.TemporaryDirectory(prefix="lockstep-format-") as temporary:
        work = Path(temporary)
        node, storage = work / "node.properties", work / "storage"
        node.write_text(_NODE.format(directory=storage))
        answer = subprocess.run(
            tool(work, ["format", "-t", random_id(), "-c", str(node), *more]),
            input="\n".join(arguments),
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
        )
        if answer.returncode != 0:
            raise _refusal(version, levels, scram, answer)
        return _read(storage)


def _refusal(
    version: str, levels: Sequence[str], scram: Sequence[ScramUser], answer: subprocess.CompletedProcess[str]
) -> Exception:
    words = _words(answer.stderr + answer.stdout)
    for user in scram:
        words = words.replace(user.password, "***")
    if levels:
        return UsageError(f"Kafka {version} cannot be formatted with {', '.join(levels)}: {words}")
    return EnvironmentError_(f"the storage tool of Kafka {version} failed: {words}")


def _words(output: str) -> str:
    """What matters in the tool's output: the exception it shows, what it says of its arguments, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["it said nothing"]
    for mark in ("Exception: ", "kafka-storage: error: "):
        for line in lines:
            if mark in line:
                words = line.partition(mark)[2]
                return "it knows no feature levels" if words.startswith(_NO_FEATURES) else words
    return lines[-1]
