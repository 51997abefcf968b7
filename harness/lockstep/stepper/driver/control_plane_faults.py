"""Control-plane faults: holds back one kind of message between a broker and the controller.

A message that is held back is lost together with its connection. Brokers and controllers retry, so the message arrives
soon after it is let pass.
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
"""A follower's Fetch requests reach the leader, and the responses are dropped."""

_ALTER_PARTITION = {
    Talk.ISR_REQUESTS: Drop(apis=("AlterPartition",), side=Side.REQUEST),
    Talk.ISR_ANSWERS: Drop(apis=("AlterPartition",), side=Side.RESPONSE),
}
_OF_KRAFT = _ALTER_PARTITION | {
    Talk.METADATA: Drop(apis=("Fetch", "FetchSnapshot"), side=Side.RESPONSE),
    Talk.HEARTBEATS: Drop(apis=("BrokerHeartbeat",), side=Side.REQUEST),
}
_TOLD = Drop(apis=("LeaderAndIsr", "UpdateMetadata", "StopReplica"), side=Side.REQUEST)


class ControlPlaneFaults:
    """The kinds of messages that are held back for each broker, imposed on the links that carry them.

    KRaft: the links of brokers to the controllers. ZooKeeper mode: the links of the controller to brokers
    (LeaderAndIsr, UpdateMetadata, StopReplica), of brokers to it (AlterPartition), and of brokers to ZooKeeper, where a
    cut takes the place of held-back heartbeats.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._withheld: dict[int, frozenset[Talk]] = defaultdict(frozenset)

    def brokers(self, talk: Talk) -> frozenset[int]:
        """Brokers for which this kind of message is held back."""
        return frozenset(broker for broker, withheld in self._withheld.items() if talk in withheld)

    def change(self, broker: int, talk: Talk, *, withheld: bool) -> None:
        """Hold back a kind of message for a broker, or let it pass again."""
        before = self._withheld[broker]
        self._withheld[broker] = before | {talk} if withheld else before - {talk}
        for link in self._cluster.links:
            if f"broker-{broker}" in (link.source, link.destination):
                condition = self._condition(link)
                if condition is not None and condition != self._cluster.links.condition(link):
                    self._cluster.links.impose(link, condition)

    def _condition(self, link: Link) -> Condition | None:
        """The condition to impose on a control-plane link; None for a link that carries other traffic."""
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
