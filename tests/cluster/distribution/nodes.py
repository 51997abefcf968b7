"""What Kafka's own tools and nodes do, to hold ours against."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from lockstep.cluster.distribution import Distribution, random_id
from lockstep.cluster.distribution.storage import BOOTSTRAP, META, STORAGE_TOOL, read_meta

CONTROLLER = """process.roles=controller
node.id=100
controller.quorum.voters=100@127.0.0.1:19093
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:19093
log.dirs={directory}
"""
BROKER = """process.roles=broker
node.id=100
controller.quorum.voters=1@127.0.0.1:19093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092
log.dirs={directory}
"""


def same_as_the_storage_tool(
    kafka: Distribution, properties: str, features: Mapping[str, int], directory: Path
) -> None:
    """Fail unless we format as the tool does, but for what differs between any two runs of the tool."""
    cluster_id = random_id()
    theirs, ours, configuration = directory / "theirs", directory / "ours", directory / "node.properties"
    configuration.write_text(properties.format(directory=theirs))
    levels = [word for name, level in features.items() for word in ("--feature", f"{name}={level}")]
    tool = kafka.tool(
        STORAGE_TOOL, "format", "-t", cluster_id, "-c", str(configuration), *levels, log_directory=directory
    )
    subprocess.run(tool, check=True, capture_output=True, timeout=120)

    directory_id = read_meta(theirs).get("directory.id")  # Kafka 3.6 writes none
    kafka.learn(features).write(ours, cluster_id=cluster_id, node_id=100, directory_id=directory_id)
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()} == {META, BOOTSTRAP}
    assert read_meta(ours) == read_meta(theirs)
    assert without_times((ours / BOOTSTRAP).read_bytes()) == without_times((theirs / BOOTSTRAP).read_bytes())


def without_times(checkpoint: bytes) -> list[bytes]:
    """The record batches without their timestamps and the checksum over them (record batch format, magic 2)."""
    batches = []
    while checkpoint:
        length = 12 + int.from_bytes(checkpoint[8:12])
        batch, checkpoint = checkpoint[:length], checkpoint[length:]
        batches.append(batch[:17] + batch[21:27] + batch[43:])
    assert len(batches) == 3  # header, feature levels, footer
    return batches
