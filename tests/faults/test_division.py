"""Whole real clusters, divided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lockstep.faults.fault import get_fault
from lockstep.faults.support.roles import controller
from lockstep.network.conditions import Open
from lockstep.network.topology import Link
from lockstep.plan.targets import WholeCluster
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import CLIENT_LISTENERS, ClusterSpec, Listener
from tests.faults.injected import injected
from tests.faults.shapes import COMBINED, GROUP, KRAFT, KRAFT_QUORUM, ZK, ZK_ENSEMBLE, new_topic, shapes

pytestmark = GROUP


@shapes(ZK, KRAFT_QUORUM, COMBINED, ZK_ENSEMBLE)
def test_the_many_go_on_without_the_few(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = controller(cluster)

    with injected(cluster, tmp_path, "split", WholeCluster()) as seen:
        few, many = seen.bit["few"], seen.bit["many"]
        assert before.name in few
        assert sorted(few + many) == sorted(cluster.nodes)
        assert seen.bit["active_controller"] != before.spec.id
        assert len(seen.bit["missed_by"]) == 2
        cut = {link for link, condition in cluster.links.conditions().items() if condition != Open()}
        assert cut == {
            link
            for link in cluster.links
            if link.listener not in CLIENT_LISTENERS and (link.source in few) != (link.destination in few)
        }

    assert "still_hit" not in seen.healed
    cluster.wait_in_sync(topic, 1)


@shapes(KRAFT, ZK, KRAFT_QUORUM)
def test_in_a_ring_each_reaches_a_majority_and_no_two_the_same(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster, partitions=3)

    with injected(cluster, tmp_path, "ring", WholeCluster()) as seen:
        reached = {frozenset({name, *others}) for name, others in seen.bit["reached"].items()}
        assert len(reached) == len(seen.bit["reached"])
        assert all(len(part) == 2 for part in reached)
        assert seen.bit["silent"]
        open_links = {link for link, condition in cluster.links.conditions().items() if condition == Open()}
        assert {link for link in open_links if link.listener is Listener.REPL} == {
            Link(source=source, destination=destination, listener=Listener.REPL)
            for source, others in seen.bit["reached"].items()
            for destination in others
            if source.startswith("broker")
        }
        assert all(view.brokers == frozenset(cluster.broker_ids) for view in cluster.ask_all().values())

    cluster.wait_in_sync(topic, 3)


def test_two_brokers_cannot_be_divided_into_a_majority_and_a_minority() -> None:
    for name in ("split", "ring"):
        assert get_fault(name).reason(ClusterSpec(brokers=2), "process") == "needs three brokers"
