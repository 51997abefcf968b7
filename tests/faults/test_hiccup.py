"""Brokers of a real cluster that do not answer for a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import FaultError, UsageError
from lockstep.faults.fault import get_fault
from lockstep.plan.targets import OneBroker
from lockstep.pytest_plugin import Clusters
from tests.faults.injected import injected, last_fault
from tests.faults.shapes import GROUP, KRAFT, ZK, leader_of, new_topic, shapes

pytestmark = GROUP


@shapes(KRAFT, ZK)
def test_a_leader_is_silent_and_still_leads(lockstep_clusters: Clusters, tmp_path: Path, shape: dict[str, Any]) -> None:
    cluster = lockstep_clusters.get(**shape)
    topic = new_topic(cluster)
    before = cluster.leader(topic, 0)

    with injected(cluster, tmp_path, "hiccup", leader_of(topic), ms=600) as seen:
        assert seen.bit["paused_ms"] >= 600
        assert seen.bit["answered_meanwhile"] is False
        assert seen.bit["session_kept"] is True
        assert cluster.leader(topic, 0).leader_epoch == before.leader_epoch

    assert f"{topic}-0" in seen.healed["in_isr_of"]
    assert last_fault(cluster).fields["target_resolved"] == f"broker-{before.leader}"


def test_what_may_cost_a_session_is_no_hiccup(lockstep_clusters: Clusters) -> None:
    fault = get_fault("hiccup").instance(lockstep_clusters.get(), OneBroker(id=1), {"ms": 1500})

    with pytest.raises(FaultError, match="may cost broker-1 its session of 2000 ms: give it up to 1000 ms"):
        fault.inject()


def test_no_hiccup_lasts_for_an_hour() -> None:
    with pytest.raises(UsageError, match="a hiccup lasts from 100 to 60000 ms"):
        get_fault("hiccup").require(OneBroker(id=1), {"ms": 3_600_000})
