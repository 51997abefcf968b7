"""A setting of a topic, or of all brokers, changed while it is in use."""

from __future__ import annotations

import msgspec

from lockstep.clients.wire.configs import Resource, ResourceType, Setting, alter_setting, ask_settings
from lockstep.clients.wire.refusals import RefusedForNow
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.administration import administer
from lockstep.plan.targets import OneTopic, WholeCluster
from lockstep.wait import wait_until

KNOWN_S = 30.0

DEFAULTS = {
    ResourceType.TOPIC: ("segment.bytes", str(1 << 20)),
    ResourceType.BROKER: ("log.segment.bytes", str(1 << 20)),
}
"""Small segments, which change the log's files and no guarantee; the smallest that Kafka 4 accepts."""

JUDGED_BY = frozenset({"unclean.leader.election.enable", "cleanup.policy", "retention.ms", "retention.bytes"})
MIN_ISR = "min.insync.replicas"


class ConfigChangeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which setting, and what to set it to; segment sizes if nothing is said."""

    name: str | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        if (self.name is None) != (self.value is None):
            raise ValueError("name and value of a setting are given together")
        if self.name is not None and self.name.removeprefix("log.") in JUDGED_BY:
            raise ValueError(f"{self.name} decides what is promised: give it to the topic when the plan creates it")


@fault(
    name="config-change",
    summary="Change a setting of a topic, or of every broker, under load; healed by what it was before",
    targets=(OneTopic, WholeCluster),
    settings=ConfigChangeSettings,
)
class ConfigChange:
    """Proven by every broker that runs: each is asked what is in force there."""

    def __init__(self, cluster: Cluster, target: OneTopic | WholeCluster, settings: ConfigChangeSettings) -> None:
        self._cluster = cluster
        self._resource = (
            Resource(type=ResourceType.TOPIC, name=target.topic)
            if isinstance(target, OneTopic)
            else Resource(type=ResourceType.BROKER, name="")
        )
        default_name, default_value = DEFAULTS[self._resource.type]
        self._name = settings.name or default_name
        self._value = settings.value or default_value
        self._before: Setting | None = None

    @property
    def resolved(self) -> str:
        return f"{self._name} of {self._resource}"

    def inject(self) -> Proof:
        before = next(iter(self._in_force().values()), None)
        if before is None:
            raise FaultError(f"no broker tells of a setting {self.resolved}")
        if before.value == self._value:
            raise FaultError(f"{self.resolved} is {self._value} already")
        if self._name == MIN_ISR and before.value and int(self._value) < int(before.value):
            raise FaultError(f"{self.resolved} is {before.value}: fewer than that would void what was promised")
        self._before = before
        self._alter(self._value)
        return {"setting": self._name, "of": str(self._resource), "value_before": before.value}

    def bit(self) -> Proof:
        return {"value_after": self._value, "in_force_on": self._wait_for(self._value)}

    def heal(self) -> Proof:
        """What was set for it before is set again; what was not is forgotten."""
        if self._before is None:
            return {"setting": self._name, "changed": False}
        self._alter(self._before.own)
        return {"value": self._before.value, "in_force_on": self._wait_for(self._before.value)}

    def _alter(self, value: str | None) -> None:
        administer(
            self._cluster,
            lambda address, access: alter_setting(address, self._resource, self._name, value, access=access),
            f"{self.resolved} to be changed",
        )

    def _wait_for(self, value: str | None) -> list[int]:
        def agreed() -> list[int]:
            known = self._in_force()
            return sorted(known) if all(setting.value == value for setting in known.values()) else []

        return wait_until(
            agreed,
            timeout_s=KNOWN_S,
            what=f"{self.resolved} to be {value} on every broker",
            interval_s=0.2,
            retry_on=(RefusedForNow,),
        )

    def _in_force(self) -> dict[int, Setting]:
        """What every broker that answers goes by; one that does not know the setting is left out."""
        found = {}
        for id_ in self._cluster.ask_all():
            resource = self._resource
            if resource.type is ResourceType.BROKER:
                resource = Resource(type=ResourceType.BROKER, name=str(id_))
            try:
                known = ask_settings(self._cluster.direct(id_), resource, (self._name,), access=self._cluster.access())
            except OSError:
                continue
            if self._name in known:
                found[id_] = known[self._name]
        return found
