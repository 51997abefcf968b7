"""Links of a real cluster that carry nothing, each in its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.network.conditions import BlackHole, Open
from lockstep.plan.targets import ClientSide
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener
from tests.faults.injected import injected, writing
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK)
def test_a_leader_without_replication_keeps_its_session(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    leader = cluster.broker(cluster.leader(topic, 0).leader)

    with injected(cluster, tmp_path, "silence", leader_of(topic)) as seen:
        assert all(leader.name in name and name.endswith(" REPL") for name in seen.bit["silent"])
        assert len(seen.bit["silent"]) >= 2
        dead = [link for link, condition in cluster.links.conditions().items() if condition == BlackHole()]
        assert {link.listener for link in dead} == {Listener.REPL}
        assert all(leader.spec.id in view.brokers for view in cluster.ask_all().values())

    assert leader.name in seen.healed["back"]
    cluster.wait_in_sync(topic, 1)


@shapes(ZK, KRAFT)
def test_connections_are_reset(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)

    with injected(cluster, tmp_path, "reset", leader_of(topic)) as seen:
        assert seen.bit["condition"] == "reset"
        assert len(seen.bit["silent"]) >= 2

    assert set(cluster.links.conditions().values()) == {Open()}
    cluster.wait_in_sync(topic, 1)


@shapes(KRAFT, ZK)
def test_whoever_connects_is_not_told_of_the_end(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)

    with writing(cluster, topic), injected(cluster, tmp_path, "half-open", ClientSide()) as seen:
        assert seen.bit["told_past_it"] is True
        assert seen.bit["told"] is False

    assert seen.healed["told"] is True
