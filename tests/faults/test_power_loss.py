"""Brokers of a real cluster that lose what they had not flushed."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError, UsageError
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import FollowerOf, OneBroker, WholeCluster
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, shapes

pytestmark = GROUP

RECORDS = 40


def written(cluster: Cluster, **config: str) -> str:
    """A topic with records that every replica has, one batch each."""
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(topic, partitions=1, replication=3, config=config)
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all", "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=0)
        assert producer.flush(30) == 0
    return topic


def ends(cluster: Cluster, topic: str) -> set[int]:
    return {ask_log_end(cluster.direct(id_), topic, 0, access=cluster.access()) for id_ in cluster.broker_ids}


@shapes(KRAFT, ZK)
def test_a_leader_comes_back_with_less_and_catches_up(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = written(cluster)
    leader = f"broker-{cluster.leader(topic, 0).leader}"

    with injected(cluster, tmp_path, "power-loss", leader_of(topic), keep=0.25) as seen:
        log = f"{leader} {topic}-0"
        assert seen.bit["bytes_cut"] > 0
        assert seen.bit["log_ends_before"][log] == RECORDS
        assert seen.bit["log_ends_cut_to"][log] == RECORDS // 4
        assert seen.bit["missed_by"]

    assert seen.healed["log_ends_came_back_with"][log] == RECORDS // 4
    assert f"{topic}-0" in seen.healed["in_isr_of"]
    assert ends(cluster, topic) == {RECORDS}


@shapes(KRAFT, ZK)
def test_what_every_broker_loses_is_lost_unless_it_was_flushed(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    lost, kept = written(cluster), written(cluster, **{"flush.messages": "1"})

    with injected(cluster, tmp_path, "power-loss-all", WholeCluster(), keep=0.5) as seen:
        for id_ in cluster.broker_ids:
            assert seen.bit["log_ends_cut_to"][f"broker-{id_} {lost}-0"] == RECORDS // 2
            assert f"broker-{id_} {kept}-0" not in seen.bit["log_ends_cut_to"]

    assert {seen.healed["log_ends_came_back_with"][f"broker-{id_} {lost}-0"] for id_ in cluster.broker_ids} == {
        RECORDS // 2
    }
    assert ends(cluster, lost) == {RECORDS // 2}
    assert ends(cluster, kept) == {RECORDS}


def test_when_everything_has_reached_the_disk_nothing_is_proven(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(**KRAFT)
    topic = written(cluster)
    fault = get_fault("power-loss").instance(cluster, FollowerOf(topic=topic, partition=0), {"keep": 1.0})
    fault.inject()
    try:
        with pytest.raises(FaultError, match="lost nothing"):
            fault.bit()
        with pytest.raises(FaultError, match="is stopped already"):
            fault.inject()
    finally:
        fault.heal()
    assert ends(cluster, topic) == {RECORDS}


def test_nobody_keeps_more_than_there_is() -> None:
    with pytest.raises(UsageError, match="keep"):
        get_fault("power-loss").require(OneBroker(id=1), {"keep": 1.5})
