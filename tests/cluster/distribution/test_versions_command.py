"""`lockstep versions` and `lockstep list versions`, with a Maven repository on loopback."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.cli.main import run_cli
from lockstep.cluster.distribution import read_lock
from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE
from lockstep.host.cache import CACHE_VARIABLE
from tests.cluster.distribution.repositories import Repository, serving

ENVIRONMENT, USAGE = 3, 4
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
<dependencies>{dependencies}</dependencies></project>"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"

CLIENTS = "org.apache.kafka:kafka-clients:4.9.0"
SLF4J = "org.slf4j:slf4j-api:1.7.36"
LOG4J = "org.apache.logging.log4j:log4j-core:2.25.4"
BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """One that has a Kafka 4.9.0 of small jars."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with serving() as repository:
        monkeypatch.setenv(REPOSITORY_VARIABLE, repository.url)
        for coordinate, dependencies in {
            "org.apache.kafka:kafka_2.13:4.9.0": [CLIENTS, LOG4J],
            "org.apache.kafka:kafka-tools:4.9.0": [CLIENTS],
            CLIENTS: [SLF4J],
            SLF4J: [],
            LOG4J: [],
            BINDING: [SLF4J, LOG4J],
        }.items():
            _publish(repository, coordinate, dependencies)
        yield repository


def _publish(repository: Repository, coordinate: str, dependencies: list[str]) -> None:
    group, artifact, version = coordinate.split(":")
    listed = "".join(DEPENDENCY.format(*dependency.split(":")) for dependency in dependencies)
    pom = POM.format(group=group, artifact=artifact, version=version, dependencies=listed)
    for ending, content in (("pom", pom.encode()), ("jar", coordinate.encode())):
        path = f"{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.{ending}"
        repository.files[path] = content
        repository.files[f"{path}.sha1"] = hashlib.sha1(content).hexdigest().encode()


def test_a_version_is_added_once_and_known_from_then_on(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["versions", "add", "4.9.0", "--json"]) == 0
    path = tmp_path / "locks" / "4.9.0.json"
    assert json.loads(capsys.readouterr().out) == {
        "kafka": "4.9.0",
        "added": True,
        "lock": str(path),
        "jars": 6,
        "size_bytes": read_lock("4.9.0").size,
        "modes": ["kraft", "kraft-combined"],
    }
    jars = {jar.coordinate: jar for jar in read_lock("4.9.0").jars}
    assert jars[BINDING].sha256 == hashlib.sha256(BINDING.encode()).hexdigest()

    repository.asked.clear()
    assert run_cli(["versions", "add", "4.9.0"]) == 0
    assert capsys.readouterr().out == f"Kafka 4.9.0 is known already: 6 jars, lock file {path}\n"
    assert repository.asked == []

    assert run_cli(["list", "versions", "--json"]) == 0
    listed = {row["name"]: row["modes"] for row in json.loads(capsys.readouterr().out)}
    assert listed["4.9.0"] == listed["4.3.1"] == ["kraft", "kraft-combined"]
    assert listed["3.9.2"] == ["zk", "kraft", "kraft-combined"]


def test_what_is_added_is_told_with_the_place_of_its_lock(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["versions", "add", "4.9.0"]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"Kafka 4.9.0 is added: 6 jars, lock file {tmp_path}/locks/4.9.0.json\n"
    assert "locking Kafka 4.9.0" in captured.err


def test_a_version_that_was_never_released_is_wrong_usage(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["versions", "add", "4.9.1"]) == USAGE
    assert capsys.readouterr().err == (
        f"lockstep: {repository.url} has no Kafka 4.9.1: give a version that was released\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_repository_that_is_not_there_or_lacks_a_jar_is_the_environment_s_fault(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del repository.files["org/apache/kafka/kafka-clients/4.9.0/kafka-clients-4.9.0.jar"]
    assert run_cli(["versions", "add", "4.9.0"]) == ENVIRONMENT
    assert "kafka-clients" in capsys.readouterr().err
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://me:secret@127.0.0.1:9/maven")
    assert run_cli(["versions", "add", "4.9.0"]) == ENVIRONMENT
    error = capsys.readouterr().err
    assert "cannot be resolved from http://127.0.0.1:9/maven (ConnectionError): check the network" in error
    assert "secret" not in error


def test_the_doctor_looks_at_the_version_it_is_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["doctor", "--kafka", "4.3.12"]) == USAGE
    assert "did you mean 4.3.1?" in capsys.readouterr().err
