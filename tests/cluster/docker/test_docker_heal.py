"""After the owner of a cluster was killed -9, healing removes what it made, and nothing that only resembles it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from docker.errors import APIError, NotFound

from lockstep.cluster.distribution import distribution
from lockstep.cluster.docker import engine_available, heal_container, heal_network, prepare_image
from lockstep.cluster.docker.engine import connect
from lockstep.cluster.docker.resources import RUN_LABEL, TOKEN_LABEL
from lockstep.host.java import find_java
from lockstep.progress import Progress
from lockstep.recovery.ledger import LEDGER, Entry, Ledger, read_ledger
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until

AVAILABLE, REASON = engine_available()

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.xdist_group("docker"),
    pytest.mark.skipif(not AVAILABLE and os.environ.get("CI") != "true", reason=REASON),
]

HEALERS: dict[str, Callable[[Entry], list[str]]] = {"container": heal_container, "network": heal_network}

READY = "ready"

OWNER = """
import sys
from pathlib import Path
from lockstep.cluster.backends import Backend, prepare
from lockstep.spec.cluster import ClusterSpec
from lockstep.host.java import find_java
from lockstep.recovery.ledger import Ledger
from lockstep.progress import Progress

directory = Path(sys.argv[1])
open_cluster = prepare(ClusterSpec(), Backend.DOCKER, find_java(), Progress(quiet=True))
open_cluster(directory, Ledger(directory)).start()
(directory / "ready").touch()
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def image() -> str:
    version = ClusterSpec().kafka
    progress = Progress(quiet=True)
    return prepare_image(version, distribution(version, find_java(), progress), progress)


@pytest.fixture
def client() -> Iterator[DockerClient]:
    with closing(connect().client) as client:
        yield client


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A run directory; its name is unique because the engine outlives the test session."""
    return tmp_path / f"run-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def look_alike(client: DockerClient, image: str, directory: Path) -> Iterator[Callable[[str], Any]]:
    """Makes running containers that are nearly ours, and removes them at the end."""
    made = []

    def make(token: str) -> Any:
        container = client.containers.run(
            image,
            entrypoint=["sleep", "600"],
            detach=True,
            name=f"lockstep-{directory.name}-broker-1-{uuid.uuid4().hex[:8]}",
            labels={RUN_LABEL: directory.name, TOKEN_LABEL: token},
        )
        made.append(container)
        return container

    yield make
    for container in made:
        with suppress(NotFound):
            container.remove(force=True)


def _making_sidecars(directory: Path) -> bool:
    ledger = directory / LEDGER
    return ledger.exists() and len(read_ledger(ledger)) >= 3


def _serving(directory: Path) -> bool:
    return (directory / READY).exists()


@pytest.mark.parametrize(
    ("moment", "made"),
    [
        pytest.param(_making_sidecars, 1, id="while making sidecars"),
        pytest.param(_serving, 9, id="while all nodes run", marks=pytest.mark.long),
    ],
)
def test_heal_after_the_owner_was_killed(
    moment: Callable[[Path], bool],
    made: int,
    directory: Path,
    client: DockerClient,
    look_alike: Callable[[str], Any],
) -> None:
    other = look_alike(uuid.uuid4().hex)
    with subprocess.Popen([sys.executable, "-c", OWNER, directory], stdin=subprocess.PIPE) as owner:
        wait_until(
            lambda: owner.poll() is not None or moment(directory),
            timeout_s=120,
            what="the moment to kill the owner",
            interval_s=0.01,
        )
        assert owner.poll() is None
        owner.send_signal(signal.SIGKILL)
    with Ledger(directory) as again:
        removed = [name for entry in again.open_entries() for name in HEALERS[entry.kind](entry)]
        assert list(again.open_entries()) == []
    assert len(removed) >= made
    assert [container.id for container in _containers(client, directory)] == [other.id]
    assert client.networks.list(filters={"label": f"{RUN_LABEL}={directory.name}"}) == []
    other.reload()
    assert other.status == "running"


def test_what_was_made_but_not_noted_is_found_by_its_exact_token(
    directory: Path, client: DockerClient, image: str, look_alike: Callable[[str], Any]
) -> None:
    token = uuid.uuid4().hex
    ours, longer, shorter = look_alike(token), look_alike(token + "0"), look_alike(token[:-1])
    with Ledger(directory) as ledger:
        entry = ledger.intent("container", name="broker-1", token=token, asked_ns=0)
        assert heal_container(entry) == [f"broker-1 (container {ours.id[:12]})"]
        assert not entry.open
        assert heal_container(entry) == [], "healing twice is safe"
    assert {container.id for container in _containers(client, directory)} == {longer.id, shorter.id}


def test_what_the_engine_makes_after_its_owner_died_is_waited_for(
    directory: Path, client: DockerClient, look_alike: Callable[[str], Any]
) -> None:
    token = uuid.uuid4().hex

    def make() -> None:
        with suppress(APIError):  # it may be gone again before it has started
            look_alike(token)

    with Ledger(directory) as ledger:
        entry = ledger.intent("container", name="broker-1", token=token, asked_ns=time.monotonic_ns())
        engine = threading.Timer(0.3, make)
        engine.start()
        assert len(heal_container(entry)) == 1
        engine.join()
    assert _containers(client, directory) == []


def test_a_network_that_was_never_made_needs_no_healing(directory: Path) -> None:
    with Ledger(directory) as ledger:
        entry = ledger.intent("network", name="network", token=uuid.uuid4().hex, asked_ns=0)
        assert heal_network(entry) == []
        assert not entry.open


def _containers(client: DockerClient, run: Path) -> list[Any]:
    return client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={run.name}"}, ignore_removed=True)
