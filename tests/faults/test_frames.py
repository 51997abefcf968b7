"""Single requests and responses of clients of a real cluster that meet with something, and what proves it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.errors import UsageError
from lockstep.faults.fault import get_fault
from lockstep.faults.injector import Injector
from lockstep.history.recorder import Recorder
from lockstep.network.conditions import Open
from lockstep.plan.plan import Inject
from lockstep.plan.targets import ClientSide, Target
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import ClusterSpec, Security
from lockstep.wait import wait_until
from tests.faults.injected import injected, last_fault, writing
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP

STILL_S = 1.0
STOPPING = ("hold-requests", "answer-error")
"""While these last, nothing is written; when they have ended, it is."""


@shapes(KRAFT, ZK)
@pytest.mark.parametrize(
    "fault", ["hold-requests", "hold-responses", "drop-responses", "delay-requests", "answer-error"]
)
def test_writers_meet_with_it(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any], fault: str) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    with writing(cluster, topic):
        wait_until(lambda: _log_end(cluster, topic) > 0, timeout_s=60, what="the first record")
        with injected(cluster, tmp_path, fault, leader_of(topic)) as seen:
            assert seen.bit["frames"] >= 1
            if fault in STOPPING:
                wait_until(
                    lambda: _stands_still(cluster, topic), timeout_s=60, what="what had passed before to be written"
                )
            during = _log_end(cluster, topic)
        wait_until(lambda: _log_end(cluster, topic) > during, timeout_s=60, what="records to be written again")
    assert seen.healed["frames"] >= seen.bit["frames"]
    assert seen.healed["mended"] == 2, "one link for each side of clients"
    assert set(cluster.links.conditions().values()) == {Open()}


@pytest.mark.parametrize("target", [ClientSide(), None], ids=["nobody", "somebody else"])
def test_frames_that_never_come_prove_nothing(
    lockstep_clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target | None
) -> None:
    monkeypatch.setattr("lockstep.faults.frames.BIT_S", 1.0)
    cluster = lockstep_clusters.get()
    written, named = new_topic(cluster), new_topic(cluster)
    client_id = {"client_id": "nobody"} if target else {}
    with writing(cluster, written), Recorder(tmp_path, "a-run") as recorder:
        injector = Injector(cluster, recorder)
        injector.inject(Inject(step=1, fault="hold-requests", target=target or leader_of(named), settings=client_id))
        detail = (last_fault(cluster).phase("proof") or {})["detail"]
        injector.heal_all()
    assert detail["bit"] is False
    assert "a Produce frame to come by clients" in detail["why"]


@pytest.mark.parametrize(
    ("fault", "settings", "sentence"),
    [
        ("hold-requests", {"api": "produce"}, "Kafka has no api produce"),
        ("delay-requests", {"ms": 0}, "delayed by 1 to 60000 ms, not 0"),
        ("answer-error", {"api": "Metadata"}, "only a broker can answer Metadata"),
        ("answer-error", {"error": "NO_SUCH"}, "Kafka has no error NO_SUCH"),
        ("answer-error", {"error": "NONE"}, "Kafka has no error NONE"),
    ],
)
def test_settings_that_make_no_sense(fault: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        get_fault(fault).require(ClientSide(), settings)


def test_frames_under_tls_cannot_be_read() -> None:
    reason = get_fault("hold-requests").reason(ClusterSpec(security=Security(tls=True)), "process")
    assert reason == "needs links without TLS, to read what they carry"


def _stands_still(cluster: Cluster, topic: str) -> bool:
    """Whether nothing is written for as long as a writer would need for fifty records."""
    before = _log_end(cluster, topic)
    time.sleep(STILL_S)
    return _log_end(cluster, topic) == before


def _log_end(cluster: Cluster, topic: str) -> int:
    return ask_log_end(cluster.direct(cluster.leader(topic, 0).leader), topic, 0)
