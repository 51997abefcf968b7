"""A rolling upgrade and the migration to KRaft under load: every phase seen, nothing lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from lockstep.cluster.operations import require
from lockstep.errors import UsageError
from lockstep.plan.plan import Operation
from lockstep.recovery.ledger import LEDGER, read_ledger
from lockstep.spec.cluster import ClusterSpec

if TYPE_CHECKING:
    from pathlib import Path

    from lockstep.pytest_plugin import RunScenario


@pytest.mark.parametrize(
    ("spec", "operation", "to", "words"),
    [
        ({"mode": "zk"}, Operation.UPGRADE, "4.3.1", "no ZooKeeper mode: migrate"),
        ({}, Operation.UPGRADE, "3.9.2", "3.9.2 is not newer than 4.3.1"),
        ({"node_kafka": {"broker-1": "4.1.2"}}, Operation.UPGRADE, "4.3.1", "4.3.1 is not newer than 4.3.1"),
        ({}, Operation.MIGRATE, "kraft", "only a ZooKeeper cluster with controllers"),
        ({"mode": "zk"}, Operation.MIGRATE, "kraft", "only a ZooKeeper cluster with controllers"),
        ({"mode": "zk", "kafka": "3.6.2", "controllers": 1}, Operation.MIGRATE, "kraft", "upgrade from 3.6.2 first"),
    ],
)
def test_what_cannot_be_done_is_refused(spec: dict[str, Any], operation: Operation, to: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        require(ClusterSpec.of(**spec), operation, to)


def phases(directory: Path) -> list[dict[str, Any]]:
    (entry,) = [entry for entry in read_ledger(directory / LEDGER) if entry.kind == "fault"]
    return [fields["detail"] for phase, fields in entry.lines if phase == "effect"]


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.xdist_group("whole-run")
@pytest.mark.parametrize("backend", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_rolling_upgrade_under_load_loses_nothing(lockstep_run: RunScenario, backend: str) -> None:
    finished = lockstep_run("rolling-upgrade", seed=1, backend=backend)
    assert finished.verdict.verdict == "pass", finished.verdict.guarantees
    seen = phases(finished.directory)
    assert [phase["phase"] for phase in seen] == [
        "controller-100 runs 4.3.1", "broker-1 runs 4.3.1", "broker-2 runs 4.3.1", "broker-3 runs 4.3.1", "finalized",
    ]  # fmt: skip
    for phase in seen[:-1]:
        assert phase["metadata_version_supported_before"] < phase["metadata_version_supported_after"]
    assert seen[-1]["metadata_version_before"] < seen[-1]["metadata_version"]


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.xdist_group("whole-run")
@pytest.mark.parametrize("backend", ["process", pytest.param("docker", marks=pytest.mark.docker)])
def test_the_migration_to_kraft_under_load_loses_nothing(lockstep_run: RunScenario, backend: str) -> None:
    finished = lockstep_run("zk-to-kraft", seed=1, backend=backend)
    assert finished.verdict.verdict == "pass", finished.verdict.guarantees
    seen = phases(finished.directory)
    assert [phase["phase"] for phase in seen] == [
        "zookeeper", "pre-migration", "dual-write", "broker-1 in KRaft", "broker-2 in KRaft", "broker-3 in KRaft",
        "finalized", "kraft",
    ]  # fmt: skip
    by_name = {phase["phase"]: phase for phase in seen}
    assert by_name["pre-migration"]["controller"] in (1, 2, 3), "a ZooKeeper-mode broker still controls"
    assert by_name["dual-write"]["controller"] == 100, "the KRaft controller has taken over"
    offsets = [phase["kraft_metadata_offset"] for phase in seen if "kraft_metadata_offset" in phase]
    assert offsets == sorted(offsets), "the KRaft controller goes on writing to ZooKeeper"
    assert offsets[0] < offsets[-1]
    assert by_name["kraft"]["zookeeper"] == {"zookeeper-1": "stopped"}
    described = msgspec.json.decode((finished.directory / "cluster.json").read_bytes())
    assert described["spec"]["mode"] == "kraft"
