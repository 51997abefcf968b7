"""A cluster with TLS, SCRAM and ACLs: who gets in, who does not and is told so, and that no secret is left lying."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from lockstep.clients import librdkafka
from lockstep.clients.access import OPEN, Access
from lockstep.clients.consumer import RecordedConsumer
from lockstep.clients.producer import ProducerSettings, RecordedProducer
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.metadata import ask_metadata
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.security import Secrets
from lockstep.errors import AccessRefused
from lockstep.history.recorder import Recorder
from lockstep.history.schema import Role
from lockstep.plan.plan import Read, TopicPlan, Write
from lockstep.pytest_plugin import Clusters
from lockstep.recovery.ledger import Ledger
from lockstep.spec.cluster import ClusterSpec, Listener, Security
from lockstep.wait import wait_until
from lockstep.workload.load import Load
from tests.cluster.security.attempts import SCRAM_OVER_TLS, TOPIC, produce
from tests.cluster.security.secret_search import found_below, needles

if TYPE_CHECKING:
    from lockstep.pytest_plugin import RunScenario

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("secured-cluster")]

SETTINGS = ProducerSettings(acks=-1, idempotent=True, in_flight=5)


@pytest.fixture(scope="module")
def cluster(lockstep_clusters: Clusters) -> Iterator[Cluster]:
    cluster = lockstep_clusters.get(brokers=2, security=SCRAM_OVER_TLS)
    cluster.create_topic(TOPIC, partitions=1, replication=2, config={"min.insync.replicas": "2"})
    with librdkafka.logging_to(cluster.directory / "clients.log"):
        yield cluster


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with Recorder(tmp_path, "run") as recorder:
        yield recorder


def as_user(cluster: Cluster, user: str, listener: Listener = Listener.CLIENT) -> Access:
    return cluster.secrets.access(cluster.bootstrap(listener), user=user)


def wrong(cluster: Cluster, who: str) -> Access:
    """A user with a wrong password, or one that nobody knows."""
    right = cluster.access()
    return (
        dataclasses.replace(right, password="guessed")
        if who == "lockstep"
        else dataclasses.replace(right, username=who)
    )


def refusal(who: str) -> str:
    return f"refused user {who} with SCRAM-SHA-512: check the user name and password"


@pytest.mark.parametrize("listener", [Listener.CLIENT, Listener.CLIENT_B])
def test_the_right_credentials_write_and_read_through_every_client_side(cluster: Cluster, listener: Listener) -> None:
    access = cluster.access(listener)
    assert produce(access) is None
    consumer = Consumer({**access.librdkafka(), "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    message = wait_until(lambda: consumer.poll(0.5), timeout_s=60, what="the record")
    consumer.close()
    assert message is not None
    assert message.value() is not None


def test_every_node_asks_the_harness_who_it_is(cluster: Cluster) -> None:
    for node in cluster.nodes.values():
        Connection(node.direct, cluster.access_to(node)).close()
        with pytest.raises(AccessRefused, match="refused user lockstep"):
            Connection(node.direct, dataclasses.replace(cluster.access_to(node), password="guessed"))


@pytest.mark.parametrize("who", ["lockstep", "mallory"])
def test_wrong_credentials_get_one_clear_sentence_from_the_raw_client(cluster: Cluster, who: str) -> None:
    with pytest.raises(AccessRefused, match=refusal(who)) as refused:
        ask_metadata(cluster.direct(1), access=wrong(cluster, who))
    assert "guessed" not in str(refused.value)


@pytest.mark.parametrize("who", ["lockstep", "mallory"])
def test_wrong_credentials_get_the_same_sentence_from_recorded_clients(
    cluster: Cluster, recorder: Recorder, who: str
) -> None:
    access = wrong(cluster, who)
    producer = RecordedProducer(recorder, access, TOPIC, "id", SETTINGS)
    producer.send([0])
    with pytest.raises(AccessRefused, match=refusal(who)):
        producer.close()
    producer.abandon()
    consumer = RecordedConsumer(recorder, access, TOPIC, "id", Role.READER)
    consumer.assign({0: 0})
    with pytest.raises(AccessRefused, match=refusal(who)):
        wait_until(lambda: consumer.poll(0.5), timeout_s=60, what="a record that cannot come")
    consumer.close()


def test_wrong_credentials_get_it_too_where_no_poll_would_tell(cluster: Cluster, recorder: Recorder) -> None:
    consumer = RecordedConsumer(recorder, wrong(cluster, "lockstep"), TOPIC, "id", Role.FINAL)
    with pytest.raises(AccessRefused, match=refusal("lockstep")):
        consumer.watermarks(0)
    consumer.close()


def test_a_load_with_wrong_credentials_ends_instead_of_hanging(cluster: Cluster, recorder: Recorder) -> None:
    load = Load(
        workloads=[
            Write(topic=TOPIC, clients=1, acks=-1, idempotent=True, in_flight=5, rate_per_s=10),
            Read(topic=TOPIC, clients=1),
        ],
        topics={TOPIC: (TopicPlan(name=TOPIC, partitions=1, replication=2, min_isr=2), "id")},
        access=wrong(cluster, "lockstep"),
        recorder=recorder,
        seed=1,
    )
    load.start()
    try:
        with pytest.raises(AccessRefused, match=refusal("lockstep")):
            wait_until(load.check, timeout_s=60, what="the load to notice")
    finally:
        load.abandon()


def test_a_client_without_tls_gets_no_answer(cluster: Cluster) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - closed or reset, as the broker likes
        ask_metadata(cluster.direct(1), access=OPEN)
    failed = produce(Access(bootstrap=cluster.bootstrap()), timeout_ms=2_000)
    assert failed is not None
    assert failed.code() == KafkaError._MSG_TIMED_OUT


def test_a_client_that_does_not_know_the_authority_says_so(cluster: Cluster) -> None:
    with pytest.raises(AccessRefused, match=r"the certificate of .* cannot be trusted"):
        ask_metadata(cluster.direct(1), access=dataclasses.replace(cluster.access(), ca=None))


def test_a_user_without_rights_gets_them_by_an_acl(cluster: Cluster) -> None:
    cluster.create_topic("private", partitions=1, replication=1, config={})
    alice = as_user(cluster, "alice")
    refused = produce(alice, "private")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED

    grant = AclBinding(
        ResourceType.TOPIC, "private", ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    admin = AdminClient({**cluster.access().librdkafka(), "log_level": 0})
    for future in admin.create_acls([grant]).values():
        future.result(timeout=30)
    wait_until(lambda: produce(alice, "private") is None, timeout_s=60, what="the right to reach the broker")


def test_no_secret_is_left_in_the_run_directory(cluster: Cluster, tmp_path: Path) -> None:
    produce(cluster.access())
    secrets = needles(cluster.secrets)
    assert len([what for what in secrets if "password" in what]) == 2 * 3
    assert len([what for what in secrets if "key in" in what]) == 2 * 3
    assert found_below(cluster.directory, secrets) == []

    for number, secret in enumerate(secrets.values()):
        (tmp_path / f"{number}").write_bytes(b"before " + secret + b" after")
    assert len(found_below(tmp_path, secrets)) == len(secrets), "the search would not have found one"


@pytest.mark.long
@pytest.mark.spark
def test_a_whole_run_passes_and_leaves_no_secret(lockstep_run: RunScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets: dict[str, bytes] = {}
    make = Secrets.make

    def remembered(spec: ClusterSpec, hosts: Mapping[str, Iterable[str]], ledger: Ledger) -> Secrets:
        made = make(spec, hosts, ledger)
        secrets.update(needles(made))
        return made

    monkeypatch.setattr(Secrets, "make", remembered)
    finished = lockstep_run("leader-kill", seed=7, hold_s=5, security=SCRAM_OVER_TLS)
    assert finished.verdict.verdict == "pass"
    assert secrets
    assert found_below(finished.directory, secrets) == []


@pytest.mark.long
def test_tls_alone_encrypts_and_asks_nobody_for_a_name(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(brokers=1, security=Security(tls=True))
    cluster.create_topic(TOPIC, partitions=1, replication=1, config={})
    assert produce(cluster.access()) is None
    with pytest.raises(OSError):  # noqa: PT011 - closed or reset, as the broker likes
        ask_metadata(cluster.direct(1), access=OPEN)
