"""What operators do to a cluster in use, done at the wrong moment: real elections, moves, settings and topics.

Each on a ZooKeeper and on a KRaft cluster; one of the two is for test-all.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from lockstep.clients.wire.configs import Resource, ResourceType, ask_settings
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.clients.wire.reassignments import reassign
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError, UsageError
from lockstep.faults import unclean_election
from lockstep.faults.fault import get_fault
from lockstep.faults.injector import Injector
from lockstep.faults.support.administration import administer
from lockstep.history.recorder import Recorder
from lockstep.plan.plan import Inject
from lockstep.plan.targets import LeaderOf, OneTopic, WholeCluster
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until
from tests.faults.injected import injected, last_fault, writing

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]

zk_first = pytest.mark.parametrize("cluster", ["zk", pytest.param("kraft", marks=pytest.mark.long)], indirect=True)
kraft_first = pytest.mark.parametrize("cluster", ["kraft", pytest.param("zk", marks=pytest.mark.long)], indirect=True)
both = pytest.mark.parametrize("cluster", ["kraft", "zk"], indirect=True)


@pytest.fixture
def cluster(lockstep_clusters: Clusters, request: pytest.FixtureRequest) -> Cluster:
    return lockstep_clusters.get() if request.param == "kraft" else lockstep_clusters.get(mode=request.param)


def a_topic(
    cluster: Cluster, *, partitions: int = 1, replication: int = 3, config: dict[str, str] | None = None
) -> str:
    name = f"administered-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, partitions=partitions, replication=replication, config=config or {})
    return name


@both
def test_leadership_goes_back_to_the_first_replica(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster)
    before = cluster.leader(topic, 0)
    reverse(cluster, topic)
    with injected(cluster, tmp_path, "preferred-election", LeaderOf(topic=topic, partition=0)) as seen:
        assert seen.bit["leader_before"] == before.leader
        assert seen.bit["leader_after"] == before.replicas[-1] == cluster.leader(topic, 0).leader
        assert seen.bit["leader_epoch_after"] > seen.bit["leader_epoch_before"]
    assert seen.healed["leader"] == before.replicas[-1]


def reverse(cluster: Cluster, topic: str) -> None:
    """Another replica is preferred from now on; the leader stays."""
    replicas = tuple(reversed(cluster.leader(topic, 0).replicas))
    administer(cluster, lambda address, access: reassign(address, topic, 0, replicas, access=access), "the new order")
    wait_until(lambda: cluster.leader(topic, 0).replicas == replicas, timeout_s=30, what="the new order to be known")


@kraft_first
def test_where_the_first_replica_leads_another_becomes_the_first(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster)
    before = cluster.leader(topic, 0)
    assert before.leader == before.replicas[0]
    with injected(cluster, tmp_path, "preferred-election", LeaderOf(topic=topic, partition=0)) as seen:
        assert seen.bit["leader_after"] != before.leader
        assert seen.bit["leader_after"] == cluster.leader(topic, 0).replicas[0]
    assert cluster.leader(topic, 0).replicas == before.replicas
    assert seen.healed["leader"] == seen.bit["leader_after"]


@kraft_first
def test_where_nobody_else_could_lead_there_is_nothing_to_elect(cluster: Cluster) -> None:
    topic = a_topic(cluster, replication=1)
    fault = get_fault("preferred-election").instance(cluster, LeaderOf(topic=topic, partition=0), {})
    with pytest.raises(FaultError, match=r"has no replica but broker-\d that could lead"):
        fault.inject()
    assert fault.heal()["leader"] == cluster.leader(topic, 0).leader


@zk_first
def test_a_replica_moves_to_another_broker_and_back(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster, replication=2)
    before = cluster.leader(topic, 0).replicas
    (spare,) = set(cluster.broker_ids) - set(before)
    with (
        writing(cluster, topic),
        injected(cluster, tmp_path, "reassignment", LeaderOf(topic=topic, partition=0)) as seen,
    ):
        assert seen.bit["replicas"] == [before[0], spare] == list(cluster.leader(topic, 0).replicas)
        assert seen.bit["isr"] == sorted(seen.bit["replicas"])
        assert seen.bit["moving"] is False
    assert seen.healed["replicas"] == list(before) == list(cluster.leader(topic, 0).replicas)


@kraft_first
def test_where_every_broker_has_a_replica_their_order_is_reversed(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster)
    before = cluster.leader(topic, 0).replicas
    with injected(cluster, tmp_path, "reassignment", LeaderOf(topic=topic, partition=0)) as seen:
        assert seen.bit["replicas"] == list(reversed(before))
    assert seen.healed["replicas"] == list(before)


@kraft_first
def test_a_setting_of_a_topic_is_in_force_on_every_broker(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster, config={"max.message.bytes": "500000"})
    target = OneTopic(topic=topic)
    resource = Resource(type=ResourceType.TOPIC, name=topic)
    with injected(cluster, tmp_path, "config-change", target, name="max.message.bytes", value="400000") as seen:
        assert seen.bit["value_before"] == "500000"
        assert seen.bit["value_after"] == "400000"
        assert seen.bit["in_force_on"] == list(cluster.broker_ids)
        assert ask_settings(cluster.direct(1), resource)["max.message.bytes"].own == "400000"
    assert seen.healed["value"] == ask_settings(cluster.direct(1), resource)["max.message.bytes"].own == "500000"


@zk_first
def test_a_setting_of_all_brokers_is_forgotten_again(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "config-change", WholeCluster()) as seen:
        assert seen.bit["setting"] == "log.segment.bytes"
        assert seen.bit["in_force_on"] == list(cluster.broker_ids)
    resource = Resource(type=ResourceType.BROKER, name="1")
    now = ask_settings(cluster.direct(1), resource, ("log.segment.bytes",))["log.segment.bytes"]
    assert now.own is None
    assert now.value == seen.healed["value"] == seen.bit["value_before"]


@kraft_first
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"name": "min.insync.replicas", "value": "1"}, r"fewer than that would void"),
        ({"name": "min.insync.replicas", "value": "2"}, r"is 2 already"),
        ({"name": "no.such.setting", "value": "2"}, r"no broker tells of a setting"),
    ],
)
def test_a_setting_that_cannot_be_changed_is_refused(cluster: Cluster, settings: dict[str, str], why: str) -> None:
    target = OneTopic(topic=a_topic(cluster, config={"min.insync.replicas": "2"}))
    fault = get_fault("config-change").instance(cluster, target, settings)
    with pytest.raises(FaultError, match=why):
        fault.inject()
    assert fault.heal()["changed"] is False


def test_a_setting_that_decides_what_is_promised_is_refused_in_the_plan() -> None:
    kind = get_fault("config-change")
    with pytest.raises(UsageError, match=r"decides what is promised"):
        kind.require(OneTopic(topic="orders"), {"name": "retention.ms", "value": "1000"})
    with pytest.raises(UsageError, match=r"given together"):
        kind.require(OneTopic(topic="orders"), {"name": "segment.ms"})


@both
def test_a_named_topic_grows_and_stays_grown(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster, partitions=2)
    with injected(cluster, tmp_path, "partition-growth", OneTopic(topic=topic), more=2) as seen:
        assert (seen.bit["partitions_before"], seen.bit["partitions_after"]) == (2, 4)
        assert seen.bit["led_by"] == {str(p): cluster.leader(topic, p).leader for p in (2, 3)}
    assert seen.healed["undone"] is False
    assert seen.healed["in_sync"] == [2, 3]
    cluster.wait_in_sync(topic, 2)


@kraft_first
def test_a_topic_of_the_faults_own_is_gone_afterwards(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "partition-growth", WholeCluster()) as seen:
        assert seen.bit["partitions_after"] == 2
    assert seen.healed["deletion"] == "done"
    assert seen.healed["unknown_to"] == list(cluster.broker_ids)
    assert not any(view.partitions for view in cluster.ask_all((seen.bit["topic"],)).values())


@both
def test_a_topic_made_again_is_another_one(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster, partitions=2, config={"max.message.bytes": "500000"})
    before = cluster.leader(topic, 0).topic_id
    with writing(cluster, topic):
        wait_until(lambda: log_end(cluster, topic) > 0, timeout_s=30, what="a record in the log")
    with injected(cluster, tmp_path, "topic-recreate", OneTopic(topic=topic)) as seen:
        assert seen.bit["topic_id_before"] == before
        assert seen.bit["topic_id_after"] == cluster.leader(topic, 1).topic_id != before
        assert log_end(cluster, topic) == 0
    assert seen.healed["undone"] is False
    resource = Resource(type=ResourceType.TOPIC, name=topic)
    assert ask_settings(cluster.direct(1), resource)["max.message.bytes"].own == "500000"


def log_end(cluster: Cluster, topic: str) -> int:
    return ask_log_end(cluster.direct(cluster.leader(topic, 0).leader), topic, 0)


@kraft_first
def test_a_leader_from_outside_the_isr_has_less(cluster: Cluster, tmp_path: Path) -> None:
    with injected(cluster, tmp_path, "unclean-election", WholeCluster()) as seen:
        assert seen.bit["leader_after"] != seen.bit["leader_before"]
        assert seen.bit["leader_after"] not in seen.bit["isr_before_election"]
        assert seen.bit["log_end_after"] < seen.bit["log_end_before"]
    assert seen.healed["back_after_ms"].keys() == {cluster.broker(id_).name for id_ in cluster.broker_ids}
    assert seen.healed["deletion"] == "done"
    cluster.wait_all_in_sync()


@pytest.mark.long
@zk_first
def test_what_clients_wrote_to_the_last_leader_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    topic = a_topic(cluster, config={"min.insync.replicas": "2"})
    target = LeaderOf(topic=topic, partition=0)
    with writing(cluster, topic):
        wait_until(lambda: log_end(cluster, topic) > 0, timeout_s=30, what="a record in the log")
        with injected(cluster, tmp_path, "unclean-election", target) as seen:
            assert seen.bit["leader_after"] not in seen.bit["isr_before_election"]
            assert 0 < seen.bit["log_end_after"] < seen.bit["log_end_before"]
    assert seen.healed["undone"] is False


@pytest.mark.long
@kraft_first
def test_an_unclean_election_that_loses_nothing_is_not_proven(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unclean_election, "WRITTEN_S", 0.5)
    target = LeaderOf(topic=a_topic(cluster), partition=0)
    with Recorder(tmp_path, "a-run") as recorder:
        injector = Injector(cluster, recorder)
        injector.inject(Inject(step=1, fault="unclean-election", target=target))
        proof = (last_fault(cluster).phase("proof") or {})["detail"]
        injector.heal_all()
    assert proof["bit"] is False
    assert "no record was written" in proof["why"]
    cluster.wait_all_in_sync()


def test_combined_nodes_cannot_elect_when_most_are_stopped() -> None:
    combined = ClusterSpec.of(mode="kraft-combined")
    assert "most combined nodes" in (get_fault("unclean-election").reason(combined, "process") or "")
    assert get_fault("unclean-election").reason(ClusterSpec.of(), "process") is None
