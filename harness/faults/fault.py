"""What a fault is, and the registry of all of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from harness.cluster.cluster import Cluster
from harness.errors import UsageError
from harness.plan import Target
from harness.scenario import suggestion

ENTRY_POINTS = "lockstep.faults"

Proof = dict[str, Any]
"""What was seen from outside, as fields that a reader of the ledger and the report understands."""


class Fault(Protocol):
    """One thing broken once: `inject` breaks it, `bit` proves that it had effect, `heal` undoes it and proves that."""

    def __init__(self, cluster: Cluster, target: Target) -> None: ...

    @property
    def resolved(self) -> str:
        """The node (or link, or client) that the role turned out to be."""
        ...

    def inject(self) -> Proof: ...

    def bit(self) -> Proof: ...

    def heal(self) -> Proof: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """A registered fault."""

    name: str
    summary: str
    targets: tuple[str, ...]
    backends: tuple[str, ...]
    make: type[Fault]


_registry: dict[str, FaultKind] = {}

T = TypeVar("T", bound=type[Fault])


def fault(*, name: str, summary: str, targets: tuple[str, ...], backends: tuple[str, ...]) -> Callable[[T], T]:
    """Register a class with the methods of `Fault`; no subclassing needed."""

    def register(make: T) -> T:
        _registry[name] = FaultKind(name=name, summary=summary, targets=targets, backends=backends, make=make)
        return make

    return register


def find_faults() -> dict[str, FaultKind]:
    """Every fault there is, by name."""
    package = importlib.import_module("harness.faults")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"harness.faults.{module.name}")
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        entry_point.load()
    return dict(sorted(_registry.items()))


def get_fault(name: str) -> FaultKind:
    known = find_faults()
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"there is no fault {name!r}{suggestion(name, known)}") from None
