"""The same on other versions, in other modes and with other mechanisms, each a cluster of its own."""

from __future__ import annotations

import dataclasses

import pytest
from confluent_kafka import KafkaError

from lockstep.clients.wire.metadata import ask_metadata
from lockstep.errors import AccessRefused
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Mechanism, Mode, Security
from tests.cluster.security.attempts import TOPIC, produce
from tests.cluster.security.secret_search import found_below, needles

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("secured-cluster"), pytest.mark.long]


@pytest.mark.parametrize(
    ("kafka", "mode", "mechanism"),
    [
        ("3.9.2", Mode.ZK, Mechanism.SCRAM_512),
        ("3.6.2", Mode.ZK, Mechanism.PLAIN),
        ("3.6.2", Mode.KRAFT, Mechanism.SCRAM_256),
        ("4.3.1", Mode.COMBINED, Mechanism.PLAIN),
    ],
)
def test_other_versions_and_mechanisms(
    lockstep_clusters: Clusters, kafka: str, mode: Mode, mechanism: Mechanism
) -> None:
    security = Security(tls=True, sasl=mechanism, users=("alice",))
    cluster = lockstep_clusters.get(kafka=kafka, mode=mode, brokers=1, security=security)
    cluster.create_topic(TOPIC, partitions=1, replication=1, config={})
    assert produce(cluster.access()) is None
    refused = produce(cluster.secrets.access(cluster.bootstrap(), user="alice"))
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(AccessRefused, match=f"refused user lockstep with {mechanism}: check the user name"):
        ask_metadata(cluster.direct(1), access=dataclasses.replace(cluster.access(), password="guessed"))
    assert found_below(cluster.directory, needles(cluster.secrets)) == []
