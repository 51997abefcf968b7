"""Single client requests or responses that are held, lost or late, or that the proxy answers instead of the broker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import msgspec
from kio.schema.errors import ErrorCode

from lockstep.cluster.cluster import Cluster
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition, links_at
from lockstep.faults.support.roles import node_of
from lockstep.network.conditions import Frames
from lockstep.network.frames import ANSWERABLE, APIS, PARTITIONED, Answer, Drop, Hold, Postpone, Rule, Side
from lockstep.network.topology import Link
from lockstep.plan.targets import ClientSide, LeaderOf
from lockstep.spec.cluster import CLIENT_LISTENERS, ClusterSpec
from lockstep.wait import wait_until

BIT_S = 15.0
DELAY_MS_MAX = 60_000


class FramesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which frames: of which API, by Kafka's name, and of which client id if not of all."""

    api: str = "Produce"
    client_id: str | None = None

    def __post_init__(self) -> None:
        if self.api not in APIS:
            raise ValueError(f"Kafka has no api {self.api}: give Kafka's own name, such as InitProducerId")


class DelayedFramesSettings(FramesSettings, frozen=True, kw_only=True):
    """How much later they arrive."""

    ms: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.ms <= DELAY_MS_MAX:
            raise ValueError(f"requests are delayed by 1 to {DELAY_MS_MAX} ms, not {self.ms}")


class AnswerSettings(FramesSettings, frozen=True, kw_only=True):
    """With what error they are answered, as Kafka calls it."""

    error: str = "NOT_ENOUGH_REPLICAS"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.api not in ANSWERABLE:
            raise ValueError(f"only a broker can answer {self.api}: give one of {', '.join(sorted(ANSWERABLE))}")
        if self.error.lower() not in ErrorCode.__members__ or self.code == 0:
            raise ValueError(f"Kafka has no error {self.error}")

    @property
    def code(self) -> int:
        return int(ErrorCode[self.error.lower()])


S = TypeVar("S", bound=FramesSettings)


class _OnFrames(ABC, Generic[S]):
    """Proven by the proxies, which count the frames that a rule has acted upon.

    On a partition's leader, only frames that name the partition, if the api's do so.
    """

    def __init__(self, cluster: Cluster, target: ClientSide | LeaderOf, settings: S) -> None:
        self._cluster = cluster
        self._settings = settings
        self._links = links_at(cluster, target) if isinstance(target, ClientSide) else _clients_of(cluster, target)
        rule = self._rule(apis=(settings.api,), client_id=settings.client_id, **_named(cluster, target, settings.api))
        self._imposition = Imposition(cluster.links, dict.fromkeys(self._links, Frames((rule,))))

    @abstractmethod
    def _rule(self, **frames: Any) -> Rule: ...

    @property
    def resolved(self) -> str:
        return ", ".join(map(str, self._links))

    def inject(self) -> Proof:
        return self._imposition.begin()

    def bit(self) -> Proof:
        what = f"a {self._settings.api} frame to come by {self.resolved}"
        wait_until(self._acted, timeout_s=BIT_S, what=what, interval_s=0.1)
        return {"frames": self._acted()}

    def heal(self) -> Proof:
        acted = self._acted()
        return self._imposition.end() | {"frames": acted}

    def _acted(self) -> int:
        """Upon how many frames so far; none while another fault's condition is worse."""
        return sum(sum(self._cluster.links.matched(link)) for link in self._links)


def _clients_of(cluster: Cluster, target: LeaderOf) -> list[Link]:
    name = node_of(cluster, target).name
    return [link for link in cluster.links if link.destination == name and link.listener in CLIENT_LISTENERS]


def _named(cluster: Cluster, target: ClientSide | LeaderOf, api: str) -> dict[str, Any]:
    if isinstance(target, ClientSide) or api not in PARTITIONED:
        return {}
    view = cluster.leader(target.topic, target.partition)
    return {"topic": target.topic, "topic_id": view.topic_id, "partition": target.partition}


def unreadable(spec: ClusterSpec, _backend: str) -> str | None:
    return "needs links without TLS, to read what they carry" if spec.security.tls else None


TARGETS = (ClientSide, LeaderOf)


@fault(
    name="hold-requests",
    summary="Hold clients' requests of one kind, and all behind them, until healed: then they arrive, however old",
    targets=TARGETS,
    missing=unreadable,
    settings=FramesSettings,
)
class HoldRequests(_OnFrames[FramesSettings]):
    """As in a slow network, the broker may serve the requests after their client has given up."""

    def _rule(self, **frames: Any) -> Rule:
        return Hold(side=Side.REQUEST, **frames)


@fault(
    name="hold-responses",
    summary="Hold brokers' responses of one kind, and all behind them, until healed: clients know nothing meanwhile",
    targets=TARGETS,
    missing=unreadable,
    settings=FramesSettings,
)
class HoldResponses(_OnFrames[FramesSettings]):
    """The broker has handled the request; whether the client retries is up to the client."""

    def _rule(self, **frames: Any) -> Rule:
        return Hold(side=Side.RESPONSE, **frames)


@fault(
    name="drop-responses",
    summary="Lose brokers' responses of one kind together with their connections",
    targets=TARGETS,
    missing=unreadable,
    settings=FramesSettings,
)
class DropResponses(_OnFrames[FramesSettings]):
    """The broker has handled the request each time, and each time the client has to retry."""

    def _rule(self, **frames: Any) -> Rule:
        return Drop(side=Side.RESPONSE, **frames)


@fault(
    name="delay-requests",
    summary="Delay clients' requests of one kind, and with them what comes behind",
    targets=TARGETS,
    missing=unreadable,
    settings=DelayedFramesSettings,
)
class DelayRequests(_OnFrames[DelayedFramesSettings]):
    """Requests on other connections are not delayed."""

    def _rule(self, **frames: Any) -> Rule:
        return Postpone(side=Side.REQUEST, ms=self._settings.ms, **frames)


@fault(
    name="answer-error",
    summary="Answer clients' requests of one kind with an error; the broker never sees them",
    targets=TARGETS,
    missing=unreadable,
    settings=AnswerSettings,
)
class AnswerError(_OnFrames[AnswerSettings]):
    """Tests how a client handles an error, without bringing a broker into the state that causes it."""

    def _rule(self, **frames: Any) -> Rule:
        return Answer(error_code=self._settings.code, **frames)
