"""Scenarios: decorated functions that describe a plan, found in `scenarios/`, in users' directories and in plugins."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.errors import UsageError
from lockstep.names import suggestion
from lockstep.plan.builder import PlanBuilder
from lockstep.plan.plan import Plan
from lockstep.spec.cluster import ClusterSpec

ENTRY_POINTS = "lockstep.scenarios"
BUNDLED = "lockstep_scenarios"
"""The package of our own scenarios, found without importing it."""
CONFORMANCE = "conformance"
"""Its subpackage of conformance claims: they are no scenarios, and `lockstep.stepper.conformance` imports them."""

Describe = Callable[[PlanBuilder], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A named way to try a cluster."""

    name: str
    summary: str
    describe: Describe
    cluster: Mapping[str, Any]
    """The cluster it is for, in fields of `ClusterSpec`, where the user asks for no other."""

    def plan(
        self,
        seed: int,
        *,
        spec: ClusterSpec | None = None,
        backend: str = "process",
        seconds: float | None = None,
        beyond: bool = False,
    ) -> Plan:
        """The plan that this scenario makes of a seed, for a cluster; `seconds` is how long the clients are to work."""
        wanted = spec or ClusterSpec.of(**self.cluster)
        builder = PlanBuilder(self.name, seed, spec=wanted, backend=backend, seconds=seconds, beyond=beyond)
        self.describe(builder)
        return builder.build()


_registry: dict[str, Scenario] = {}


def scenario(
    *, summary: str, name: str | None = None, cluster: Mapping[str, Any] | None = None
) -> Callable[[Describe], Describe]:
    """Register a function as a scenario; its name is the function's, with dashes.

    `cluster` says, in fields of `ClusterSpec`, which one it is for where the user asks for no other.
    """

    def register(describe: Describe) -> Describe:
        chosen = name or describe.__name__.replace("_", "-")
        known = _registry.get(chosen)
        if known is not None and known.describe.__module__ != describe.__module__:
            raise UsageError(
                f"two scenarios are called {chosen} ({known.describe.__module__} and {describe.__module__}): rename one"
            )
        _registry[chosen] = Scenario(name=chosen, summary=summary, describe=describe, cluster=cluster or {})
        return describe

    return register


def find_scenarios(directories: Sequence[Path] = ()) -> dict[str, Scenario]:
    """Every scenario there is, by name."""
    for directory in sorted(path for path in _bundled().iterdir() if path.is_dir() and path.name != CONFORMANCE):
        _import_directory(directory)
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        entry_point.load()
    for directory in directories:
        _import_directory(directory)
    return dict(sorted(_registry.items()))


def get_scenario(name: str, directories: Sequence[Path] = ()) -> Scenario:
    """One scenario; an unknown name is a usage error that suggests the nearest."""
    known = find_scenarios(directories)
    try:
        return known[name]
    except KeyError:
        raise UsageError(f"there is no scenario {name!r}{suggestion(name, known)}") from None


def _bundled() -> Path:
    package = importlib.util.find_spec(BUNDLED)
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent


def _import_directory(directory: Path) -> None:
    """Files are loaded by path under private names, ours too: a user's repository may have a `scenarios` of its own."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory of scenarios")
    for path in sorted(directory.glob("*.py")):
        private = f"_lockstep_scenario_{path.resolve().as_posix().replace('/', '_').removesuffix('.py')}"
        if private in sys.modules:
            continue
        module_spec = importlib.util.spec_from_file_location(private, path)
        assert module_spec is not None
        assert module_spec.loader is not None
        module = importlib.util.module_from_spec(module_spec)
        sys.modules[private] = module
        try:
            module_spec.loader.exec_module(module)
        except UsageError:
            raise
        except Exception as error:
            del sys.modules[private]
            raise UsageError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
