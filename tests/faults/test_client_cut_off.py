"""Clients of a real cluster that reach a broker, or all, no longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.faults.injector import Injector
from lockstep.faults.support import link_conditions
from lockstep.history.recorder import Recorder
from lockstep.network.conditions import BlackHole, Open
from lockstep.plan.plan import Inject
from lockstep.plan.targets import ClientSide
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected, last_fault, writing
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK)
def test_one_side_is_cut_off_and_the_brokers_answer_others(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    leader = cluster.broker(cluster.leader(topic, 0).leader).name

    with writing(cluster, topic), injected(cluster, tmp_path, "client-cut-off", ClientSide()) as seen:
        assert f"clients > {leader} CLIENT" in seen.bit["silent"]
        assert leader in seen.bit["answer_past_them"]
        cut = {link for link, condition in cluster.links.conditions().items() if condition == BlackHole()}
        assert {link.source for link in cut} == {"clients"}
        assert len(cut) == len(cluster.broker_ids)

    assert len(seen.healed["answered_through"]) == len(cluster.broker_ids)
    assert set(cluster.links.conditions().values()) == {Open()}


@shapes(ZK, KRAFT)
def test_everyone_is_cut_off_from_a_leader(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    leader = cluster.broker(cluster.leader(topic, 0).leader).name

    with writing(cluster, topic), injected(cluster, tmp_path, "client-cut-off", leader_of(topic)) as seen:
        assert seen.bit["silent"] == [f"clients > {leader} CLIENT"]
        cut = {link for link, condition in cluster.links.conditions().items() if condition == BlackHole()}
        assert {(link.source, link.destination) for link in cut} == {("clients", leader), ("clients-b", leader)}

    assert cluster.broker(cluster.leader(topic, 0).leader).name == leader, "the cluster noticed nothing"


def test_clients_that_are_not_there_are_not_cut_off(
    lockstep_clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_conditions, "FIRST_USE_S", 2.0)
    cluster = lockstep_clusters.get()
    with Recorder(tmp_path, "a-run") as recorder:
        injector = Injector(cluster, recorder)
        injector.inject(Inject(step=1, fault="client-cut-off", target=ClientSide(side="clients-b")))
        detail = (last_fault(cluster).phase("proof") or {})["detail"]
        injector.heal_all()

    assert detail["bit"] is False
    assert "no connection used clients-b > broker-1 CLIENT_B" in detail["why"]
