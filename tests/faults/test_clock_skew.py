"""A real broker whose clock jumps; without libfaketime, why it cannot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep.cluster.cluster import Cluster
from lockstep.errors import UsageError
from lockstep.faults import clock_skew
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import ActiveController, OneBroker
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until
from tests.faults.injected import injected
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, shapes

pytestmark = GROUP

MARGIN_MS = 60_000
"""Much more than anything here takes, and much less than the clock jumps."""


@pytest.fixture
def libfaketime() -> None:
    if reason := get_fault("clock-skew").reason(ClusterSpec(), "process"):
        pytest.skip(reason)


@pytest.fixture
def no_libfaketime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(clock_skew, "PLACES", ("/nowhere",))
    clock_skew._library.cache_clear()
    yield
    clock_skew._library.cache_clear()


def dated_by_leader(cluster: Cluster, topic: str) -> int:
    """The time that the leader gives to a record, in ms."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all"})
    offsets: list[int] = []
    producer.produce(topic, b"x", partition=0, on_delivery=lambda _, message: offsets.append(message.offset() or 0))
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": "nobody", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, offsets[0])])
    try:
        message = wait_until(lambda: consumer.poll(1), timeout_s=30, what="the record")
        assert message is not None
        return int(message.timestamp()[1])
    finally:
        consumer.close()


@pytest.mark.usefixtures("libfaketime")
@shapes(KRAFT, ZK)
def test_a_leader_dates_records_ahead_of_time(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = f"dated-{time.monotonic_ns()}"
    cluster.create_topic(topic, partitions=1, replication=1, config={"message.timestamp.type": "LogAppendTime"})

    with injected(cluster, tmp_path, "clock-skew", leader_of(topic), seconds=600) as seen:
        assert abs(seen.bit["clock_off_by_s"] - 600) < MARGIN_MS / 1000
        assert dated_by_leader(cluster, topic) > time.time() * 1000 + 600_000 - MARGIN_MS

    assert abs(seen.healed["clock_off_by_s"]) < MARGIN_MS / 1000
    assert dated_by_leader(cluster, topic) < time.time() * 1000 + MARGIN_MS


@pytest.mark.long
@pytest.mark.usefixtures("libfaketime")
def test_the_clock_of_the_controller_can_go_back(lockstep_clusters: Clusters, tmp_path: Path) -> None:
    cluster = lockstep_clusters.get(**KRAFT)
    with injected(cluster, tmp_path, "clock-skew", ActiveController(), seconds=-600) as seen:
        assert seen.bit["clock_off_by_s"] < -500
    assert abs(seen.healed["clock_off_by_s"]) < 60


@pytest.mark.usefixtures("no_libfaketime")
def test_where_the_library_is_missing_it_says_how_to_get_it() -> None:
    reason = get_fault("clock-skew").reason(ClusterSpec(), "process")
    assert reason == "libfaketime is not installed: apt-get install libfaketime"


def test_a_jump_that_nobody_could_tell_is_refused() -> None:
    with pytest.raises(UsageError, match="less than 10 seconds"):
        get_fault("clock-skew").require(OneBroker(id=1), {"seconds": 5})
