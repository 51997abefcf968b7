"""What passes between a broker and its controller, and what does not.

A frame that is withheld is lost with its connection, and both sides try again: when it may pass, it does so soon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from lockstep.cluster.cluster import Cluster
from lockstep.network.conditions import Condition, Cut, Frames, Open
from lockstep.network.frames import Drop, Side
from lockstep.network.topology import Link
from lockstep.spec.cluster import Listener, Mode
from lockstep.stepper.driver.actions import Talk

REQUESTS_ONLY = Frames((Drop(apis=("Fetch",), side=Side.RESPONSE),))
"""A follower asks its leader, and is not answered."""

_ALTER_PARTITION = {
    Talk.ISR_REQUESTS: Drop(apis=("AlterPartition",), side=Side.REQUEST),
    Talk.ISR_ANSWERS: Drop(apis=("AlterPartition",), side=Side.RESPONSE),
}
_OF_KRAFT = _ALTER_PARTITION | {
    Talk.METADATA: Drop(apis=("Fetch", "FetchSnapshot"), side=Side.RESPONSE),
    Talk.HEARTBEATS: Drop(apis=("BrokerHeartbeat",), side=Side.REQUEST),
}
_TOLD = Drop(apis=("LeaderAndIsr", "UpdateMetadata", "StopReplica"), side=Side.REQUEST)


class Withholding:
    """What is withheld, of which brokers of a cluster, and the links where that is done."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._withheld: dict[int, frozenset[Talk]] = defaultdict(frozenset)

    def brokers(self, talk: Talk) -> frozenset[int]:
        """Of whom this is withheld."""
        return frozenset(broker for broker, withheld in self._withheld.items() if talk in withheld)

    def change(self, broker: int, talk: Talk, *, withheld: bool) -> None:
        """Withhold something of a broker, or do so no longer."""
        before = self._withheld[broker]
        self._withheld[broker] = before | {talk} if withheld else before - {talk}
        for link in self._cluster.links:
            if f"broker-{broker}" in (link.source, link.destination):
                condition = self._condition(link)
                if condition is not None and condition != self._cluster.links.condition(link):
                    self._cluster.links.impose(link, condition)

    def _condition(self, link: Link) -> Condition | None:
        """In which condition a link of the controller's should be; of all others nothing is said."""
        if link.listener is Listener.ZOOKEEPER:
            return Cut() if link.source in self._names(Talk.HEARTBEATS) else Open()
        if link.listener not in (Listener.CONTROLLER, Listener.CONTROL):
            return None
        rules = tuple(self._rules(link))
        return Frames(rules) if rules else Open()

    def _rules(self, link: Link) -> Iterator[Drop]:
        zookeeper = self._cluster.spec.mode is Mode.ZK
        for talk, rule in (_ALTER_PARTITION if zookeeper else _OF_KRAFT).items():
            if link.source in self._names(talk):
                yield rule
        if zookeeper and link.destination in self._names(Talk.METADATA):
            yield _TOLD

    def _names(self, talk: Talk) -> frozenset[str]:
        return frozenset(f"broker-{broker}" for broker in self.brokers(talk))
