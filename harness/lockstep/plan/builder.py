"""The builder on which a scenario describes a plan."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, TypeGuard, TypeVar

import msgspec

from lockstep.errors import UsageError
from lockstep.plan.plan import (
    Expectation,
    Heal,
    Hold,
    Inject,
    Operate,
    Operation,
    Plan,
    Read,
    Step,
    TopicPlan,
    Write,
)
from lockstep.plan.targets import FollowerOf, LeaderOf, Target
from lockstep.spec.cluster import ClusterSpec
from lockstep_model.guarantees import ACKS_ALL, NAMED, Obligation

T = TypeVar("T")


def leader_of(topic: TopicPlan, partition: int) -> LeaderOf:
    """The role of leading one partition."""
    return LeaderOf(topic=topic.name, partition=partition)


def follower_of(topic: TopicPlan, partition: int) -> FollowerOf:
    """The role of following one partition in sync."""
    return FollowerOf(topic=topic.name, partition=partition)


class PlanBuilder:
    """The argument of a chaos scenario: every call adds to the plan, and nothing happens yet."""

    def __init__(
        self,
        scenario: str,
        seed: int,
        *,
        spec: ClusterSpec | None = None,
        backend: str = "process",
        seconds: float | None = None,
        beyond: bool = False,
    ) -> None:
        self.spec = spec or ClusterSpec()
        """The cluster that the plan is for."""
        self.backend = backend
        self.seconds = seconds
        """How long the user wants the clients to work, if that was said."""
        self.beyond = beyond
        """Whether the user wants faults that no guarantee survives."""
        self._scenario = scenario
        self._seed = seed
        self._random = random.Random(f"{scenario}/{seed}")  # noqa: S311 - reproducible on purpose
        self._topics: list[TopicPlan] = []
        self._workloads: list[Write | Read] = []
        self._steps: list[Step] = []
        self._cluster: dict[str, str] = {}
        self._expectations: list[Expectation] = []

    def cluster(self, properties: Mapping[str, str]) -> None:
        """Broker properties without which the scenario would not show what it is for."""
        self._cluster |= properties

    def topic(
        self, name: str, *, partitions: int, replication: int, min_isr: int, config: dict[str, str] | None = None
    ) -> TopicPlan:
        if partitions < 1:
            raise UsageError(f"topic {name}: it has at least 1 partition, not {partitions}")
        if not 1 <= min_isr <= replication:
            raise UsageError(f"topic {name}: min_isr is 1 to {replication} (its replication), not {min_isr}")
        topic = TopicPlan(
            name=name, partitions=partitions, replication=replication, min_isr=min_isr, config=config or {}
        )
        self._topics.append(topic)
        return topic

    def write(
        self,
        topic: TopicPlan,
        *,
        clients: int = 3,
        acks: int = ACKS_ALL,
        idempotent: bool = True,
        in_flight: int = 5,
        rate_per_s: int = 300,
    ) -> None:
        """Producers, each sending `rate_per_s` records a second to partitions drawn from the seed."""
        if acks not in (ACKS_ALL, 0, 1) or clients < 1 or in_flight < 1 or rate_per_s < 1:
            raise UsageError(
                "writers have acks of 0, 1 or -1 (all), and clients, in_flight and rate_per_s of at least 1"
            )
        if idempotent and (acks != ACKS_ALL or in_flight > 5):
            raise UsageError("an idempotent producer needs acks=all (-1) and at most 5 requests in flight")
        self._workloads.append(
            Write(
                topic=topic.name,
                clients=clients,
                acks=acks,
                idempotent=idempotent,
                in_flight=in_flight,
                rate_per_s=rate_per_s,
            )
        )

    def read(self, topic: TopicPlan, *, clients: int = 2) -> None:
        self._workloads.append(Read(topic=topic.name, clients=clients))

    def draw(self, low: float, high: float) -> float:
        """A number from the seed, so that no two seeds break things at the same moment."""
        return round(self._random.uniform(low, high), 3)

    def pick(self, choices: Sequence[T], weights: Sequence[float] | None = None) -> T:
        """One of these, from the seed."""
        (picked,) = self._random.choices(choices, weights)
        return picked

    def hold(self, *, seconds: float, exactly: bool = False) -> None:
        """Let the clients go on; `exactly` so long, even when the user asks for a longer or shorter run."""
        self._steps.append(Hold(step=self._next(), seconds=seconds, exactly=exactly))

    def kill(self, target: Target) -> Broken:
        """SIGKILL; restarted when the `with` block ends, or in the heal phase."""
        return self.inject("kill", target)

    def cut_replication(self, target: LeaderOf) -> Broken:
        """No follower reaches the leader, everything else does; mended when the `with` block ends."""
        if any(topic.name == target.topic and topic.replication == 1 for topic in self._topics):
            raise UsageError(f"{target.topic} has one replica: there is no replication to cut")
        return self.inject("replication-cut", target)

    def inject(self, fault: str, target: Target, **settings: Any) -> Broken:
        """Any fault there is (`lockstep list faults`); healed when the `with` block ends, or in the heal phase."""
        step = Inject(step=self._next(), fault=fault, target=target, settings=settings)
        self._steps.append(step)
        return Broken(self, step.step)

    def heal(self, of: int) -> None:
        self._steps.append(Heal(step=self._next(), of=of))

    def expect(self, guarantee: str, status: str) -> None:
        """State how a guarantee has to come out; a run where it does not is undecided, unless it is a violation."""
        if guarantee not in NAMED:
            raise UsageError(f"there is no guarantee {guarantee!r}; there are: {', '.join(NAMED)}")
        if status not in [it.value for it in Obligation]:
            raise UsageError(f"a guarantee can be expected to be {', '.join(Obligation)}, not {status!r}")
        self._expectations.append(Expectation(guarantee=guarantee, status=Obligation(status)))

    def upgrade(self, to: str) -> None:
        """Upgrade every node to another Kafka version, one after the other."""
        self._steps.append(Operate(step=self._next(), operation=Operation.UPGRADE, to=to))

    def migrate(self) -> None:
        """Migrate from ZooKeeper to KRaft, from the first controller started to ZooKeeper stopped."""
        self._steps.append(Operate(step=self._next(), operation=Operation.MIGRATE, to="kraft"))

    def build(self) -> Plan:
        """The plan, its holds stretched together to the length that the user wants."""
        if not self._topics or not any(isinstance(workload, Write) for workload in self._workloads):
            raise UsageError(f"scenario {self._scenario} has no topic or no writer: there would be nothing to judge")
        steps = self._steps if self.seconds is None else _stretched(self._steps, self.seconds)
        return Plan(
            scenario=self._scenario,
            seed=self._seed,
            topics=tuple(self._topics),
            workloads=tuple(self._workloads),
            steps=tuple(steps),
            cluster=self._cluster,
            expectations=tuple(self._expectations),
            hold_s=self.seconds,
        )

    def _next(self) -> int:
        return len(self._steps) + 1


class Broken:
    """A fault in a plan; as a context manager it is healed where the block ends."""

    def __init__(self, plan: PlanBuilder, step: int) -> None:
        self._plan = plan
        self._step = step

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._plan.heal(self._step)


def _stretched(steps: list[Step], hold_s: float) -> list[Step]:
    total = sum(step.seconds for step in steps if _stretches(step))
    factor = hold_s / total if total else 1.0
    return [
        msgspec.structs.replace(step, seconds=round(step.seconds * factor, 3)) if _stretches(step) else step
        for step in steps
    ]


def _stretches(step: Step) -> TypeGuard[Hold]:
    return isinstance(step, Hold) and not step.exactly
