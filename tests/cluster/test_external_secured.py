"""Somebody else's cluster with TLS, SCRAM and ACLs: a user with a few rights can test it, others are told why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from lockstep.checker import SparkStarter
from lockstep.cluster.backends import Backend
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.external import PREFIX, reach, tried
from lockstep.cluster.external_spec import ExternalSpec
from lockstep.errors import AccessRefused, ClusterError, EnvironmentError_
from lockstep.plan.builder import PlanBuilder
from lockstep.plan.plan import TopicPlan
from lockstep.progress import Progress
from lockstep.pytest_plugin import Clusters
from lockstep.recovery.ledger import LEDGER, read_ledger
from lockstep.run import run
from lockstep.wait import wait_until
from lockstep_reports import write_all
from tests.cluster.security.attempts import SCRAM_OVER_TLS
from tests.cluster.security.secret_search import found_below, needles

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("secured-cluster")]

RIGHTS = (AclOperation.CREATE, AclOperation.WRITE, AclOperation.READ, AclOperation.DELETE)
"""All that a run needs, on topics that begin with `lockstep-`."""


@pytest.fixture(scope="module")
def cluster(lockstep_clusters: Clusters) -> Cluster:
    return lockstep_clusters.get(brokers=2, security=SCRAM_OVER_TLS)


@pytest.fixture
def spec(cluster: Cluster) -> ExternalSpec:
    """As alice, who has no right but those that a test gives her."""
    return ExternalSpec(
        bootstrap_servers=cluster.bootstrap(), client_config=str(cluster.secrets.client_properties("alice"))
    )


@pytest.fixture
def _rights(cluster: Cluster, spec: ExternalSpec) -> Iterator[None]:
    admin = AdminClient({**cluster.access().librdkafka(), "log_level": 0})
    acls = [
        (ResourceType.TOPIC, PREFIX, ResourcePatternType.PREFIXED, "User:alice", "*", right, AclPermissionType.ALLOW)
        for right in RIGHTS
    ]
    for created in admin.create_acls([AclBinding(*acl) for acl in acls]).values():
        created.result(timeout=30)
    wait_until(lambda: refusal(spec) is None, timeout_s=60, what="alice's rights to reach the brokers")
    yield
    for deleted in admin.delete_acls([AclBindingFilter(*acl) for acl in acls]).values():
        deleted.result(timeout=30)
    wait_until(lambda: refusal(spec), timeout_s=60, what="alice's rights to be gone from the brokers")


def refusal(spec: ExternalSpec) -> str | None:
    """What the cluster has against a topic of ours, if anything."""
    try:
        tried(spec, reach(spec), [TopicPlan(name="orders", partitions=1, replication=2, min_isr=2)])
    except ClusterError as error:
        return str(error)
    return None


@pytest.mark.spark
@pytest.mark.usefixtures("_rights")
def test_a_user_with_a_few_rights_can_test_it(
    cluster: Cluster, spec: ExternalSpec, tmp_path: Path, lockstep_spark: SparkStarter
) -> None:
    plan = PlanBuilder("small", 5)
    orders = plan.topic("orders", partitions=1, replication=2, min_isr=2)
    plan.write(orders, clients=1, rate_per_s=100)
    plan.read(orders, clients=1)
    plan.hold(seconds=1)
    finished = run(
        plan.build(),
        spec=spec,
        backend=Backend.EXTERNAL,
        runs=tmp_path,
        progress=Progress(quiet=True),
        spark=lockstep_spark,
    )
    write_all(finished.directory)
    assert finished.verdict.verdict == "pass"
    (entry,) = read_ledger(finished.directory / LEDGER)
    assert entry.fields["name"].startswith(f"{PREFIX}{finished.directory.name}-")
    assert entry.fields["found"] is True
    described = (finished.directory / "run.json").read_text()
    assert '"username": "alice"' in described
    assert '"protocol": "SASL_SSL"' in described
    assert f"--client-config {spec.client_config}" in described
    assert found_below(finished.directory, needles(cluster.secrets)) == []


def test_a_user_without_rights_is_told_before_anything_is_made(spec: ExternalSpec) -> None:
    assert "orders was not created: topic_authorization_failed" in (refusal(spec) or "")


def test_wrong_credentials(spec: ExternalSpec, tmp_path: Path) -> None:
    assert spec.client_config is not None
    wrong = tmp_path / "client.properties"
    wrong.write_text(Path(spec.client_config).read_text().replace("alice", "mallory"))
    with pytest.raises(AccessRefused, match="refused user mallory with SCRAM-SHA-512"):
        reach(ExternalSpec(bootstrap_servers=spec.bootstrap_servers, client_config=str(wrong)))


def test_no_credentials(spec: ExternalSpec) -> None:
    with pytest.raises(
        EnvironmentError_, match="if it wants TLS or SASL, give its client properties with --client-con"
    ):
        reach(ExternalSpec(bootstrap_servers=spec.bootstrap_servers))
