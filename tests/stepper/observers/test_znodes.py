"""The znodes of a real ZooKeeper: no write is missed, and an observer outlives its server."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.faults.support.roles import controller_id
from lockstep.spec.cluster import NodeRole
from lockstep.stepper.observers import follow
from lockstep.wait import wait_until
from tests.stepper.observers.decision_watch import DecisionWatch, epoch_of, fenced

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("process-cluster"),
    pytest.mark.lockstep(mode="zk"),
]

EVERYONE = frozenset({1, 2, 3})


def create(cluster: Cluster, topic: str) -> None:
    cluster.create_topic(topic, partitions=1, replication=3, config={})


def test_what_happened_between_two_polls_is_seen_write_by_write(lockstep_cluster: Cluster) -> None:
    with follow(lockstep_cluster, "rarely", 0) as observer:
        watch = DecisionWatch(observer)
        create(lockstep_cluster, "rarely")
        created = watch.until(lambda known: known.partition.isr == EVERYONE, "the topic").controller
        leader = created.partition.leader
        assert observer.broker == controller_id(lockstep_cluster)
        lockstep_cluster.broker(leader).kill()
        wait_until(lambda: lockstep_cluster.leader("rarely", 0).leader != leader, timeout_s=60, what="another leader")
        lockstep_cluster.broker(leader).start()
        lockstep_cluster.wait_ready()
        lockstep_cluster.wait_in_sync("rarely", 1)
        decisions = observer.poll()
        epochs = [decision.controller.partition.partition_epoch for decision in decisions]
        assert {later - earlier for earlier, later in pairwise([0, *epochs])} == {0, 1}
        assert decisions[-1].controller.partition.isr == EVERYONE
        assert any(f"/brokers/ids/{leader} is gone" in decision.causes for decision in decisions)
        assert observer.poll() == []


def test_while_zookeeper_is_away_nothing_is_told(lockstep_cluster: Cluster) -> None:
    (server,) = (node for node in lockstep_cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER)
    with follow(lockstep_cluster, "outlived", 0) as observer:
        known = observer.current
        server.kill()
        assert observer.poll() == []
        assert observer.current == known
        server.start()
        lockstep_cluster.broker(3).kill()
        gone = DecisionWatch(observer).until(partial(fenced, broker=3), "a broker to be gone").controller
        assert epoch_of(gone, 3) == epoch_of(known, 3)
