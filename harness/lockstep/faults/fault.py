"""The interface of a fault, and the registry of all faults."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from lockstep.cluster.cluster import Cluster
from lockstep.errors import UsageError
from lockstep.names import suggestion
from lockstep.plan.targets import Target, role
from lockstep.recovery.undo import Undo
from lockstep.spec.cluster import ClusterSpec

ENTRY_POINTS = "lockstep.faults"

Proof = dict[str, Any]
"""Observations that prove a fault's effect, as fields for readers of the ledger and the report."""


class Fault(Protocol):
    """One thing broken once: `inject` breaks it, `bit` proves that it had effect, `heal` undoes it and proves that.

    Made with the cluster, the target and, where its kind has settings, those. Its target is resolved from then on.
    """

    @property
    def resolved(self) -> str:
        """The node (or link, or client) that the role turned out to be."""
        ...

    def inject(self) -> Proof: ...

    def bit(self) -> Proof: ...

    def heal(self) -> Proof: ...


def undo_of(fault: Fault) -> tuple[Undo, ...]:
    """How to undo the changes that a fault makes to files, which outlive every process; most faults make none."""
    return tuple(getattr(fault, "undo", ()))


Missing = Callable[[ClusterSpec, str], str | None]
"""Why a fault cannot be had on such a cluster and backend, on this machine; None if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """A registered fault."""

    name: str
    summary: str
    targets: tuple[type[Target], ...]
    backends: tuple[str, ...]
    missing: Missing
    settings: type[msgspec.Struct] | None
    takes: int
    """How many brokers it takes out of service, at most: a plan that respects the guarantees counts them."""
    beyond: str | None
    """Why the fault exceeds what Kafka guarantees to survive, or None; such a fault is drawn only on request."""
    make: Callable[..., Fault]

    def reason(self, spec: ClusterSpec, backend: str) -> str | None:
        """Why it cannot be had; None if it can."""
        if backend not in self.backends:
            return f"works on {', '.join(self.backends)} only"
        return self.missing(spec, backend)

    def require(self, target: Target, settings: Mapping[str, Any]) -> None:
        """Refuse a target or settings that it does not take."""
        if not isinstance(target, self.targets):
            roles = ", ".join(map(role, self.targets))
            raise UsageError(f"{self.name} takes a {roles}, and not the {target}")
        self._settings(settings)

    def instance(self, cluster: Cluster, target: Target, settings: Mapping[str, Any]) -> Fault:
        """This fault on a running cluster, its target resolved; nothing is broken yet."""
        given = self._settings(settings)
        return self.make(cluster, target) if given is None else self.make(cluster, target, given)

    def _settings(self, given: Mapping[str, Any]) -> msgspec.Struct | None:
        if self.settings is None:
            if given:
                raise UsageError(f"{self.name} has no settings, and so no {', '.join(given)}")
            return None
        if unknown := given.keys() - set(self.settings.__struct_fields__):
            known = ", ".join(self.settings.__struct_fields__)
            raise UsageError(f"{self.name} has no {', '.join(sorted(unknown))}: it has {known}")
        try:
            return msgspec.convert(dict(given), self.settings)
        except msgspec.ValidationError as error:
            raise UsageError(f"{self.name}: {error}") from None


_registry: dict[str, FaultKind] = {}

T = TypeVar("T", bound=Callable[..., Fault])

ANYWHERE = ("process", "docker")


def fault(
    *,
    name: str,
    summary: str,
    targets: tuple[type[Target], ...],
    backends: tuple[str, ...] = ANYWHERE,
    missing: Missing = lambda _spec, _backend: None,
    settings: type[msgspec.Struct] | None = None,
    takes: int = 0,
    beyond: str | None = None,
) -> Callable[[T], T]:
    """Register a class with the methods of `Fault`; no subclassing needed. The fields are those of `FaultKind`."""

    def register(make: T) -> T:
        _registry[name] = FaultKind(
            name=name,
            summary=summary,
            targets=targets,
            backends=backends,
            missing=missing,
            settings=settings,
            takes=takes,
            beyond=beyond,
            make=make,
        )
        return make

    return register


def find_faults() -> dict[str, FaultKind]:
    """Every fault there is, by name."""
    package = importlib.import_module("lockstep.faults")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"lockstep.faults.{module.name}")
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        entry_point.load()
    return dict(sorted(_registry.items()))


def get_fault(name: str) -> FaultKind:
    known = find_faults()
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"there is no fault {name!r}{suggestion(name, known)}") from None
