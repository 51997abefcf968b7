"""Clients that cannot reach a broker, or any, while the nodes reach each other and nothing is wrong with them."""

from __future__ import annotations

from lockstep.clients.wire.metadata import ask_metadata
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, links_at
from lockstep.faults.support.membership import answers
from lockstep.faults.support.roles import node_of
from lockstep.network.conditions import BlackHole, Open
from lockstep.network.topology import Link
from lockstep.plan.targets import ClientSide, LeaderOf
from lockstep.spec.cluster import CLIENT_LISTENERS
from lockstep.wait import wait_until

BACK_S = 30.0


@fault(
    name="client-cut-off",
    summary="Cut one side's clients off from one broker or from all, or all clients from a partition's leader",
    targets=(ClientSide, LeaderOf),
)
class ClientCutOff:
    """Proven by client links that were in use and are silent, while brokers answer requests that bypass the links."""

    def __init__(self, cluster: Cluster, target: ClientSide | LeaderOf) -> None:
        self._cluster = cluster
        self._links = links_at(cluster, target) if isinstance(target, ClientSide) else _clients_of(cluster, target)
        self._imposition = Imposition(cluster.links, dict.fromkeys(self._links, BlackHole()))

    @property
    def resolved(self) -> str:
        return ", ".join(map(str, self._links))

    def inject(self) -> Proof:
        return self._imposition.begin()

    def bit(self) -> Proof:
        silent = self._imposition.silent()
        brokers = {link.destination for link in self._imposition.used}
        if mute := sorted(name for name in brokers if not answers(self._cluster, self._cluster.nodes[name])):
            raise FaultError(f"{', '.join(mute)} answers no request: that is more than clients cut off")
        return silent | {"answer_past_them": sorted(brokers)}

    def heal(self) -> Proof:
        """Proven by requests through the links, which every running broker answers again."""
        mended = self._imposition.end()
        conditions = self._cluster.links.conditions()
        open_again = [link for link in self._links if conditions[link] == Open() and self._runs(link)]
        for link in open_again:
            self._wait_answered(link)
        return mended | {"answered_through": [str(link) for link in open_again]}

    def _runs(self, link: Link) -> bool:
        return self._cluster.nodes[link.destination].state() is NodeState.RUNNING

    def _wait_answered(self, link: Link) -> None:
        address = self._cluster.links.address(link)
        wait_until(
            lambda: ask_metadata(address, access=self._cluster.access(link.listener)),
            timeout_s=BACK_S,
            what=f"an answer through {link}",
            retry_on=(OSError,),
        )


def _clients_of(cluster: Cluster, target: LeaderOf) -> list[Link]:
    name = node_of(cluster, target).name
    return [link for link in cluster.links if link.destination == name and link.listener in CLIENT_LISTENERS]
