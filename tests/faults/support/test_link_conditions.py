"""Conditions that several faults impose on the same link of a real cluster, ended in any order."""

from __future__ import annotations

import pytest

from lockstep.errors import FaultError
from lockstep.faults.support import link_conditions
from lockstep.faults.support.link_conditions import Imposition, links_at
from lockstep.network.conditions import BlackHole, Delay, Open, Throttle
from lockstep.plan.targets import ClientSide, OneBroker
from lockstep.pytest_plugin import Clusters
from tests.faults.shapes import GROUP, new_topic

pytestmark = GROUP

IDLE = ClientSide(side="clients-b", broker=1)


@pytest.mark.long
def test_a_silent_link_does_not_speak_because_another_fault_makes_it_slow(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get()
    (link,) = links_at(cluster, IDLE)
    silence, delay = Imposition(cluster.links, {link: BlackHole()}), Imposition(cluster.links, {link: Delay(10)})
    longer = Imposition(cluster.links, {link: Delay(20)})
    seen = []
    for act in (delay.begin, silence.begin, longer.begin, silence.end, delay.end, longer.end, longer.end):
        act()
        seen.append(cluster.links.condition(link))

    assert seen == [Delay(10), BlackHole(), BlackHole(), Delay(20), Delay(20), Open(), Open()]


def test_a_link_that_nobody_uses_proves_nothing(lockstep_clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_conditions, "FIRST_USE_S", 2.0)
    cluster = lockstep_clusters.get()
    imposition = Imposition(cluster.links, dict.fromkeys(links_at(cluster, IDLE), BlackHole()))
    try:
        assert imposition.begin()["in_use"] == []
        with pytest.raises(FaultError, match="no connection used clients-b > broker-1 CLIENT_B, so nothing shows"):
            imposition.silent()
    finally:
        imposition.end()


def test_what_another_fault_made_worse_proves_nothing(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get()
    new_topic(cluster)  # so that its followers fetch
    links = {link for id_ in cluster.broker_ids for link in links_at(cluster, OneBroker(id=id_))}
    slow = Imposition(cluster.links, dict.fromkeys(links, Delay(10)))
    worse: Imposition | None = None
    try:
        slow.begin()
        first, *others = slow.in_force()
        worse = Imposition(cluster.links, {first: Throttle(1_000)})
        worse.begin()
        assert slow.in_force() == others
        worse.end()
        worse = Imposition(cluster.links, dict.fromkeys(links, Throttle(1_000)))
        worse.begin()
        with pytest.raises(FaultError, match=r"another fault has .* in a worse condition"):
            slow.in_force()
    finally:
        if worse:
            worse.end()
        slow.end()
