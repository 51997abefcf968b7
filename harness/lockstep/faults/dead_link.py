"""Links that carry nothing: silent, reset, or half-open, where one end never learns that the other has closed."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, brokers_at, links_at, recovered
from lockstep.faults.support.round_trip import MEASURED_ON, HungUpOn
from lockstep.network.conditions import BlackHole, Condition, HalfOpen, Reset
from lockstep.plan.targets import ActiveController, ClientSide, FollowerOf, LeaderOf, OneBroker, Target

UNTOLD_S = 2.0
TOLD_S = 10.0


class _DeadLink:
    """Proven by links that were in use and carry nothing any more; healed once the brokers at their ends recover."""

    CONDITION: Condition

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._links = links_at(cluster, target)
        self._imposition = Imposition(cluster.links, dict.fromkeys(self._links, self.CONDITION))

    @property
    def resolved(self) -> str:
        return ", ".join(map(str, self._links))

    def inject(self) -> Proof:
        return self._imposition.begin()

    def bit(self) -> Proof:
        return self._imposition.silent()

    def heal(self) -> Proof:
        return self._imposition.end() | recovered(self._cluster, brokers_at(self._cluster, self._links))


@fault(
    name="silence",
    summary="Let nothing through a broker's replication links, either way, not even the end of a connection",
    targets=(LeaderOf, FollowerOf, OneBroker),
    takes=1,
)
class Silence(_DeadLink):
    """A black hole for replication alone: the broker keeps its session and its clients."""

    CONDITION = BlackHole()


@fault(
    name="reset",
    summary="End every connection on the links of a broker's replication or of clients with RST, and each new one",
    targets=(LeaderOf, FollowerOf, OneBroker, ClientSide),
    takes=1,
)
class ResetLinks(_DeadLink):
    """Unlike with `silence`, both ends see the connection fail at once, and reconnect."""

    CONDITION = Reset()


@fault(
    name="half-open",
    summary="Hide from each client or broker that its peer has closed the connection: it stays open, and silent",
    targets=(LeaderOf, FollowerOf, OneBroker, ActiveController, ClientSide),
    backends=MEASURED_ON,
)
class HalfOpenLinks(_DeadLink):
    """Links work until the destination closes a connection or dies: proven by a connection that it is made to close."""

    CONDITION = HalfOpen()
    _untold: HungUpOn | None = None

    def bit(self) -> Proof:
        self._imposition.require_use()
        link = self._imposition.used[0]
        past = HungUpOn(self._cluster.nodes[link.destination].direct)
        try:
            if not past.told(TOLD_S):
                raise FaultError(
                    f"{link.destination} keeps a connection open on nonsense, so there is no close to hide"
                )
        finally:
            past.close()
        self._untold = HungUpOn(self._cluster.links.address(link))
        if self._untold.told(UNTOLD_S):
            raise FaultError(f"a connection through {link} is closed when its peer closes")
        return {"measured_on": str(link), "told_past_it": True, "told": False}

    def heal(self) -> Proof:
        """Proven by the connection of `bit`, which sees now that the other end has closed it."""
        mended = super().heal()
        if self._untold is None:
            return mended
        told = self._untold.told(TOLD_S)
        self._untold.close()
        if not told:
            raise FaultError(f"a connection through {self._imposition.used[0]} is open, though its peer has closed it")
        return mended | {"told": True}
