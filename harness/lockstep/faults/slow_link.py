"""Links that carry everything, and take their time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import msgspec

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, links_at
from lockstep.faults.support.round_trip import MEASURED_ON, cannot_measure, past_ms, through_ms
from lockstep.network.conditions import Condition, Delay, Open, Throttle
from lockstep.network.topology import Link
from lockstep.plan.targets import ActiveController, ClientSide, FollowerOf, LeaderOf, OneBroker, Target
from lockstep.wait import wait_until

DELAY_MS_MAX = 10_000
KB_PER_S_MAX = 500
TRIPS = 3
TRIPS_MAX = 30
FAST_S = 30.0

S = TypeVar("S", bound=msgspec.Struct)


class LatencySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The delay of every byte, each way."""

    ms: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.ms <= DELAY_MS_MAX:
            raise ValueError(f"a delay lasts from 1 to {DELAY_MS_MAX} ms, not {self.ms}")


class JitterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The delay of every byte, each way, and by how much it varies; the seed fixes the sequence."""

    ms: int = 60
    jitter_ms: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.jitter_ms <= self.ms <= DELAY_MS_MAX:
            raise ValueError(
                f"a delay lasts from 1 to {DELAY_MS_MAX} ms and varies by 1 ms up to all of it, "
                f"not {self.ms} ms by {self.jitter_ms}"
            )


class BandwidthSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes, in 1000 each second, that pass each way."""

    kb_per_s: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.kb_per_s <= KB_PER_S_MAX:
            raise ValueError(f"a link is throttled to 1 to {KB_PER_S_MAX} kB/s, not {self.kb_per_s}")


class _SlowLink(ABC, Generic[S]):
    """Proven by round trips through one of the links that were in use, longer than past it by what it must take."""

    def __init__(self, cluster: Cluster, target: Target, settings: S) -> None:
        self._cluster = cluster
        self._settings = settings
        self._links = links_at(cluster, target)
        self._imposition = Imposition(cluster.links, dict.fromkeys(self._links, self._condition()))

    @property
    def resolved(self) -> str:
        return ", ".join(map(str, self._links))

    def inject(self) -> Proof:
        return self._imposition.begin()

    def bit(self) -> Proof:
        link, *_ = self._imposition.in_force()
        past = min(past_ms(self._cluster, link, payload_bytes=self._payload_bytes) for _ in range(TRIPS))
        through = [self._through(link) for _ in range(TRIPS)]
        if min(through) < max(self._least_ms, past):
            raise FaultError(
                f"a round trip through {link} took {min(through):.0f} ms, less than {self._least_ms:.0f}: "
                f"it is not slow (past it: {past:.0f} ms)"
            )
        return {
            "measured_on": str(link),
            "round_trip_past_ms": round(past, 1),
            "round_trip_ms": round(min(through), 1),
        } | self._more(link, through)

    def heal(self) -> Proof:
        """Measured again, unless the destination is down: what it must have taken, it takes no longer."""
        mended = self._imposition.end()
        for link in filter(self._can_measure, self._imposition.used[:1]):
            return mended | {"round_trip_after_ms": self._fast(link)}
        return mended

    @abstractmethod
    def _condition(self) -> Condition: ...

    @property
    @abstractmethod
    def _least_ms(self) -> float:
        """What a round trip takes at least."""

    @property
    def _most_ms(self) -> float:
        """What the link adds to a round trip at most, for an end to waiting."""
        return 4 * self._least_ms

    @property
    def _payload_bytes(self) -> int:
        return 0

    def _more(self, _link: Link, _through: list[float]) -> Proof:
        """What else proves that it is slow in this way."""
        return {}

    def _through(self, link: Link) -> float:
        return through_ms(self._cluster, link, payload_bytes=self._payload_bytes, allowed_ms=self._most_ms)

    def _fast(self, link: Link) -> float:
        took = []

        def fast() -> bool:
            took.append(self._through(link))
            return took[-1] < self._most_ms / 4

        wait_until(fast, timeout_s=FAST_S, what=f"{link} to be fast again", retry_on=(FaultError,))
        return round(took[-1], 1)

    def _can_measure(self, link: Link) -> bool:
        running = self._cluster.nodes[link.destination].state() is NodeState.RUNNING
        return running and self._cluster.links.condition(link) == Open()


@fault(
    name="latency",
    summary="Delay everything on the links of a broker's replication, of the active controller or of clients",
    targets=(LeaderOf, FollowerOf, OneBroker, ActiveController, ClientSide),
    backends=MEASURED_ON,
    missing=cannot_measure,
    settings=LatencySettings,
)
class Latency(_SlowLink[LatencySettings]):
    """There and back, a request takes twice the delay longer."""

    def _condition(self) -> Condition:
        return Delay(self._settings.ms)

    @property
    def _least_ms(self) -> float:
        return 2 * self._settings.ms


@fault(
    name="jitter",
    summary="Delay everything on such links, now more, now less",
    targets=(LeaderOf, FollowerOf, OneBroker, ActiveController, ClientSide),
    backends=MEASURED_ON,
    missing=cannot_measure,
    settings=JitterSettings,
)
class Jitter(_SlowLink[JitterSettings]):
    """Proven by round trips that differ from each other as well."""

    def _condition(self) -> Condition:
        return Delay(self._settings.ms, self._settings.jitter_ms, self._settings.seed)

    @property
    def _least_ms(self) -> float:
        return 2 * (self._settings.ms - self._settings.jitter_ms)

    @property
    def _most_ms(self) -> float:
        return 4 * self._settings.ms

    def _more(self, link: Link, through: list[float]) -> Proof:
        trips = list(through)
        while max(trips) - min(trips) < self._settings.jitter_ms:
            if len(trips) == TRIPS_MAX:
                raise FaultError(f"{TRIPS_MAX} round trips through {link} differ by {max(trips) - min(trips):.0f} ms")
            trips.append(self._through(link))
        return {"round_trips_ms": [round(trip, 1) for trip in trips]}


@fault(
    name="bandwidth",
    summary="Let no more than so many bytes each second through the links of a broker's replication or of clients",
    targets=(LeaderOf, FollowerOf, OneBroker, ClientSide),
    backends=MEASURED_ON,
    missing=cannot_measure,
    settings=BandwidthSettings,
    takes=1,  # a follower that needs more falls behind
)
class Bandwidth(_SlowLink[BandwidthSettings]):
    """Proven by a question and an answer of half a second's worth of bytes."""

    def _condition(self) -> Condition:
        return Throttle(self._settings.kb_per_s)

    @property
    def _least_ms(self) -> float:
        return self._payload_bytes / self._settings.kb_per_s

    @property
    def _payload_bytes(self) -> int:
        return 500 * self._settings.kb_per_s
