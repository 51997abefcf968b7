"""The metadata log of real quorums: who may read it, and what reading it survives."""

from __future__ import annotations

from functools import partial

import pytest
from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
from kio.schema.describe_topic_partitions.v0.request import DescribeTopicPartitionsRequest, TopicRequest
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.quorum import METADATA_TOPIC
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.errors import UsageError
from lockstep.stepper.observers import follow
from lockstep.stepper.observers.metadata_log import MetadataLog
from lockstep.wait import wait_until
from tests.stepper.observers.decision_watch import DecisionWatch, fenced

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "100"}


def create(cluster: Cluster, topic: str, *, replication: int = 1, min_isr: int = 1) -> None:
    config = {"min.insync.replicas": str(min_isr)}
    cluster.create_topic(topic, partitions=1, replication=replication, config=config)


def observers_of_quorum(cluster: Cluster, node: Node) -> set[int]:
    """Who fetches from the active controller besides the voters, as it says itself."""
    metadata = TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),))
    with Connection(node.direct, cluster.access_to(node)) as connection:
        response = connection.ask(DescribeQuorumRequest(topics=(metadata,)))
    assert isinstance(response, DescribeQuorumResponse)
    return {int(observer.replica_id) for observer in response.topics[0].partitions[0].observers}


def active(cluster: Cluster) -> Node:
    quorum = wait_until(cluster.quorum, timeout_s=60, what="a quorum")
    assert quorum is not None
    return next(node for node in cluster.nodes.values() if node.spec.is_voter and node.spec.id == quorum.leader)


def test_a_reader_is_not_counted_among_those_that_replicate(lockstep_cluster: Cluster) -> None:
    with follow(lockstep_cluster, "unknown", 0) as observer:
        watch = DecisionWatch(observer)
        create(lockstep_cluster, "counted")
        with follow(lockstep_cluster, "counted", 0) as other:
            assert other.current.partition.replicas
        assert observers_of_quorum(lockstep_cluster, active(lockstep_cluster)) == {1, 2, 3}
        assert watch.observer.current.partition.replicas == ()


def test_eligible_leaders_are_those_that_brokers_tell_of(lockstep_cluster: Cluster) -> None:
    with follow(lockstep_cluster, "eligible", 0) as observer:
        watch = DecisionWatch(observer)
        create(lockstep_cluster, "eligible", replication=3, min_isr=2)
        leader, second, third = watch.until(
            lambda known: len(known.partition.isr) == 3, "the topic"
        ).controller.partition.replicas
        for broker in (second, third):
            lockstep_cluster.broker(broker).kill()
            watch.until(partial(fenced, broker=broker), "it to be fenced")
        seen = watch.until(lambda known: known.partition.isr == {leader}, "a leader alone").controller.partition
        assert seen.elr == {third}
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name=TopicName("eligible")),), cursor=None)
        with Connection(lockstep_cluster.direct(leader), lockstep_cluster.access()) as connection:
            response = connection.ask(request)
        assert isinstance(response, DescribeTopicPartitionsResponse)
        (told,) = response.topics[0].partitions
        assert set(told.eligible_leader_replicas or ()) == seen.elr
        assert tuple(told.last_known_elr or ()) == seen.last_known_elr
        for broker in (second, third):
            lockstep_cluster.broker(broker).start()
        whole = watch.until(lambda known: len(known.partition.isr) == 3, "the full ISR").controller.partition
        assert whole.elr == frozenset()


@pytest.mark.lockstep(brokers=1, controllers=3)
def test_another_controller_goes_on_where_the_first_ended(lockstep_cluster: Cluster) -> None:
    with follow(lockstep_cluster, "after", 0) as observer:
        watch = DecisionWatch(observer)
        create(lockstep_cluster, "before")
        epoch = observer.current.epoch
        first = active(lockstep_cluster)
        first.kill()
        moved = watch.until(lambda known: known.epoch > epoch, "another controller")
        assert moved.causes[0].startswith("another controller")
        create(lockstep_cluster, "after")
        assert watch.until(lambda known: known.partition.leader == 1, "the topic").controller.epoch > epoch
        first.start()
        lockstep_cluster.wait_voting(first)
        active(lockstep_cluster).pause()
        try:
            watch.until(lambda known: known.epoch > moved.controller.epoch, "a third controller")
        finally:
            for node in lockstep_cluster.nodes.values():
                node.resume()
        watch.require_order()


@pytest.mark.lockstep(brokers=1, overrides=SNAPSHOTS)
def test_a_snapshot_hides_nothing_while_the_log_is_there(lockstep_cluster: Cluster) -> None:
    node = active(lockstep_cluster)
    create(lockstep_cluster, "in-snapshot")
    metadata = lockstep_cluster.log_directories(node.spec)[0] / f"{METADATA_TOPIC}-0"

    def snapshots() -> list[str]:
        return [path.name for path in metadata.glob("*.checkpoint") if int(path.name.split("-")[0]) > 0]

    wait_until(snapshots, timeout_s=60, what="a snapshot")
    with follow(lockstep_cluster, "in-snapshot", 0) as observer:
        assert observer.current.partition.leader == 1
        assert observer.current.active_brokers() == {1}


@pytest.mark.lockstep(brokers=1, mode="kraft-combined")
def test_controllers_that_are_brokers_cannot_be_followed(lockstep_cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="its own controllers"):
        MetadataLog(lockstep_cluster)
