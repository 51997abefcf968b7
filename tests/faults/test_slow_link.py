"""Links of a real cluster that take their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import UsageError
from lockstep.faults.fault import get_fault
from lockstep.faults.injector import Injector
from lockstep.faults.support import link_conditions
from lockstep.history.recorder import Recorder
from lockstep.network.conditions import Open
from lockstep.plan.plan import Inject
from lockstep.plan.targets import ActiveController, ClientSide, OneBroker
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec, Security
from tests.faults.injected import injected, last_fault, writing
from tests.faults.shapes import GROUP, KRAFT, SASL, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK, SASL)
def test_replication_of_a_leader_takes_longer(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    leader = cluster.broker(cluster.leader(topic, 0).leader).name

    with injected(cluster, tmp_path, "latency", leader_of(topic), ms=150) as seen:
        assert leader in seen.bit["measured_on"]
        assert seen.bit["measured_on"].endswith(" REPL")
        assert seen.bit["round_trip_ms"] >= 300
        assert seen.bit["round_trip_past_ms"] < seen.bit["round_trip_ms"]

    assert seen.healed["round_trip_after_ms"] < 300


@shapes(ZK, KRAFT)
def test_what_a_controller_lives_by_takes_longer(
    lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]
) -> None:
    cluster = lockstep_clusters.get(**shape)

    with injected(cluster, tmp_path, "latency", ActiveController(), ms=100) as seen:
        assert seen.bit["measured_on"].endswith((" CONTROLLER", " ZOOKEEPER"))
        assert seen.bit["round_trip_ms"] >= 200

    assert set(cluster.links.conditions().values()) == {Open()}


@shapes(KRAFT, ZK)
def test_what_a_link_takes_varies(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)

    with injected(cluster, tmp_path, "jitter", leader_of(topic), ms=120, jitter_ms=80, seed=3) as seen:
        trips = seen.bit["round_trips_ms"]
        assert min(trips) >= 80
        assert max(trips) - min(trips) >= 80

    assert seen.healed["round_trip_after_ms"] < 120


@shapes(KRAFT, ZK)
def test_many_bytes_take_long(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)

    with (
        writing(cluster, topic),
        injected(cluster, tmp_path, "bandwidth", ClientSide(), kb_per_s=40) as seen,
    ):
        assert seen.bit["measured_on"].startswith("clients > ")
        assert seen.bit["round_trip_ms"] >= 500

    assert seen.healed["round_trip_after_ms"] < 500


def test_on_a_link_that_nobody_uses_nothing_is_proven(
    lockstep_clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_conditions, "FIRST_USE_S", 2.0)
    cluster = lockstep_clusters.get()
    with Recorder(tmp_path, "a-run") as recorder:
        injector = Injector(cluster, recorder)
        injector.inject(Inject(step=1, fault="latency", target=ClientSide(side="clients-b", broker=2)))
        detail = (last_fault(cluster).phase("proof") or {})["detail"]
        injector.heal_all()

    assert detail["bit"] is False
    assert "no connection used clients-b > broker-2 CLIENT_B" in detail["why"]
    assert not last_fault(cluster).open


@pytest.mark.parametrize(
    ("fault", "settings", "sentence"),
    [
        ("latency", {"ms": 0}, "latency: a delay lasts from 1 to 10000 ms, not 0"),
        ("jitter", {"ms": 10, "jitter_ms": 20}, "varies by 1 ms up to all of it, not 10 ms by 20"),
        ("bandwidth", {"kb_per_s": 0}, "throttled to 1 to 500 kB/s, not 0"),
        ("latency", {"kb_per_s": 1}, "latency has no kb_per_s: it has ms"),
    ],
)
def test_settings_that_make_no_sense(fault: str, settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        get_fault(fault).require(OneBroker(id=1), settings)


def test_round_trips_cannot_be_measured_everywhere() -> None:
    kind = get_fault("latency")

    assert kind.reason(ClusterSpec(security=Security(tls=True)), "process") == (
        "needs links without TLS, to measure round trips"
    )
    assert kind.reason(ClusterSpec(), "docker") == "works on process only"
