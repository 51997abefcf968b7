"""Cutting replication of a real partition, while somebody writes to it and while nobody does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.faults import replication_cut
from lockstep.faults.injector import Injector
from lockstep.history.recorder import Recorder
from lockstep.network.topology import Link
from lockstep.plan.plan import Inject
from lockstep.plan.targets import LeaderOf
from lockstep.spec.cluster import Listener
from tests.faults.injected import last_fault, writing

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("fault-cluster"),
    pytest.mark.lockstep(overrides={"replica.lag.time.max.ms": "30000"}),
]


@pytest.fixture
def injector(lockstep_cluster: Cluster, tmp_path: Path) -> Iterator[Injector]:
    with Recorder(tmp_path, "a-run") as recorder:
        yield Injector(lockstep_cluster, recorder)


def test_the_leader_goes_on_and_its_followers_stand_still(lockstep_cluster: Cluster, injector: Injector) -> None:
    cluster = lockstep_cluster
    cluster.create_topic("cut", partitions=1, replication=3, config={})
    leader = cluster.leader("cut", 0).leader
    followers = {id_ for id_ in cluster.broker_ids if id_ != leader}

    with writing(cluster, "cut"):
        injector.inject(Inject(step=1, fault="replication-cut", target=LeaderOf(topic="cut", partition=0)))
        proof = (last_fault(cluster).phase("proof") or {})["detail"]
        ends = {id_: ask_log_end(cluster.direct(id_), "cut", 0, access=cluster.access()) for id_ in cluster.broker_ids}

        assert proof["leader_log_end"] > max(proof["follower_log_ends"].values())
        assert proof["follower_log_ends"] == {cluster.broker(id_).name: ends[id_] for id_ in followers}
        assert leader in proof["isr"]
        assert ends[leader] > max(ends[id_] for id_ in followers)
        cut = {link for link in cluster.links if cluster.links.is_cut(link)}
        assert cut == {
            Link(source=cluster.broker(id_).name, destination=cluster.broker(leader).name, listener=Listener.REPL)
            for id_ in followers
        }

        injector.heal_all()

    healed = last_fault(cluster).fields["detail"]
    assert healed["in_sync"] == sorted(cluster.broker(id_).name for id_ in cluster.broker_ids)
    assert healed["caught_up_with"] >= proof["leader_log_end"]
    assert not any(cluster.links.is_cut(link) for link in cluster.links)


def test_a_cut_that_nothing_shows_is_not_proven_and_mended_all_the_same(
    lockstep_cluster: Cluster, injector: Injector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication_cut, "BIT_S", 0.5)
    lockstep_cluster.create_topic("quiet", partitions=1, replication=3, config={})

    injector.inject(Inject(step=1, fault="replication-cut", target=LeaderOf(topic="quiet", partition=0)))

    proof = (last_fault(lockstep_cluster).phase("proof") or {})["detail"]
    assert proof["bit"] is False
    assert "the leader of quiet-0 to be ahead" in proof["why"]
    injector.heal_all()
    assert not any(lockstep_cluster.links.is_cut(link) for link in lockstep_cluster.links)
    assert not last_fault(lockstep_cluster).open
