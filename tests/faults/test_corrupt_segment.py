"""A changed byte in the log of a real broker: a follower finds it by itself, readers of a leader get it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import FollowerOf
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected, last_fault
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP

VALUES = [f"{uuid.uuid4()}".encode() for _ in range(3)]


def written(cluster: Cluster) -> str:
    """A topic with three batches that every replica has."""
    topic = new_topic(cluster)
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all", "linger.ms": 0})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
        assert producer.flush(30) == 0
    return topic


def read(cluster: Cluster, topic: str) -> list[bytes]:
    """Everything in the topic, by a consumer that checks what it gets."""
    settings = {"bootstrap.servers": cluster.bootstrap(), "group.id": "nobody", "check.crcs": True}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    try:
        while len(values) < len(VALUES):
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                raise KafkaException(message.error())
            values.append(message.value() or b"")
    finally:
        consumer.close()
    return values


@shapes(KRAFT, ZK)
def test_a_follower_finds_it_and_fetches_it_anew(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = written(cluster)

    with injected(cluster, tmp_path, "corrupt-segment", FollowerOf(topic=topic, partition=0)) as seen:
        assert seen.bit["checksum"] == "wrong"
        assert seen.bit["offset"] == len(VALUES) - 1
        (undo,) = last_fault(cluster).fields["undo"]
        with (cluster.directory / undo["path"]).open("rb") as segment:
            segment.seek(undo["position"])
            assert segment.read(1)[0] == undo["changed"] != undo["original"]
        assert undo["original"] == seen.bit["original_byte"]

    assert seen.healed["broker_found_it_at"] < seen.bit["position"]
    assert seen.healed["checksum"] == "right"
    assert f"{topic}-0" in seen.healed["in_isr_of"]
    with (cluster.directory / undo["path"]).open("rb") as segment:
        segment.seek(undo["position"])
        assert segment.read(1)[0] == undo["original"]


@shapes(KRAFT, ZK)
def test_readers_of_a_leader_get_it(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = written(cluster)

    with injected(cluster, tmp_path, "corrupt-leader-segment", leader_of(topic)) as seen:
        assert seen.bit["checksum"] == "wrong"
        with pytest.raises(KafkaException, match=r"(?i)crc"):
            read(cluster, topic)

    assert seen.healed["checksum"] == "right"
    assert read(cluster, topic) == VALUES


def test_an_empty_log_has_no_byte_to_change(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(**KRAFT)
    target = FollowerOf(topic=new_topic(cluster), partition=0)
    with pytest.raises(FaultError, match="there is no byte to change"):
        get_fault("corrupt-segment").instance(cluster, target, {})
