"""The pytest plugin: real clusters and whole scenario runs as fixtures.

Loaded by entry point in every pytest process of every project that has Lockstep installed, so nothing heavy (pyspark,
confluent_kafka) is imported before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lockstep.checker import SparkStarter
    from lockstep.cluster.backends import Backend
    from lockstep.cluster.cluster import Cluster
    from lockstep.run import Finished
    from lockstep.spec.cluster import ClusterSpec

    RunScenario = Callable[..., Finished]


OPEN_MAX = 3
"""How many clusters stay open at once, for tests that want the same one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lockstep", "real Kafka clusters")
    group.addoption(
        "--lockstep-runs",
        metavar="DIR",
        default=None,
        help="keep run directories here instead of a temporary place",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "lockstep(kafka='4.3.1', brokers=3, backend='process', ...): what lockstep_cluster gives to this test",
    )


@pytest.fixture(scope="session")
def lockstep_runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of this session are kept."""
    chosen = request.config.getoption("--lockstep-runs")
    return Path(chosen) if chosen else tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def lockstep_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Running clusters by spec, `lockstep_clusters.get(brokers=1)`, for tests that want more than one."""
    clusters = Clusters(tmp_path_factory)
    yield clusters
    clusters.close()


@pytest.fixture
def lockstep_cluster(request: pytest.FixtureRequest, lockstep_clusters: Clusters) -> Cluster:
    """A running cluster as the `lockstep` marker describes it; tests that want the same one share it."""
    marker = request.node.get_closest_marker("lockstep")
    return lockstep_clusters.get(**(marker.kwargs if marker else {}))


@pytest.fixture(scope="session")
def lockstep_spark() -> Iterator[SparkStarter]:
    """One Spark for all runs of this session (of this worker, under xdist), started by the first of them."""
    from lockstep.checker import SparkStarter

    with SparkStarter() as spark:
        yield spark


@pytest.fixture
def lockstep_run(lockstep_runs: Path, lockstep_spark: SparkStarter) -> RunScenario:
    """Runs a scenario by name on a fresh cluster: `lockstep_run("leader-kill", seed=7).verdict`.

    Keyword arguments: seed, backend, hold_s (length of all holds together), scenarios (directories of your own scenario
    files), and those of `ClusterSpec`.
    """

    def run_scenario(
        name: str,
        *,
        seed: int,
        backend: str = "process",
        hold_s: float | None = None,
        scenarios: tuple[Path, ...] = (),
        **spec: Any,
    ) -> Finished:
        from lockstep.cluster.backends import Backend
        from lockstep.plan.scenario import get_scenario
        from lockstep.progress import Progress
        from lockstep.run import run
        from lockstep.spec.cluster import ClusterSpec
        from lockstep_reports import write_all

        found = get_scenario(name, scenarios)
        wanted = ClusterSpec.of(**{**found.cluster, **spec})
        finished = run(
            found.plan(seed, spec=wanted, backend=backend, seconds=hold_s),
            spec=wanted,
            backend=Backend(backend),
            runs=lockstep_runs,
            progress=Progress(quiet=True),
            spark=lockstep_spark,
        )
        write_all(finished.directory)
        return finished

    return run_scenario


class Clusters:
    """Running clusters by what was asked for; one that a test left broken is replaced."""

    def __init__(self, directories: pytest.TempPathFactory) -> None:
        self._directories = directories
        self._open: dict[str, tuple[Cluster, ExitStack]] = {}

    def get(self, **wanted: Any) -> Cluster:
        from lockstep.cluster.backends import Backend
        from lockstep.cluster.node import NodeState
        from lockstep.spec.cluster import ClusterSpec

        backend = Backend(wanted.pop("backend", Backend.PROCESS))
        spec = ClusterSpec.of(**wanted)
        key = f"{backend} {spec!r}"
        if key in self._open:
            cluster, stack = self._open.pop(key)
            self._open[key] = cluster, stack  # the newest now
            if all(node.state() is NodeState.RUNNING for node in cluster.nodes.values()):
                cluster.wait_ready()
                return cluster
            stack.close()
            del self._open[key]
        while len(self._open) >= OPEN_MAX:  # too many would slow each other down, and sessions would be lost
            _, longest_unused = self._open.pop(next(iter(self._open)))
            longest_unused.close()
        self._open[key] = self._start(spec, backend)
        return self._open[key][0]

    def _start(self, spec: ClusterSpec, backend: Backend) -> tuple[Cluster, ExitStack]:
        from lockstep.cluster.backends import prepare
        from lockstep.heal import owning
        from lockstep.host.java import find_java
        from lockstep.progress import Progress

        open_cluster = prepare(spec, backend, find_java(), Progress(quiet=True))
        directory = self._directories.mktemp("cluster")
        with ExitStack() as stack:
            ledger = stack.enter_context(owning(directory))
            cluster = stack.enter_context(open_cluster(directory, ledger))
            cluster.start()
            return cluster, stack.pop_all()

    def close(self) -> None:
        with ExitStack() as everything:  # one that resists does not keep the others alive
            for _, stack in self._open.values():
                everything.callback(stack.close)
