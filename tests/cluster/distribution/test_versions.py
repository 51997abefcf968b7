"""Every version that Lockstep ships a lock file for can be fetched, trained, formatted and started."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lockstep.cluster.distribution import (
    Distribution,
    Program,
    described,
    distribution,
    distribution_directory,
    ensure_jars,
    read_lock,
    usable,
)
from lockstep.cluster.distribution.lock import SHIPPED_LOCKS
from lockstep.errors import UsageError
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.host.java import Java
from lockstep.progress import Progress
from tests.cluster.distribution.nodes import BROKER, CONTROLLER, same_as_the_storage_tool

SHIPPED = sorted(path.stem for path in SHIPPED_LOCKS.glob("*.json"))
QUIET = Progress(quiet=True)


def test_the_promised_versions_are_shipped_with_their_programs(java: Java) -> None:
    programs = {version: described(version, java).programs for version in SHIPPED}
    assert programs == {
        "3.6.2": tuple(Program),
        "3.9.2": tuple(Program),
        "4.0.2": (Program.KRAFT,),
        "4.1.2": (Program.KRAFT,),
        "4.3.1": (Program.KRAFT,),
    }


@pytest.mark.parametrize("version", SHIPPED)
def test_a_class_path_has_one_way_to_log(version: str, java: Java) -> None:
    artifacts = {jar.coordinate.split(":")[1] for jar in read_lock(version).jars}
    assert {"kafka_2.13", "kafka-tools", "kafka-clients", "slf4j-api"} <= artifacts
    bindings = artifacts & {
        "slf4j-reload4j",
        "slf4j-log4j12",
        "log4j-slf4j-impl",
        "log4j-slf4j2-impl",
        "logback-classic",
    }
    assert bindings == ({"slf4j-reload4j"} if version.startswith("3.") else {"log4j-slf4j-impl"})
    backend = "reload4j" if version.startswith("3.") else "log4j-core"
    assert backend in artifacts
    assert described(version, java).logging.file.exists()


@pytest.mark.long
@pytest.mark.parametrize("version", SHIPPED)
def test_trained_in_an_empty_cache(version: str, java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = distribution_directory(version) / "jars"
    ensure_jars(read_lock(version), jars, QUIET)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    distribution_directory(version).mkdir(parents=True)
    (distribution_directory(version) / "jars").symlink_to(jars)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    kafka = distribution(version, java, QUIET, programs=described(version, java).programs)
    assert [p for p in kafka.programs if not usable(kafka.archive(p), java, kafka.classpath)] == []
    assert not list(tmp_path.glob("lockstep-*"))

    for name, properties in (("controller", CONTROLLER), ("broker", BROKER)):
        (tmp_path / name).mkdir()
        same_as_the_storage_tool(kafka, properties, {}, tmp_path / name)
    for program in kafka.programs:
        _logs_in_utc(kafka, program, tmp_path / program.label)
    if version == "3.6.2":
        with pytest.raises(UsageError, match=r"transaction\.version=2: it knows no feature levels"):
            kafka.learn({"transaction.version": 2})


def _logs_in_utc(kafka: Distribution, program: Program, directory: Path) -> None:
    """Fail unless a node that cannot start says so in its own file, with a time that compares with ours."""
    directory.mkdir()
    command = kafka.command(
        program,
        str(directory / "missing.properties"),
        log_directory=directory,
        system_properties={"user.timezone": "Asia/Tokyo"},
    )
    before = datetime.now(UTC)
    subprocess.run(command, capture_output=True, timeout=120)
    times = re.findall(r"^(\d{4}-\d\d-\d\dT[\d:.]+Z) ERROR ", (directory / "server.log").read_text(), re.MULTILINE)
    assert before - timedelta(seconds=1) < datetime.fromisoformat(times[0]) < datetime.now(UTC)
