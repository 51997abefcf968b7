"""Links that faults impair: the links of a target, whether requests use them, what they carry, and their recovery."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from weakref import WeakKeyDictionary

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof
from lockstep.faults.support.membership import returned
from lockstep.faults.support.roles import agreed_controller, node_of
from lockstep.network.conditions import (
    BlackHole,
    Condition,
    Cut,
    Delay,
    Frames,
    HalfOpen,
    OneWay,
    Open,
    Reset,
    Throttle,
)
from lockstep.network.links import Links, Traffic
from lockstep.network.topology import Link
from lockstep.plan.targets import ActiveController, ClientSide, Target
from lockstep.spec.cluster import CLIENT_LISTENERS, Listener, Mode
from lockstep.wait import WaitTimeout, wait_until

USED_S = 1.5
"""How long a link is watched for use: heartbeats of a session and fetches are more frequent than that."""
FIRST_USE_S = 10.0
STILL_S = 1.5
SILENT_S = 15.0
AGREED_S = 60.0

SEVERITY = (Open, HalfOpen, Delay, Throttle, Frames, OneWay, Reset, BlackHole, Cut)
"""A link that one fault has made silent does not speak because another one makes it slow."""


class Imposition:
    """Conditions on some links for as long as one fault lasts.

    Where faults share a link, it is in the worst of their conditions, and mended when the last of them has ended.
    """

    def __init__(self, links: Links, conditions: Mapping[Link, Condition]) -> None:
        self._links = links
        self.conditions = dict(conditions)
        self._since: dict[Link, Traffic] = {}
        self.used: list[Link] = []
        """Those that carried something just before the conditions began."""

    def begin(self) -> Proof:
        self.used = in_use(self._links, self.conditions)
        for link in self.conditions:
            _held(self._links, link).append(self)
            self._links.impose(link, _worst(self._links, link))
        self._since = self._links.traffic()
        kinds = dict.fromkeys(map(str, self.conditions.values()))
        return {
            "condition": ", ".join(kinds),
            "links": [str(link) for link in self.conditions],
            "in_use": [str(link) for link in self.used],
        }

    def require_use(self) -> None:
        """Refuse to prove anything by links that carried nothing before either."""
        if not self.used:
            names = ", ".join(map(str, self.conditions)) or "any link"
            raise FaultError(f"no connection used {names}, so nothing shows what became of it")

    def in_force(self) -> list[Link]:
        """The links that were in use and are in no worse condition, by another fault, than this one asks for."""
        self.require_use()
        own = [link for link in self.used if self._links.condition(link) == self.conditions[link]]
        if not own:
            raise FaultError(f"another fault has {_names(self.used)} in a worse condition, which hides this one")
        return own

    def silent(self) -> Proof:
        """Wait until the links that were in use carry nothing back, for as long as it took to see that they did."""
        self.require_use()
        seen = self._back()
        since = time.monotonic()

        def still() -> bool:
            nonlocal seen, since
            now = self._back()
            if now != seen:
                seen, since = now, time.monotonic()
            return time.monotonic() - since >= STILL_S

        wait_until(still, timeout_s=SILENT_S, what=f"{_names(self.used)} to carry nothing", interval_s=0.1)
        return {"silent": [str(link) for link in self.used], "silent_for_ms": int(STILL_S * 1000)}

    def sent(self) -> list[Link]:
        """The links that have carried something to their destination since the conditions began."""
        now = self._links.traffic()
        return [link for link in self.conditions if now[link].to_destination > self._since[link].to_destination]

    def end(self) -> Proof:
        """Undo it, once or more often; what other faults still ask for stays or is back."""
        left: dict[Link, Condition] = {}
        for link in self.conditions:
            holders = _held(self._links, link)
            if self in holders:
                holders.remove(self)
            left[link] = _worst(self._links, link)
            self._links.impose(link, left[link])
        now = self._links.conditions()
        if wrong := [link for link, condition in left.items() if now[link] != condition]:
            raise FaultError(f"{_names(wrong)} could not be mended")
        kept = [str(link) for link, condition in left.items() if condition != Open()]
        return {"mended": len(left) - len(kept)} | ({"left_to_other_faults": kept} if kept else {})

    def _back(self) -> dict[Link, int]:
        now = self._links.traffic()
        return {link: now[link].to_source for link in self.used}


_impositions: WeakKeyDictionary[Links, dict[Link, list[Imposition]]] = WeakKeyDictionary()


def _held(links: Links, link: Link) -> list[Imposition]:
    """The impositions on a link, in the order in which they came."""
    return _impositions.setdefault(links, {}).setdefault(link, [])


def _worst(links: Links, link: Link) -> Condition:
    """Of all that are on a link; of two that are as bad, the later one."""
    asked: list[Condition] = [holder.conditions[link] for holder in reversed(_held(links, link))]
    return max(asked, key=lambda condition: SEVERITY.index(type(condition)), default=Open())


def in_use(links: Links, watched: Collection[Link]) -> list[Link]:
    """The links on which something comes back within a moment; where all rest, those that end it."""
    before = links.traffic()
    used: list[Link] = []

    def so_many_used(wanted: int) -> bool:
        now = links.traffic()
        used[:] = [link for link in watched if now[link].to_source > before[link].to_source]
        return len(used) >= wanted

    with suppress(WaitTimeout):  # some rest: that is what was to be found out
        wait_until(lambda: so_many_used(len(watched)), timeout_s=USED_S, what="every link to be used", interval_s=0.1)
    with suppress(WaitTimeout):  # clients stand still for a while when another fault took their broker
        wait_until(lambda: so_many_used(1), timeout_s=FIRST_USE_S, what="any link to be used", interval_s=0.1)
    return used


def links_at(cluster: Cluster, target: Target) -> list[Link]:
    """The links that a role lives by: a broker's replication, a controller's metadata or session, a side's clients."""
    if isinstance(target, ClientSide):
        brokers = cluster.broker_ids if target.broker is None else (target.broker,)
        names = {cluster.broker(id_).name for id_ in brokers}
        return _those(cluster, lambda link: link.source == target.side and link.destination in names)
    name = node_of(cluster, target).name
    if not isinstance(target, ActiveController):
        return _those(cluster, lambda link: link.listener is Listener.REPL and name in (link.source, link.destination))
    if cluster.spec.mode is Mode.ZK:
        return _those(cluster, lambda link: link.listener is Listener.ZOOKEEPER and link.source == name)
    return _those(cluster, lambda link: link.listener is Listener.CONTROLLER and link.destination == name)


def between(cluster: Cluster, some: Collection[str], others: Collection[str]) -> list[Link]:
    """Every link from one of some nodes to one of the others, and back; those of clients are none of them."""
    return _those(
        cluster,
        lambda link: (
            (link.source in some and link.destination in others) or (link.source in others and link.destination in some)
        ),
    )


def outward(cluster: Cluster, node: Node, listeners: Collection[Listener]) -> list[Link]:
    """The links that a node opens to such listeners of others."""
    return _those(cluster, lambda link: link.source == node.name and link.listener in listeners)


def brokers_at(cluster: Cluster, links: Collection[Link]) -> list[Node]:
    """The brokers at either end of some links."""
    ends = {end for link in links for end in (link.source, link.destination)}
    return [node for node in cluster.nodes.values() if node.name in ends and node.spec.is_broker]


def require_running(nodes: Iterable[Node]) -> None:
    """Refuse to cut off a node that is down already: the fault would have no visible effect."""
    for node in nodes:
        if node.state() is not NodeState.RUNNING:
            raise FaultError(f"{node.name} is {node.state()} already")


def recovered(cluster: Cluster, nodes: Iterable[Node]) -> Proof:
    """Wait until nodes serve again and agree on the controller; nodes that another fault still hits are only named."""
    began_ns = time.monotonic_ns()
    still_hit = {node.name for node in cluster.nodes.values() if node.incarnation and _is_hit(cluster, node)}
    back = [node for node in nodes if node.name not in still_hit]
    for node in back:
        returned(cluster, node)
    proof: Proof = {"back": [node.name for node in back]}
    if still_hit:
        proof["still_hit"] = sorted(still_hit)
    else:
        proof["active_controller"] = wait_until(
            lambda: agreed_controller(cluster), timeout_s=AGREED_S, what="all brokers to name the same controller"
        )
    return proof | {"back_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000}


def _is_hit(cluster: Cluster, node: Node) -> bool:
    return node.state() is not NodeState.RUNNING or any(
        condition != Open() and node.name in (link.source, link.destination) and link.listener not in CLIENT_LISTENERS
        for link, condition in cluster.links.conditions().items()
    )


def _those(cluster: Cluster, wanted: Callable[[Link], bool]) -> list[Link]:
    return [link for link in cluster.links if wanted(link)]


def _names(links: Iterable[Link]) -> str:
    return ", ".join(map(str, links))
