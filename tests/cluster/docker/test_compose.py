"""The compose files as a person uses them: up, tested as an external cluster, broken by hand, down without a trace."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import socket
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import javaproperties
import pytest

from lockstep.cluster.config import COMMON, KRAFT, ZK_BROKER, ZOOKEEPER
from lockstep.cluster.distribution import distribution
from lockstep.cluster.docker import engine_available, prepare_image
from lockstep.cluster.docker.engine import connect
from lockstep.cluster.external import ExternalCluster, reach
from lockstep.cluster.external_spec import ExternalSpec
from lockstep.host.java import find_java
from lockstep.progress import Progress
from lockstep.recovery.ledger import Ledger
from lockstep.spec.cluster import DEFAULT_KAFKA, DEFAULT_ZK_KAFKA
from tests.command import Lockstep

COMPOSE = Path(__file__).parents[3] / "compose"


def missing() -> str:
    available, reason = engine_available()
    if not available:
        return reason
    there = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    return "" if there else "there is no docker compose: make docker-compose"


pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("docker"),
    # With CI=true nothing is skipped: a missing engine fails there.
    pytest.mark.skipif(bool(missing()) and os.environ.get("CI") != "true", reason=missing()),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One compose file under a project name and ports of its own: a person may have the same file up."""

    file: Path
    name: str
    image: str
    ports: tuple[int, ...]

    def call(self, *arguments: str) -> str:
        chosen = {f"KAFKA_PORT_{number}": str(port) for number, port in enumerate(self.ports, 1)}
        finished = subprocess.run(
            ["docker", "compose", "--project-name", self.name, "--file", self.file, *arguments],
            env=os.environ | chosen | {"KAFKA_IMAGE": self.image},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def left(self) -> Mapping[str, Sequence[Any]]:
        """Whatever the engine still has of it."""
        mine: dict[str, str | list[str] | bool] = {"label": f"com.docker.compose.project={self.name}"}
        with closing(connect().client) as client:
            return {
                "containers": client.containers.list(all=True, filters=mine, ignore_removed=True),
                "networks": client.networks.list(filters=mine),
                "volumes": client.volumes.list(filters=mine),
            }


def _free_ports() -> tuple[int, ...]:
    """Below those that the kernel gives to whoever connects, so that nobody gets one of them in between."""
    ports: list[int] = []
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                ports.append(port)
        if len(ports) == 3:
            return tuple(ports)
    raise AssertionError("no free ports")


@contextmanager
def up(file: str, version: str) -> Iterator[Project]:
    image = prepare_image(version, distribution(version, find_java(), Progress(quiet=True)), Progress(quiet=True))
    name = f"lockstep-test-{uuid.uuid4().hex[:8]}"
    project = Project(file=COMPOSE / file, name=name, image=image, ports=_free_ports())
    try:
        project.call("up", "--detach", "--wait")
        yield project
    finally:
        project.call("down", "--volumes", "--timeout", "1")
    assert project.left() == {"containers": [], "networks": [], "volumes": []}


def check(project: Project, lockstep: Lockstep, directory: Path, nodes: int) -> None:
    """It passes as it is, on loopback only, and a node that is killed by hand comes back with its data."""
    containers = project.left()["containers"]
    assert len(containers) == nodes
    bindings = [
        binding
        for container in containers
        for published in container.attrs["NetworkSettings"]["Ports"].values()
        for binding in published or ()
    ]
    assert {binding["HostIp"] for binding in bindings} == {"127.0.0.1"}
    assert {int(binding["HostPort"]) for binding in bindings} == set(project.ports)

    where = ("--backend", "external", "--bootstrap-servers", project.bootstrap)
    finished = lockstep("run", "steady", "--for", "3s", "--seed", "1", *where, timeout_s=600)
    assert finished.returncode == 0, finished.stderr + finished.stdout
    assert "verdict    PASS" in finished.stdout
    assert re.search(r"-steady-1-[0-9a-f]{8}-orders \(deleted again\)\n", finished.stdout)
    assert "watched    leaders and ISRs, not nodes" in finished.stdout

    spec = ExternalSpec(bootstrap_servers=project.bootstrap)
    with Ledger(directory) as ledger, ExternalCluster(spec, reach(spec), ledger) as cluster:
        cluster.create_topic("kept", partitions=3, replication=3, config={})
        project.call("kill", "kafka-2")
        project.call("start", "kafka-2")
        project.call("up", "--detach", "--wait")
        cluster.wait_in_sync("kept", 3)


@pytest.mark.long
def test_kraft(lockstep: Lockstep, tmp_path: Path) -> None:
    with up("kraft.yaml", DEFAULT_KAFKA) as project:
        check(project, lockstep, tmp_path / "ledger", nodes=3)


@pytest.mark.long
def test_zookeeper(lockstep: Lockstep, tmp_path: Path) -> None:
    with up("zookeeper.yaml", DEFAULT_ZK_KAFKA) as project:
        check(project, lockstep, tmp_path / "ledger", nodes=4)


@pytest.mark.long
def test_kraft_before_kafka_4(tmp_path: Path) -> None:
    with up("kraft.yaml", DEFAULT_ZK_KAFKA) as project:
        assert reach(ExternalSpec(bootstrap_servers=project.bootstrap)).features["metadata.version"] > 0


@pytest.mark.parametrize(
    ("file", "config", "ours"),
    [
        ("kraft.yaml", "server.properties", COMMON | KRAFT),
        ("zookeeper.yaml", "server.properties", COMMON | ZK_BROKER),
        ("zookeeper.yaml", "zookeeper.properties", ZOOKEEPER),
    ],
)
def test_settings_are_those_of_our_own_clusters(file: str, config: str, ours: dict[str, str]) -> None:
    project = Project(file=COMPOSE / file, name="settings", image="any", ports=(1, 2, 3))
    content = json.loads(project.call("config", "--format", "json"))["configs"][config]["content"]
    theirs = javaproperties.loads(content)
    shared = theirs.keys() & ours.keys()
    assert len(shared) >= 4
    assert {name: theirs[name] for name in shared} == {name: ours[name] for name in shared}
