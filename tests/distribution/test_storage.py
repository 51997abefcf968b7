"""Formatting by writing files is only right if it gives what Kafka's own tool gives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.cluster.distribution import Distribution, distribution, random_id
from harness.cluster.distribution.storage import BOOTSTRAP, META, read_meta
from harness.cluster.spec import DEFAULT_KAFKA
from harness.errors import ClusterError
from harness.java import find_java
from harness.progress import Progress

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


@pytest.fixture(scope="module")
def kafka() -> Distribution:
    return distribution(DEFAULT_KAFKA, find_java(), Progress(quiet=True))


@pytest.mark.parametrize("properties", [CONTROLLER, BROKER], ids=["controller", "broker"])
def test_the_same_as_the_storage_tool_writes(kafka: Distribution, properties: str, tmp_path: Path) -> None:
    cluster_id = random_id()
    theirs, ours, configuration = tmp_path / "theirs", tmp_path / "ours", tmp_path / "node.properties"
    configuration.write_text(properties.format(directory=theirs))
    tool = kafka.command(
        "format", "-t", cluster_id, "-c", str(configuration), main="kafka.tools.StorageTool", log_directory=tmp_path
    )
    subprocess.run(tool, check=True, capture_output=True, timeout=120)

    directory_id = read_meta(theirs)["directory.id"]
    kafka.format(ours, cluster_id=cluster_id, node_id=100, directory_id=directory_id)
    assert {path.name for path in ours.iterdir()} == {path.name for path in theirs.iterdir()} == {META, BOOTSTRAP}
    assert read_meta(ours) == read_meta(theirs)
    assert _without_times((ours / BOOTSTRAP).read_bytes()) == _without_times((theirs / BOOTSTRAP).read_bytes())


def test_every_directory_gets_its_own_id_and_is_formatted_once(kafka: Distribution, tmp_path: Path) -> None:
    for name in ("one", "two"):
        kafka.format(tmp_path / name, cluster_id=random_id(), node_id=1)
    assert read_meta(tmp_path / "one")["directory.id"] != read_meta(tmp_path / "two")["directory.id"]
    before = (tmp_path / "one" / META).read_bytes()
    with pytest.raises(ClusterError, match="already formatted"):
        kafka.format(tmp_path / "one", cluster_id=random_id(), node_id=1)
    assert (tmp_path / "one" / META).read_bytes() == before


def test_ids_look_as_kafka_s_do() -> None:
    ids = {random_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(one) == 22 and not one.startswith("-") for one in ids)


def _without_times(checkpoint: bytes) -> list[bytes]:
    """The record batches without their timestamps and the checksum over them (record batch format, magic 2)."""
    batches = []
    while checkpoint:
        length = 12 + int.from_bytes(checkpoint[8:12])
        batch, checkpoint = checkpoint[:length], checkpoint[length:]
        batches.append(batch[:17] + batch[21:27] + batch[43:])
    assert len(batches) == 3  # header, feature levels, footer
    return batches
