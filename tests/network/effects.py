"""What a condition of a link does to a real cluster, seen from outside.

Each function imposes a condition, waits for its effect, mends the link and waits for the recovery. How long something
takes is held to a lower bound only: what a delay or a rate makes impossible. More may be the machine.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial

import pytest
from confluent_kafka import KafkaError, Message, Producer

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.metadata import ask_metadata, metadata
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.clients.wire.topics import create_topic
from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.network.conditions import BlackHole, Condition, Cut, Delay, OneWay, Reset, Throttle
from lockstep.network.links import Traffic
from lockstep.network.topology import CLIENT_SIDES, Link
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until

PATIENCE_S = 60.0
IMPATIENCE_MS = 3000
LONG_VALUE = ",".join(["0:1"] * 1500)
"""A topic's configuration of 6 kB, so that news of the topic takes time on a slow link."""

SLOW, NARROW = Delay(200), Throttle(20)
CONDITIONS = (Cut(), BlackHole(), OneWay(), Reset(), SLOW, NARROW)

Case = Callable[[], None]
Outcomes = dict[Condition, Future[None]]


def together(cases: Mapping[Condition, Case]) -> Outcomes:
    """Run cases on different links at once; each future tells how one ended."""
    with ThreadPoolExecutor(len(cases)) as pool:
        futures = {condition: pool.submit(case) for condition, case in cases.items()}
        wait(futures.values())
    return futures


@contextmanager
def imposed(cluster: Cluster, link: Link, condition: Condition) -> Iterator[Traffic]:
    """What the link had carried when the condition began."""
    cluster.links.impose(link, condition)
    try:
        yield cluster.links.traffic()[link]
        assert cluster.links.condition(link) == condition
    finally:
        cluster.links.mend(link)


class Writer(Closeable):
    """Writes to every partition of a topic all the time, with acks=1."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": 1, "linger.ms": 5})
        self._topic, self._partitions = topic, partitions
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._done.wait(0.05):
            for partition in range(self._partitions):
                self._producer.produce(self._topic, b"again", partition=partition)
            self._producer.poll(0)

    def close(self) -> None:
        self._done.set()
        self._thread.join()
        self._producer.flush(PATIENCE_S)


def replication_outcomes(cluster: Cluster) -> Outcomes:
    """Every condition, each on a replication link of its own."""
    topic = "links-replication"
    cluster.create_topic(topic, partitions=3, replication=3, config={"min.insync.replicas": "1"})
    assert {cluster.leader(topic, partition).leader for partition in range(3)} == {1, 2, 3}
    cut, silent = follower_link(cluster, topic, 0, 0), follower_link(cluster, topic, 0, 1)
    one_way, reset = follower_link(cluster, topic, 1, 0), follower_link(cluster, topic, 1, 1)
    with Writer(cluster, topic, 3):
        stopped = together(
            {
                Cut(): partial(follower_leaves_the_isr, cluster, topic, 0, cut, Cut()),
                BlackHole(): partial(follower_leaves_the_isr, cluster, topic, 0, silent, BlackHole()),
                OneWay(): partial(follower_leaves_the_isr, cluster, topic, 1, one_way, OneWay()),
                Reset(): partial(follower_leaves_the_isr, cluster, topic, 1, reset, Reset()),
            }
        )
    slowed = together(
        {
            # There and back: the follower gets the record with one fetch, and says so with the next.
            SLOW: partial(commit_takes, cluster, topic, 0, cut, SLOW, size=100, least_s=0.4),
            NARROW: partial(commit_takes, cluster, topic, 1, reset, NARROW, size=30_000, least_s=1.5),
        }
    )
    return stopped | slowed


def follower_link(cluster: Cluster, topic: str, partition: int, follower: int) -> Link:
    """The replication link from a partition's leader's first or second follower."""
    view = cluster.leader(topic, partition)
    followers = [id_ for id_ in view.replicas if id_ != view.leader]
    source, destination = cluster.broker(followers[follower]).name, cluster.broker(view.leader).name
    return Link(source=source, destination=destination, listener=Listener.REPL)


def follower_leaves_the_isr(cluster: Cluster, topic: str, partition: int, link: Link, condition: Condition) -> None:
    """While somebody writes. The leader, which hears of no fetch, tells the controller, and all brokers hear of it."""
    follower = cluster.nodes[link.source].spec.id
    with imposed(cluster, link, condition) as since:
        wait_until(
            lambda: follower not in cluster.leader(topic, partition).isr,
            timeout_s=PATIENCE_S,
            what=f"{link.source} to leave the ISR of {topic}-{partition} ({condition})",
        )
        nothing_came_back(cluster, link, condition, since)
    wait_until(
        lambda: follower in cluster.leader(topic, partition).isr,
        timeout_s=PATIENCE_S,
        what=f"{link.source} to come back into the ISR of {topic}-{partition} ({condition})",
    )


def nothing_came_back(cluster: Cluster, link: Link, condition: Condition, since: Traffic) -> None:
    """Since the condition began; and only on a one-way link may anything have gone there."""
    now = cluster.links.traffic()[link]
    assert now.to_source == since.to_source
    assert condition == OneWay() or now.to_destination == since.to_destination


def commit_takes(
    cluster: Cluster, topic: str, partition: int, link: Link, condition: Condition, *, size: int, least_s: float
) -> None:
    """With acks=all, a write is answered when the slow follower has it and has said so."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap(), "acks": "all", "linger.ms": 0})
    with imposed(cluster, link, condition):
        started = time.monotonic()
        assert _write(producer, topic, partition, size) is None
        assert time.monotonic() - started >= least_s
    assert _write(producer, topic, partition, size) is None
    cluster.wait_in_sync(topic, 3)


def broker_is_missed(cluster: Cluster, link: Link, condition: Condition, witness: int) -> None:
    """Its session ends, and another broker hears of that: fenced by a KRaft controller, or gone from ZooKeeper."""
    broker = cluster.nodes[link.source].spec.id
    with imposed(cluster, link, condition) as since:
        wait_until(
            lambda: broker not in cluster.ask(witness).brokers,
            timeout_s=PATIENCE_S,
            what=f"{link.source} to lose its session ({condition})",
        )
        nothing_came_back(cluster, link, condition, since)
        if condition == OneWay():
            assert cluster.links.traffic()[link].to_destination > since.to_destination, "it went on asking"
    cluster.wait_serving(broker)


def news_takes(cluster: Cluster, link: Link, condition: Condition, *, teller: int, hearer: int, least_s: float) -> None:
    """A topic is created by asking one broker; another hears of it through the slow link."""
    topic = f"news-{uuid.uuid4().hex[:8]}"
    config = {"leader.replication.throttled.replicas": LONG_VALUE}
    with imposed(cluster, link, condition) as since:
        started = time.monotonic()
        create_topic(cluster.direct(teller), topic, partitions=1, replication=1, config=config, timeout_s=PATIENCE_S)
        wait_until(
            lambda: cluster.ask(hearer, (topic,)).partition(topic, 0), timeout_s=PATIENCE_S, what=f"{topic} to be seen"
        )
        assert time.monotonic() - started >= least_s
        now = cluster.links.traffic()[link]
        carried = now.to_destination - since.to_destination + now.to_source - since.to_source
        assert carried > len(LONG_VALUE), f"the news did not come by {link}"
    cluster.wait_ready()


def client_link(cluster: Cluster, listener: Listener, broker: int) -> Link:
    return Link(source=CLIENT_SIDES[listener], destination=cluster.broker(broker).name, listener=listener)


def client_notices(cluster: Cluster, listener: Listener, topic: str, condition: Condition) -> None:
    """A client of that side notices, one of the other side does not; afterwards neither does."""
    leader = cluster.leader(topic, 0).leader
    other_side = Listener.CLIENT_B if listener is Listener.CLIENT else Listener.CLIENT
    link, other = client_link(cluster, listener, leader), client_link(cluster, other_side, leader)
    producer, other_producer = _impatient(cluster, listener), _impatient(cluster, other_side)
    assert _write(producer, topic, 0, 100) is None
    assert _write(other_producer, topic, 0, 100) is None
    with Connection(cluster.links.address(link), timeout_s=1.0) as connection:
        assert leader in metadata(connection).brokers
        with imposed(cluster, link, condition) as since:
            if isinstance(condition, Delay | Throttle):
                _slowed(cluster, link, connection, producer, topic, condition)
            else:
                _stopped(cluster, link, connection, producer, topic, condition)
                nothing_came_back(cluster, link, condition, since)
            assert leader in ask_metadata(cluster.links.address(other)).brokers
            assert _write(other_producer, topic, 0, 100) is None
    assert leader in ask_metadata(cluster.links.address(link)).brokers
    assert _write(_impatient(cluster, listener), topic, 0, 100) is None


def _stopped(
    cluster: Cluster, link: Link, connection: Connection, producer: Producer, topic: str, condition: Condition
) -> None:
    """On connections that were there before, and on a new one."""
    error = ConnectionError if isinstance(condition, Cut | Reset) else TimeoutError
    with pytest.raises(error):
        metadata(connection)
    with pytest.raises(error):
        ask_metadata(cluster.links.address(link), timeout_s=0.5)
    leader = cluster.direct(cluster.leader(topic, 0).leader)
    log_end = ask_log_end(leader, topic, 0)
    told = _write(producer, topic, 0, 100)
    assert told is not None
    assert told.code() == KafkaError._MSG_TIMED_OUT
    assert ask_log_end(leader, topic, 0) == log_end + (condition == OneWay()), "only there the request arrives"


def _slowed(
    cluster: Cluster,
    link: Link,
    connection: Connection,
    producer: Producer,
    topic: str,
    condition: Delay | Throttle,
) -> None:
    if isinstance(condition, Delay):
        size, least_s = 100, 2 * condition.ms / 1000
        for ask in (partial(metadata, connection), partial(ask_metadata, cluster.links.address(link))):
            started = time.monotonic()
            ask()
            assert time.monotonic() - started >= least_s
    else:
        size, least_s = 1000 * condition.kb_per_s, 1.0
    started = time.monotonic()
    assert _write(producer, topic, 0, size) is None
    assert time.monotonic() - started >= least_s


def _impatient(cluster: Cluster, listener: Listener) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap(listener),
            "acks": 1,
            "linger.ms": 0,
            "message.timeout.ms": IMPATIENCE_MS,
            "message.send.max.retries": 0,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )


def _write(producer: Producer, topic: str, partition: int, size: int) -> KafkaError | None:
    """What became of a record of that many bytes."""
    reports: list[KafkaError | None] = []

    def note(error: KafkaError | None, _: Message) -> None:
        reports.append(error)

    producer.produce(topic, random.randbytes(size), partition=partition, on_delivery=note)
    assert producer.flush(PATIENCE_S) == 0
    return reports[0]
