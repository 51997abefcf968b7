"""Conditions that several faults impose on the same link of a real cluster, ended in any order."""

from __future__ import annotations

import pytest

from harness.errors import FaultError
from harness.faults.wires import Imposition, links_at
from harness.network.conditions import BlackHole, Delay, Open
from harness.pytest_plugin import Clusters
from harness.targets import ClientSide
from tests.faults.shapes import GROUP

pytestmark = GROUP

IDLE = ClientSide(side="clients-b", broker=1)


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_a_link_suffers_from_whoever_came_last_until_all_have_ended(
    lockstep_clusters: Clusters, first_ends_first: bool
) -> None:
    cluster = lockstep_clusters.get()
    (link,) = links_at(cluster, IDLE)
    first, second = Imposition(cluster.links, {link: BlackHole()}), Imposition(cluster.links, {link: Delay(10)})
    first.begin()
    second.begin()
    assert cluster.links.condition(link) == Delay(10)

    if first_ends_first:
        assert first.end()["left_to_other_faults"] == [str(link)]
        assert cluster.links.condition(link) == Delay(10)
        assert second.end() == {"mended": 1}
    else:
        assert second.end()["left_to_other_faults"] == [str(link)]
        assert cluster.links.condition(link) == BlackHole()
        assert first.end() == {"mended": 1}
    assert cluster.links.condition(link) == Open()


def test_a_link_that_nobody_uses_proves_nothing(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get()
    imposition = Imposition(cluster.links, dict.fromkeys(links_at(cluster, IDLE), BlackHole()))
    try:
        assert imposition.begin()["in_use"] == []
        with pytest.raises(FaultError, match="nobody used clients-b > broker-1 CLIENT_B, so nothing shows"):
            imposition.silent()
    finally:
        imposition.end()
