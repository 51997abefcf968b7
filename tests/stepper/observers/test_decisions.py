"""What the controllers of real clusters decide, as observers tell it; and the logs of real brokers that are stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.elections import Election, elect_leader
from lockstep.clients.wire.fetch import fetch
from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.produce import produce
from lockstep.clients.wire.records import Batch
from lockstep.clients.wire.topics import TopicRefused, delete_topic
from lockstep.cluster.cluster import Cluster
from lockstep.errors import UsageError
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.observers import follow
from lockstep.stepper.observers.stopped_replicas import ReplicaOnDisk, on_disk
from lockstep.wait import wait_until
from lockstep_model.controller import Controller
from lockstep_model.partition.log import EpochStart
from tests.stepper.observers.decision_watch import DecisionWatch, epoch_of, fenced

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

EVERYONE = frozenset({1, 2, 3})


@pytest.fixture(
    scope="module",
    params=[{}, pytest.param({"kafka": "3.9.2"}, marks=pytest.mark.long), {"mode": "zk"}],
    ids=["4.3.1-kraft", "3.9.2-kraft", "3.9.2-zk"],
)
def spec(request: pytest.FixtureRequest) -> Mapping[str, str]:
    found: Mapping[str, str] = request.param
    return found


@pytest.fixture
def cluster(spec: Mapping[str, str], lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(**spec)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that is not there yet."""
    return str(request.function.__name__)


@pytest.fixture
def watch(cluster: Cluster, topic: str) -> Iterator[DecisionWatch]:
    with follow(cluster, topic, 0) as observer:
        yield DecisionWatch(observer)


def create(cluster: Cluster, topic: str, watch: DecisionWatch) -> Controller:
    cluster.create_topic(topic, partitions=1, replication=3, config={"min.insync.replicas": "1"})
    return watch.until(lambda known: known.partition.isr == EVERYONE, "the topic").controller


def write(cluster: Cluster, leader: int, topic: str, *values: bytes) -> None:
    """With acks=all; a leader may take a moment to know that it is one."""

    def written() -> bool:
        with Connection(cluster.direct(leader), cluster.access()) as connection:
            return produce(connection, topic, 0, Batch(values=values)).answer().error is ErrorCode.none

    wait_until(written, timeout_s=30, what=f"{leader} to lead {topic}")


def high_watermark(cluster: Cluster, broker: int, topic: str) -> int:
    """Of that broker's own replica."""
    with Connection(cluster.direct(broker), cluster.access()) as connection:
        return fetch(connection, topic, 0, 0).answer().high_watermark


def disk_of(cluster: Cluster, broker: int, topic: str) -> ReplicaOnDisk:
    replica = on_disk(cluster, broker, topic, 0)
    assert replica is not None
    return replica


def require_every_change(watch: DecisionWatch) -> None:
    """No change of the partition is missing."""
    there = [decision for decision in watch.decisions if decision.controller.partition.replicas]
    for before, after in pairwise(there):
        epochs = [known.partition.partition_epoch for known in (before.controller, *after.through, after.controller)]
        assert all(later - earlier in (0, 1) for earlier, later in pairwise(epochs)), after


def require_what_brokers_answer(cluster: Cluster, topic: str, known: Controller) -> None:
    """What was seen last is what every broker says once it has caught up."""

    def answers() -> bool:
        views = cluster.ask_all((topic,))
        return views.keys() == EVERYONE and all(
            view.brokers == known.active_brokers() and _agrees(view.partition(topic, 0), known)
            for view in views.values()
        )

    wait_until(answers, timeout_s=30, what=f"all brokers to say what was seen: {known}")


def _agrees(view: PartitionView | None, known: Controller) -> bool:
    seen = known.partition
    return view is not None and (view.leader, view.leader_epoch, view.replicas, frozenset(view.isr)) == (
        seen.leader, seen.leader_epoch, seen.replicas, seen.isr,
    )  # fmt: skip


def test_a_leader_dies_and_comes_back(cluster: Cluster, topic: str, watch: DecisionWatch) -> None:
    assert watch.observer.current.partition.replicas == ()
    assert watch.observer.current.active_brokers() == EVERYONE

    created = create(cluster, topic, watch)
    preferred, second, _ = created.partition.replicas
    assert (created.partition.leader, created.partition.leader_epoch, created.partition.partition_epoch) == (
        preferred, 0, 0,
    )  # fmt: skip

    cluster.broker(preferred).kill()
    gone = watch.until(lambda known: fenced(known, preferred), "its leader to be fenced").controller
    assert epoch_of(gone, preferred) == epoch_of(created, preferred)
    watch.until(lambda known: known.partition.leader == second, "another leader")
    shrunk = watch.until(lambda known: known.partition.isr == EVERYONE - {preferred}, "a smaller ISR").controller
    assert shrunk.partition.leader == second
    assert shrunk.partition.leader_epoch > 0

    cluster.broker(preferred).start()
    registered = watch.until(lambda known: epoch_of(known, preferred) > epoch_of(gone, preferred), "a new registration")
    assert registered.position >= epoch_of(registered.controller, preferred)
    assert registered.controller.partition.isr == EVERYONE - {preferred}
    watch.until(lambda known: known.active(preferred), "it to be unfenced")
    expanded = watch.until(lambda known: known.partition.isr == EVERYONE, "the full ISR").controller
    assert expanded.partition.leader == second

    cluster.wait_ready()
    elect_leader(cluster.direct(cluster.ask(second).controller), topic, 0, Election.PREFERRED, access=cluster.access())
    last = watch.until(lambda known: known.partition.leader == preferred, "the preferred leader").controller
    assert last.partition.leader_epoch == expanded.partition.leader_epoch + 1

    watch.require_order()
    require_every_change(watch)
    require_what_brokers_answer(cluster, topic, watch.observer.current)


def test_a_topic_is_deleted_and_created_again(cluster: Cluster, topic: str, watch: DecisionWatch) -> None:
    create(cluster, topic, watch)
    assert delete_topic(cluster.direct(cluster.ask(1).controller), topic, access=cluster.access())
    watch.until(lambda known: not known.partition.replicas, "no topic")
    # ZooKeeper's controller removes the topic first and its mark for deletion after it: until then the name is taken.
    again = wait_until(
        lambda: create(cluster, topic, watch), timeout_s=30, what="the name to be free", retry_on=(TopicRefused,)
    )
    assert (again.partition.leader_epoch, again.partition.partition_epoch) == (0, 0)
    watch.require_order()


def test_a_stopped_broker_has_on_disk_what_was_written(cluster: Cluster, topic: str, watch: DecisionWatch) -> None:
    leader, follower, other = create(cluster, topic, watch).partition.replicas
    write(cluster, leader, topic, b"a", b"b")
    write(cluster, leader, topic, b"c")
    with pytest.raises(UsageError, match="runs"):
        on_disk(cluster, follower, topic, 0)

    wait_until(lambda: high_watermark(cluster, follower, topic) == 3, timeout_s=30, what="the follower to catch up")
    cluster.broker(follower).stop()
    stopped = disk_of(cluster, follower, topic)
    assert [(record.offset, record.partition_leader_epoch, record.value) for record in stopped.records] == [
        (0, 0, b"a"), (1, 0, b"b"), (2, 0, b"c"),
    ]  # fmt: skip
    assert (stopped.start, stopped.end, stopped.high_watermark, stopped.epochs) == (0, 3, 3, (EpochStart(0, 0),))
    assert on_disk(cluster, follower, "no-such-topic", 0) is None

    cluster.broker(leader).kill()
    elected = watch.until(lambda known: known.partition.leader == other, "another leader").controller.partition
    write(cluster, other, topic, b"d")
    cluster.broker(other).kill()
    assert disk_of(cluster, leader, topic).records == stopped.records
    longest = disk_of(cluster, other, topic)
    assert longest.records[:3] == stopped.records
    assert [(record.offset, record.value) for record in longest.records[3:]] == [(3, b"d")]
    epoch = longest.records[3].partition_leader_epoch
    assert epoch >= elected.leader_epoch
    assert longest.epochs == (EpochStart(0, 0), EpochStart(epoch, 3))
