"""One broker of a real cluster, cut off in three ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.network.conditions import BlackHole, OneWay, Open
from lockstep.plan.targets import OneBroker
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import CLIENT_LISTENERS, Listener
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(ZK, KRAFT)
def test_an_isolated_leader_is_a_zombie(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = cluster.leader(topic, 0)
    name = cluster.broker(before.leader).name

    with injected(cluster, tmp_path, "isolate", leader_of(topic)) as seen:
        assert before.leader not in seen.bit["missed_by"]
        assert seen.bit["silent"]
        assert seen.bit["leader_epoch_after"] > before.leader_epoch
        assert seen.bit["answers_clients"] is True
        zombie = cluster.ask(before.leader, (topic,)).partition(topic, 0)
        assert zombie is not None
        assert zombie.leader == before.leader, "it believes what it did before"
        assert {link for link, condition in cluster.links.conditions().items() if condition == BlackHole()} == {
            link
            for link in cluster.links
            if name in (link.source, link.destination) and link.listener not in CLIENT_LISTENERS
        }

    assert seen.healed["back"] == [name]
    cluster.wait_in_sync(topic, 1)


@shapes(KRAFT, ZK)
def test_a_leader_without_heartbeats_loses_its_session_alone(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = cluster.leader(topic, 0)

    with injected(cluster, tmp_path, "heartbeat-cut", leader_of(topic)) as seen:
        assert seen.bit["leader_epoch_after"] > before.leader_epoch
        assert seen.bit["missed_by"] == [id_ for id_ in cluster.broker_ids if id_ != before.leader]
        cut = {link.listener for link, condition in cluster.links.conditions().items() if condition != Open()}
        assert cut in ({Listener.CONTROLLER}, {Listener.ZOOKEEPER})

    assert seen.healed["back"] == [cluster.broker(before.leader).name]


@shapes(KRAFT, ZK)
def test_a_broker_is_heard_and_hears_nobody(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    new_topic(cluster, partitions=3)

    with injected(cluster, tmp_path, "one-way-partition", OneBroker(id=2)) as seen:
        assert seen.bit["heard_on"]
        assert all(name.startswith("broker-2 > ") for name in seen.bit["heard_on"])
        assert seen.bit["missed_by"] == [1, 3]
        conditions = cluster.links.conditions()
        assert {link.source for link, condition in conditions.items() if condition == OneWay()} == {"broker-2"}

    assert seen.healed["back"] == ["broker-2"]
    assert set(cluster.links.conditions().values()) == {Open()}
