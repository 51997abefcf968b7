"""Plans: what will happen in a run, as data.

A scenario describes a plan on a `PlanBuilder`; the result is stored as `plan.json` and replayed from there as it is.
Targets are roles ("the leader of orders-0"), resolved when the step happens; the resolution goes into the history.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lockstep.errors import UsageError
from lockstep.plan.targets import Target
from lockstep_model.guarantees import ACKS_ALL, Obligation

PLAN_VERSION = 2
READABLE_VERSIONS = (1, PLAN_VERSION)
"""Version 1 has no cluster properties and no expectations."""
PLAN = "plan.json"

T = TypeVar("T")


class TopicPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A topic the run creates."""

    name: str
    partitions: int
    replication: int
    min_isr: int
    config: dict[str, str] = {}

    def __str__(self) -> str:
        shape = f"{self.partitions} partitions, {self.replication} replicas, min ISR {self.min_isr}"
        return f"{self.name}: {shape}" + "".join(f", {name}={value}" for name, value in self.config.items())

    @property
    def properties(self) -> dict[str, str]:
        """All that it is created with."""
        return {"min.insync.replicas": str(self.min_isr)} | self.config


class Write(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="write"):
    """Producers with unique values, each keeping up to `in_flight` requests on the way."""

    topic: str
    clients: int
    acks: int
    idempotent: bool
    in_flight: int
    rate_per_s: int

    def __str__(self) -> str:
        acks = "all" if self.acks == ACKS_ALL else self.acks
        kind = "idempotent, " if self.idempotent else ""
        return f"{self.clients} writers to {self.topic}: acks={acks}, {kind}{self.rate_per_s} records/s each"


class Read(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="read"):
    """Consumers, each reading every partition from its start."""

    topic: str
    clients: int

    def __str__(self) -> str:
        return f"{self.clients} readers of {self.topic}"


class Hold(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="hold"):
    """Let the clients go on for a while."""

    step: int
    seconds: float
    exactly: bool = False
    """Whether it keeps its length when the plan is stretched: a cut that must stay shorter than a time-out does."""

    def __str__(self) -> str:
        return f"hold for {self.seconds:g} s"


class Inject(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="inject"):
    """Break something."""

    step: int
    fault: str
    target: Target
    settings: dict[str, Any] = {}
    """What the fault is to be like, in its own words, such as `seconds` of a pause."""

    def __str__(self) -> str:
        how = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{self.fault}: {self.target}" + (f" ({how})" if how else "")


class Heal(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="heal"):
    """Undo what step `of` broke."""

    step: int
    of: int

    def __str__(self) -> str:
        return f"heal step {self.of}"


class Operation(StrEnum):
    """An operator's change of a whole cluster while it serves: an upgrade or a migration."""

    UPGRADE = "rolling-upgrade"
    MIGRATE = "migration"


class Operate(msgspec.Struct, frozen=True, kw_only=True, tag_field="action", tag="operate"):
    """Change the cluster as an operator would, and wait until every phase of it has been seen."""

    step: int
    operation: Operation
    to: str

    def __str__(self) -> str:
        return f"{self.operation} to {self.to}"


Step = Hold | Inject | Heal | Operate


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The expected status of a guarantee; if it comes out otherwise, the scenario missed its purpose."""

    guarantee: str
    status: Obligation

    def __str__(self) -> str:
        return f"{self.guarantee} {self.status}"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run will do, in order."""

    scenario: str
    seed: int
    topics: tuple[TopicPlan, ...]
    workloads: tuple[Write | Read, ...]
    steps: tuple[Step, ...]
    cluster: dict[str, str] = {}
    """Broker properties that the scenario needs; a user's own overrides win."""
    expectations: tuple[Expectation, ...] = ()
    hold_s: float | None = None
    """What all holds that may be stretched were stretched to together, if they were."""
    version: int = PLAN_VERSION

    def in_words(self) -> list[str]:
        return [f"{step.step}. {step}" for step in self.steps]

    def timeline(self) -> list[tuple[float, Step]]:
        """When each step comes, in seconds of holding; what faults take to bite and to heal comes on top."""
        at = 0.0
        placed = []
        for step in self.steps:
            placed.append((round(at, 1), step))
            at += step.seconds if isinstance(step, Hold) else 0.0
        return placed

    def with_topics(self, rename: Callable[[str], str]) -> Plan:
        """The same with other names for its topics; only for plans that break nothing."""
        replace = msgspec.structs.replace
        return replace(
            self,
            topics=tuple(replace(topic, name=rename(topic.name)) for topic in self.topics),
            workloads=tuple(replace(workload, topic=rename(workload.topic)) for workload in self.workloads),
        )


def write_plan(plan: Plan, directory: Path) -> None:
    (directory / PLAN).write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")


def read_plan(directory: Path) -> Plan:
    """The plan of a run directory, exactly as it was stored."""
    path = directory / PLAN
    try:
        raw: Any = msgspec.json.decode(path.read_bytes())
        if raw.get("version") not in READABLE_VERSIONS:
            raise UsageError(
                f"{path} is a plan of version {raw.get('version')}, and this Lockstep reads up to {PLAN_VERSION}"
            )
        return msgspec.convert(raw, Plan)
    except FileNotFoundError:
        raise UsageError(f"{directory} has no {PLAN}: give a run directory, such as runs/latest") from None
    except (msgspec.DecodeError, msgspec.ValidationError, AttributeError) as error:
        raise UsageError(f"{path} is not a plan: {error}") from None
