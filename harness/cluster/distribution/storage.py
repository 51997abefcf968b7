"""Formatting a node's storage by writing the files, instead of a JVM per node.

What to write is learnt from one real `StorageTool format` per Kafka version: `bootstrap.checkpoint` is the same for
every node and cluster, and `meta.properties` differs in three ids.
"""

from __future__ import annotations

import base64
import shutil
import uuid
from pathlib import Path

from harness.errors import ClusterError

META = "meta.properties"
BOOTSTRAP = "bootstrap.checkpoint"


def random_id() -> str:
    """A random cluster or directory id as Kafka writes them (Uuid.randomUuid: never with a leading dash)."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def format_storage(learnt: Path, directory: Path, *, cluster_id: str, node_id: int, directory_id: str | None) -> None:
    """Make `directory` what `StorageTool format` would, from the two files in `learnt`."""
    meta = directory / META
    if meta.exists():
        raise ClusterError(f"{directory} is already formatted: stop the node and delete it, or use another directory")
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(learnt / BOOTSTRAP, directory / BOOTSTRAP)
    ids = {"cluster.id": cluster_id, "node.id": str(node_id), "directory.id": directory_id or random_id()}
    lines = [f"{name}={ids.get(name, value)}\n" for name, value in read_meta(learnt).items()]
    meta.write_text("".join(lines))


def read_meta(directory: Path) -> dict[str, str]:
    """What `meta.properties` says."""
    lines = (directory / META).read_text().splitlines()
    pairs = (line.partition("=")[::2] for line in lines if line and not line.startswith("#"))
    return dict(pairs)
