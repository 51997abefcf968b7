"""Killing leaders of a real cluster, through the injector that a run uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError
from lockstep.faults.injector import Injector
from lockstep.faults.outage import Kill
from lockstep.history.recorder import Recorder
from lockstep.plan.plan import Inject
from lockstep.plan.targets import LeaderOf, OneBroker
from lockstep.recovery.ledger import LEDGER, Entry, read_ledger

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


@pytest.fixture
def injector(lockstep_cluster: Cluster, tmp_path: Path) -> Iterator[Injector]:
    with Recorder(tmp_path, "a-run") as recorder:
        yield Injector(lockstep_cluster, recorder)


def faults(cluster: Cluster) -> list[Entry]:
    return [entry for entry in read_ledger(cluster.directory / LEDGER) if entry.kind == "fault"]


def test_two_leaders_at_once_are_proven_dead_and_come_back(lockstep_cluster: Cluster, injector: Injector) -> None:
    lockstep_cluster.create_topic("twice", partitions=3, replication=3, config={"min.insync.replicas": "1"})
    before = {partition: lockstep_cluster.leader("twice", partition) for partition in range(3)}
    first = before[0]
    second = next(view for view in before.values() if view.leader != first.leader)

    for step, view in enumerate((first, second), start=1):
        injector.inject(Inject(step=step, fault="kill", target=LeaderOf(topic="twice", partition=view.partition)))

    *_, one, other = faults(lockstep_cluster)
    for entry, view in ((one, first), (other, second)):
        proof = (entry.phase("proof") or {})["detail"]
        assert entry.fields["target_resolved"] == f"broker-{view.leader}"
        assert proof["leader_before"] == view.leader
        assert proof["leader_after"] != view.leader
        assert proof["leader_epoch_after"] > view.leader_epoch
        assert entry.open
    assert lockstep_cluster.broker(first.leader).state() is NodeState.STOPPED
    assert lockstep_cluster.broker(second.leader).state() is NodeState.STOPPED

    injector.heal_all()

    lockstep_cluster.wait_in_sync("twice", 3)
    *_, one, other = faults(lockstep_cluster)
    assert not one.open
    assert not other.open
    assert "twice-0" in one.fields["detail"]["in_isr_of"]


def test_a_node_that_is_down_already_cannot_be_killed_which_is_told_and_not_passed(
    lockstep_cluster: Cluster, injector: Injector
) -> None:
    node = lockstep_cluster.broker(2)
    node.stop()
    injector.inject(Inject(step=1, fault="kill", target=OneBroker(id=2)))
    proof = (faults(lockstep_cluster)[-1].phase("proof") or {})["detail"]
    assert proof == {"bit": False, "why": "broker-2 is stopped already"}
    injector.heal(1)
    assert node.state() is NodeState.STOPPED, "what did not bite has nothing to heal"
    node.start()
    lockstep_cluster.wait_ready()


def test_a_fault_that_fails_half_way_is_told_and_healed(
    lockstep_cluster: Cluster, injector: Injector, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = lockstep_cluster.broker(2)

    def half(kill: Kill) -> None:
        node.stop()
        raise ClusterError("the other half did not work")

    monkeypatch.setattr(Kill, "_take", half)
    injector.inject(Inject(step=1, fault="kill", target=OneBroker(id=2)))
    proof = (faults(lockstep_cluster)[-1].phase("proof") or {})["detail"]
    assert proof == {"bit": False, "why": "the other half did not work"}
    injector.heal(1)
    assert node.state() is NodeState.RUNNING
    assert not faults(lockstep_cluster)[-1].open
