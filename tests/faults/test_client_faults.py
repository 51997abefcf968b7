"""Clients that die, stand still, or come back as zombies: real processes, on a ZooKeeper and on a KRaft cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import get_fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.plan.targets import WholeCluster
from lockstep.pytest_plugin import Clusters
from lockstep.recovery.ledger import LEDGER, read_ledger
from lockstep.recovery.os_process import processes_of
from tests.faults.injected import injected, last_fault

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]

zk_first = pytest.mark.parametrize("cluster", ["zk", pytest.param("kraft", marks=pytest.mark.long)], indirect=True)
kraft_first = pytest.mark.parametrize("cluster", ["kraft", pytest.param("zk", marks=pytest.mark.long)], indirect=True)

FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


@pytest.fixture
def cluster(lockstep_clusters: Clusters, request: pytest.FixtureRequest) -> Cluster:
    return lockstep_clusters.get() if request.param == "kraft" else lockstep_clusters.get(mode=request.param)


def require_tidy(cluster: Cluster, fault: str) -> None:
    """Neither a process nor a topic of the fault is left."""
    everything = read_ledger(cluster.directory / LEDGER)
    clients = [entry for entry in everything if entry.fields.get("name", "").startswith(fault)]
    assert clients
    assert not any(entry.open or processes_of(entry) for entry in clients)
    assert not [p.topic for p in cluster.ask(1, None).partitions if p.topic.startswith(fault)]


@kraft_first
def test_what_a_dead_producer_was_told_is_there(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "client-crash", WholeCluster()) as seen:
        assert seen.bit["alive"] is False
        assert seen.bit["log_end"] > seen.bit["last_acknowledged"] > 0
    require_tidy(cluster, "client-crash")


@zk_first
def test_the_other_member_takes_over_and_both_share_again(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "client-pause", WholeCluster()) as seen:
        paused, other = sorted(seen.bit["owners_before"])
        assert last_fault(cluster).fields["target_resolved"] == paused
        assert seen.bit["owners_after"] == {other: [0, 1]}
    assert seen.healed["owners"].keys() == {paused, other}
    require_tidy(cluster, "client-pause")


@pytest.mark.parametrize("cluster", ["kraft"], indirect=True)
def test_the_epoch_of_a_group_with_the_new_protocol_moves(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "client-pause", WholeCluster(), protocol="consumer") as seen:
        assert seen.bit["group_epoch_after"] > seen.bit["group_epoch_before"]
        assert list(seen.bit["owners_after"].values()) == [[0, 1]]
    assert len(seen.healed["owners"]) == 2
    require_tidy(cluster, "client-pause")


@pytest.mark.parametrize("cluster", ["zk"], indirect=True)
@pytest.mark.parametrize("fault", ["client-pause", "zombie-consumer"])
def test_the_new_protocol_is_refused_where_there_is_none(cluster: Cluster, fault: str) -> None:
    made = get_fault(fault).instance(cluster, WholeCluster(), {"protocol": "consumer"})
    with pytest.raises(FaultError, match=r"needs KRaft brokers with group\.version 1"):
        made.inject()
    assert made.heal()["ended"] == []


@zk_first
def test_a_commit_of_a_member_that_was_away_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "zombie-consumer", WholeCluster()) as seen:
        assert seen.bit["code"] in (22, 25)
        assert list(seen.bit["owners"].values()) == [[0, 1]]
    assert len(seen.healed["owners"]) == 2
    require_tidy(cluster, "zombie-consumer")


@pytest.mark.parametrize("cluster", ["kraft"], indirect=True)
def test_so_is_one_of_a_group_with_the_new_protocol(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "zombie-consumer", WholeCluster(), protocol="consumer") as seen:
        assert seen.bit["code"] in (25, 110, 113)
    assert len(seen.healed["owners"]) == 2


@kraft_first
def test_a_producer_that_was_away_is_fenced(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "zombie-producer", WholeCluster()) as seen:
        assert seen.bit["epoch_after"] > seen.bit["epoch_before"]
        assert seen.bit["error"] in FENCED
        assert seen.bit["fenced"] == seen.bit["paused"] != seen.bit["took_over"]
    require_tidy(cluster, "zombie-producer")


@zk_first
def test_two_producers_with_one_transactional_id_fence_each_other(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "duplicate-transactional-id", WholeCluster()) as seen:
        assert seen.bit["epoch_after"] > seen.bit["epoch_before"] + 1
        assert len(seen.bit["fenced"]) == 2
        assert set(seen.bit["fenced"].values()) <= set(FENCED)
    require_tidy(cluster, "duplicate-transactional-id")


@kraft_first
def test_a_crash_that_is_no_crash_is_not_proven(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = get_fault("client-crash").instance(cluster, WholeCluster(), {})
    with monkeypatch.context() as patch:
        patch.setattr(ClientProcess, "kill", lambda _: None)
        fault.inject()
    try:
        with pytest.raises(FaultError, match=r"still runs"):
            fault.bit()
    finally:
        fault.heal()
    require_tidy(cluster, "client-crash")
