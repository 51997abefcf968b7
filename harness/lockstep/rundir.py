"""Run directories: their names, `run.json`, the `latest` link, and the register of runs that may need healing."""

from __future__ import annotations

import os
import platform
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import psutil

from lockstep.cluster.external_spec import External
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.disk import explained, replace_file
from lockstep.host.state import state_dir
from lockstep.plan.plan import Plan
from lockstep.recovery.ledger import LEDGER, read_ledger
from lockstep.spec.arguments import arguments
from lockstep.spec.cluster import ClusterSpec
from lockstep.version import __version__

RUNS_VARIABLE = "LOCKSTEP_RUNS"
RUN = "run.json"
LATEST = "latest"
NEEDED_BYTES = 500_000_000


class Phase(msgspec.Struct, kw_only=True):
    """One part of a run, in monotonic time."""

    name: str
    start_ns: int
    end_ns: int | None = None


class RunInfo(msgspec.Struct, kw_only=True):
    """`run.json`."""

    run: str
    scenario: str
    seed: int
    lockstep: str
    spec: ClusterSpec | msgspec.UnsetType = msgspec.UNSET
    external: External | msgspec.UnsetType = msgspec.UNSET
    """Instead of a spec: a cluster that was there already."""
    backend: str
    command: str
    replay: str = ""
    environment: dict[str, Any]
    clock: dict[str, Any]
    nodes: list[dict[str, Any]]
    phases: list[Phase] = []

    def __post_init__(self) -> None:
        _ = self.cluster

    @property
    def cluster(self) -> ClusterSpec | External:
        """What it ran on."""
        if isinstance(self.spec, ClusterSpec):
            return self.spec
        if isinstance(self.external, External):
            return self.external
        raise ValueError("it has neither a spec nor an external cluster")


class RunDirectory:
    """The directory of one run that is going on."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        self.info = info

    @classmethod
    def create(
        cls,
        runs: Path,
        *,
        scenario: str,
        seed: int,
        command: str,
        spec: ClusterSpec | External,
        backend: str,
        java: str,
        librdkafka: str,
        replay: str | None = None,
    ) -> RunDirectory:
        """A fresh directory that no other run shares, and `latest` pointing to it.

        `command` is what to type to get such a run again; `replay` too, where it is not of a plan.
        """
        path = _fresh(runs, scenario, seed)
        info = RunInfo(
            run=path.name,
            scenario=scenario,
            seed=seed,
            lockstep=__version__,
            spec=spec if isinstance(spec, ClusterSpec) else msgspec.UNSET,
            external=spec if isinstance(spec, External) else msgspec.UNSET,
            backend=backend,
            command=command,
            replay=replay or replay_command(runs / path.name, spec),
            environment={
                "python": platform.python_version(),
                "java": java,
                "librdkafka": librdkafka,
                "os": platform.platform(),
                "cpus": os.cpu_count(),
                "memory_mb": psutil.virtual_memory().total // 1_000_000,
            },
            clock={"monotonic_ns": time.monotonic_ns(), "utc": datetime.now(UTC).isoformat()},
            nodes=_nodes(spec),
        )
        directory = cls(path, info)
        directory.save()
        _point_latest(runs, path)
        return directory

    def save(self) -> None:
        replace_file(self.path / RUN, msgspec.json.format(msgspec.json.encode(self.info), indent=2) + b"\n")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note when a phase began and ended, also when it ends badly."""
        phase = Phase(name=name, start_ns=time.monotonic_ns())
        self.info.phases.append(phase)
        self.save()
        try:
            yield
        finally:
            phase.end_ns = time.monotonic_ns()
            self.save()


def read_run_info(directory: Path) -> RunInfo:
    """`run.json` of a run, to do it again."""
    path = directory / RUN
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunInfo)
    except FileNotFoundError:
        raise UsageError(f"{directory} has no {RUN}: give a run directory, such as runs/latest") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def default_runs() -> Path:
    return Path(os.environ.get(RUNS_VARIABLE, "runs"))


def find_run(name: str | None, runs: Path) -> Path:
    """A run given by path, by its name under `runs`, or the latest."""
    candidates = [Path(name), runs / name] if name else [runs / LATEST]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate.resolve()
    raise UsageError(f"there is no run {name or LATEST} in {runs}: give a run directory, such as runs/latest")


def require_space(directory: Path) -> int:
    """How many bytes are free there; too few for a run is an error."""
    free = psutil.disk_usage(str(directory)).free
    if free < NEEDED_BYTES:
        raise EnvironmentError_(
            f"{directory.resolve()} has {free // 1_000_000} MB free and a run needs {NEEDED_BYTES // 1_000_000} MB: "
            "free some, or give a directory on another disk with --runs-dir"
        )
    return free


def replay_command(directory: Path, spec: ClusterSpec | External) -> str:
    """What to type to have the run's plan carried out again; on a cluster of the user's only when told where it is."""
    where = spec.arguments() if isinstance(spec, External) else []
    return shlex.join(["lockstep", "replay", str(directory), *where])


def _nodes(spec: ClusterSpec | External) -> list[dict[str, Any]]:
    if isinstance(spec, External):
        return [{"name": f"broker-{id_}", "id": id_, "role": "broker"} for id_ in spec.brokers]
    return [{"name": node.name, "id": node.id, "role": node.role} for node in spec.nodes]


def run_command(plan: Plan, spec: ClusterSpec | External, backend: str) -> str:
    """What to type to get such a run again, however this one was started."""
    length = [] if plan.hold_s is None else ["--for", f"{plan.hold_s:g}s"]
    command = ["lockstep", "run", plan.scenario, "--seed", str(plan.seed)]
    return shlex.join([*command, *cluster_arguments(spec, backend), *length])


def cluster_arguments(spec: ClusterSpec | External, backend: str) -> list[str]:
    """What to type to get such a cluster."""
    options = spec.arguments() if isinstance(spec, External) else arguments(spec)
    return options if backend == "process" else ["--backend", backend, *options]


def _fresh(runs: Path, scenario: str, seed: int) -> Path:
    with explained(runs):
        runs.mkdir(parents=True, exist_ok=True)
    require_space(runs)
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{scenario}-{seed}"
    number = 1
    while True:
        path = runs / (stem if number == 1 else f"{stem}.{number}")
        try:
            with explained(path):
                path.mkdir()
        except EnvironmentError_:
            if not path.exists():
                raise
            number += 1  # the same second and the same seed: names never collide
            continue
        return path.resolve()


def _point_latest(runs: Path, path: Path) -> None:
    """Swap the link in one step: a reader finds the old run or the new one, never nothing."""
    fresh = runs / f".{LATEST}.{os.getpid()}.{time.monotonic_ns()}"
    with explained(fresh):
        fresh.symlink_to(path.name)
        fresh.replace(runs / LATEST)


@contextmanager
def registered(directory: Path) -> Iterator[None]:
    """Until all in the directory's ledger is closed, and so for ever if we are killed, `lockstep heal` knows of it."""
    mark = _register() / f"{os.getpid()}-{time.monotonic_ns()}"
    with explained(mark):
        mark.symlink_to(directory.resolve())
    try:
        yield
    finally:
        if not any(entry.open for entry in read_ledger(directory / LEDGER)):
            mark.unlink(missing_ok=True)


def registered_directories() -> list[Path]:
    """Every directory whose run did not end cleanly, or has not ended yet; marks of deleted directories are dropped."""
    directories = []
    for mark in sorted(_register().iterdir()):
        directory = mark.resolve()
        if (directory / LEDGER).exists():
            directories.append(directory)
        else:
            mark.unlink(missing_ok=True)
    return list(dict.fromkeys(directories))


def unregister(directory: Path) -> None:
    for mark in _register().iterdir():
        if mark.resolve() == directory.resolve():
            with suppress(FileNotFoundError):
                mark.unlink()


def _register() -> Path:
    path = state_dir() / "live"
    with explained(path):
        path.mkdir(parents=True, exist_ok=True)
    return path
