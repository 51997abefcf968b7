"""Single requests and responses of real clients, held, dropped, postponed or answered on their way to a real broker."""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.metadata import metadata
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.network.conditions import Frames
from lockstep.network.frames import Answer, Drop, Hold, Postpone, Rule, Side
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener, Mode
from lockstep.wait import wait_until
from tests.network.effects import client_link

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]

PATIENCE_S = 60.0
SILENCE_S = 1.0
Settings = dict[str, str | int | bool]

NOT_ENOUGH_REPLICAS = int(ErrorCode.not_enough_replicas)
NO_RETRIES: Settings = {"message.send.max.retries": 0}
HELD_PRODUCE = Hold(apis=("Produce",), side=Side.RESPONSE, times=1)
DROPPED_PRODUCE = Drop(apis=("Produce",), side=Side.RESPONSE, times=1)


@pytest.fixture(
    scope="module", params=[{}, pytest.param({"kafka": "3.9.2", "mode": Mode.ZK}, marks=pytest.mark.long)], ids=str
)
def cluster(request: pytest.FixtureRequest, lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(**request.param)


class Place:
    """A topic of which one broker leads two partitions, and the link on which clients reach that broker."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = f"frames-{uuid.uuid4().hex[:8]}"
        partitions = len(cluster.broker_ids) + 1
        cluster.create_topic(self.topic, partitions=partitions, replication=1, config={})
        leaders = [cluster.leader(self.topic, partition).leader for partition in range(partitions)]
        self.leader = next(leader for leader in leaders if leaders.count(leader) > 1)
        self.partition, self.other = (number for number, leader in enumerate(leaders) if leader == self.leader)
        self.link = client_link(cluster, Listener.CLIENT, self.leader)

    @contextmanager
    def under(self, *rules: Rule) -> Iterator[None]:
        self.cluster.links.impose(self.link, Frames(rules))
        try:
            yield
        finally:
            self.cluster.links.mend(self.link)

    def matched(self) -> tuple[int, ...]:
        return self.cluster.links.matched(self.link)

    def log_end(self, partition: int | None = None) -> int:
        which = self.partition if partition is None else partition
        return ask_log_end(self.cluster.direct(self.leader), self.topic, which)

    def producer(self, **config: str | int | bool) -> Producer:
        """It retries, after at most two seconds without an answer."""
        defaults = {"acks": "all", "linger.ms": 0, "socket.timeout.ms": 2000, "retry.backoff.ms": 50, "log_level": 0}
        return Producer({"bootstrap.servers": self.cluster.bootstrap(), **defaults, **config})

    @contextmanager
    def reading(self) -> Iterator[Consumer]:
        """A consumer of what is committed from now on."""
        config = {"group.id": self.topic, "fetch.wait.max.ms": 50, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap(), **config})
        try:
            consumer.assign([TopicPartition(self.topic, self.partition, self.log_end())])
            yield consumer
        finally:
            consumer.close()

    def write(self, producer: Producer, value: bytes = b"value", partition: int | None = None) -> KafkaError | None:
        """What became of a record."""
        reports: list[KafkaError | None] = []

        def note(error: KafkaError | None, _: Message) -> None:
            reports.append(error)

        where = self.partition if partition is None else partition
        producer.produce(self.topic, value, partition=where, on_delivery=note)
        assert producer.flush(PATIENCE_S) == 0
        return reports[0]


@pytest.fixture(scope="module")
def led(cluster: Cluster) -> Place:
    return Place(cluster)


@pytest.mark.parametrize("rule", [HELD_PRODUCE, DROPPED_PRODUCE], ids=["held", "dropped"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_a_producer_that_misses_a_response_writes_twice_unless_it_is_idempotent(
    led: Place, rule: Rule, idempotent: bool
) -> None:
    producer, before = led.producer(**{"enable.idempotence": idempotent}), led.log_end()
    with led.under(rule):
        assert led.write(producer) is None
        assert led.matched() == (1,)
        assert led.log_end() == before + (1 if idempotent else 2)


def test_a_dropped_request_was_never_there(led: Place) -> None:
    before = led.log_end()
    with led.under(Drop(apis=("Produce",), side=Side.REQUEST, times=1)):
        assert led.write(led.producer()) is None
        assert led.matched() == (1,)
    assert led.log_end() == before + 1


def test_a_held_request_arrives_when_the_link_is_mended_though_its_client_has_given_up(led: Place) -> None:
    producer, before = led.producer(**NO_RETRIES, **{"message.timeout.ms": 2000}), led.log_end()
    with led.under(Hold(apis=("Produce",), side=Side.REQUEST)):
        assert led.write(producer) is not None
        assert led.log_end() == before
    wait_until(lambda: led.log_end() == before + 1, timeout_s=PATIENCE_S, what="the old request to be served")


def test_an_error_in_the_brokers_place(led: Place) -> None:
    before = led.log_end()
    with led.under(Answer(apis=("Produce",), error_code=NOT_ENOUGH_REPLICAS)):
        told = led.write(led.producer(**NO_RETRIES))
        assert told is not None
        assert told.code() == KafkaError.NOT_ENOUGH_REPLICAS
        assert led.matched() == (1,)
        assert led.log_end() == before
    with led.under(Answer(apis=("Produce",), error_code=NOT_ENOUGH_REPLICAS, times=3)):
        assert led.write(led.producer()) is None, "it tried until the broker was asked"
        assert led.matched() == (3,)
        assert led.log_end() == before + 1


def test_a_rule_hits_only_the_partition_and_the_client_that_it_names(led: Place) -> None:
    named, other = (led.producer(**NO_RETRIES, **{"client.id": id_}) for id_ in ("named", "other"))
    rule = Answer(
        apis=("Produce",),
        error_code=NOT_ENOUGH_REPLICAS,
        client_id="named",
        topic=led.topic,
        partition=led.partition,
    )
    with led.under(rule):
        assert led.write(other) is None
        assert led.write(named, partition=led.other) is None
        assert led.matched() == (0,)
        assert led.write(named) is not None
        assert led.matched() == (1,)
    assert led.write(named) is None


def test_only_what_is_postponed_takes_longer(led: Place) -> None:
    with Connection(led.cluster.links.address(led.link), timeout_s=20) as connection:
        metadata(connection)
        with led.under(Postpone(apis=("Metadata",), side=Side.RESPONSE, client_id="lockstep", ms=700)):
            started = time.monotonic()
            metadata(connection)
            assert time.monotonic() - started >= 0.7
            assert led.matched() == (1,)


def test_a_consumer_hears_nothing_until_its_responses_are_let_go(led: Place) -> None:
    with led.reading() as consumer:
        topic_id = led.cluster.leader(led.topic, led.partition).topic_id  # newer fetches have no topic's name
        rule = Hold(apis=("Fetch",), side=Side.RESPONSE, topic=led.topic, topic_id=topic_id, partition=led.partition)
        with led.under(rule):
            wait_until(lambda: led.matched() >= (1,), timeout_s=PATIENCE_S, what="a response to be held")
            assert led.write(led.producer(), b"news") is None
            assert not consumer.consume(1, timeout=SILENCE_S)
        assert _next(consumer) == b"news"


def test_a_transaction_is_not_committed_before_its_end_arrives(led: Place) -> None:
    producer = led.producer(**{"transactional.id": f"frames-{uuid.uuid4().hex[:8]}"}, **{"socket.timeout.ms": 60_000})
    producer.init_transactions(PATIENCE_S)
    links = [client_link(led.cluster, Listener.CLIENT, broker) for broker in led.cluster.broker_ids]
    with led.reading() as consumer, ThreadPoolExecutor() as pool:
        producer.begin_transaction()
        assert led.write(producer, b"promised") is None
        for link in links:
            led.cluster.links.impose(link, Frames((Hold(apis=("EndTxn",), side=Side.REQUEST),)))
        try:
            committing = pool.submit(producer.commit_transaction, PATIENCE_S)
            wait_until(
                lambda: sum(led.cluster.links.matched(link)[0] for link in links) == 1,
                timeout_s=PATIENCE_S,
                what="the end of the transaction to be held",
            )
            assert not consumer.consume(1, timeout=SILENCE_S)
        finally:
            for link in links:
                led.cluster.links.mend(link)
        committing.result()
        assert _next(consumer) == b"promised"


def test_a_coordinator_that_refuses_is_asked_again(led: Place) -> None:
    producer = led.producer(**{"transactional.id": f"frames-{uuid.uuid4().hex[:8]}"})
    producer.init_transactions(PATIENCE_S)
    links = [client_link(led.cluster, Listener.CLIENT, broker) for broker in led.cluster.broker_ids]
    refused = Answer(apis=("EndTxn",), error_code=ErrorCode.concurrent_transactions, times=2)
    producer.begin_transaction()
    assert led.write(producer) is None
    for link in links:
        led.cluster.links.impose(link, Frames((refused,)))
    try:
        producer.commit_transaction(PATIENCE_S)
        assert sorted(led.cluster.links.matched(link)[0] for link in links)[-1] == 2
    finally:
        for link in links:
            led.cluster.links.mend(link)


def test_a_stream_under_load_stays_whole_while_rules_come_and_go(led: Place) -> None:
    """Every value once and in its order, by an idempotent producer, whatever happened on the way."""
    draw = random.Random(5)
    rules: tuple[Rule, ...] = (
        Hold(apis=("Produce",), side=Side.REQUEST),
        Hold(apis=("Produce", "Fetch"), side=Side.RESPONSE),
        Postpone(apis=("Produce", "Fetch"), side=Side.RESPONSE, ms=20),
        Drop(apis=("Produce",), side=Side.RESPONSE, times=1),
        Drop(apis=("Fetch",), side=Side.REQUEST, times=1),
        Answer(apis=("Produce",), error_code=NOT_ENOUGH_REPLICAS, times=2),
        Answer(apis=("Fetch",), error_code=ErrorCode.not_leader_or_follower, times=2),
        Hold(apis=("EndTxn",), side=Side.REQUEST),
    )
    values = [draw.randbytes(draw.randrange(1, 3000)) for _ in range(20_000)]
    producer = led.producer(**{"enable.idempotence": True}, **{"socket.timeout.ms": 10_000})
    acted = 0
    with led.reading() as consumer, ThreadPoolExecutor() as pool:
        reading = pool.submit(_digest, consumer, len(values))
        for number, value in enumerate(values):
            producer.produce(led.topic, value, partition=led.partition)
            producer.poll(0)
            if number % 1000 == 999:
                with led.under(draw.choice(rules)):
                    producer.flush(0.1)
                    acted += sum(led.matched())
        assert producer.flush(PATIENCE_S) == 0
        assert reading.result(PATIENCE_S) == hashlib.sha256(b"".join(values)).hexdigest()
    assert acted > 0


def _digest(consumer: Consumer, count: int) -> str:
    """Of the next values, one after the other."""
    digest, seen = hashlib.sha256(), 0
    until = time.monotonic() + PATIENCE_S
    while seen < count:
        assert time.monotonic() < until, f"{seen} of {count} records came"
        for message in consumer.consume(1000, timeout=0.5):
            if (value := message.value()) is not None and message.error() is None:
                digest.update(value)
                seen += 1
    return digest.hexdigest()


def _next(consumer: Consumer) -> bytes | None:
    messages = wait_until(lambda: consumer.consume(1, timeout=0.5), timeout_s=PATIENCE_S, what="a record")
    return messages[0].value() if messages else None
