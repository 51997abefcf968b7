from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from harness.cache import CACHE_VARIABLE
from harness.cluster.distribution import Distribution, distribution, distribution_directory, leash, usable
from harness.cluster.distribution.archive import trained
from harness.cluster.spec import DEFAULT_KAFKA
from harness.errors import EnvironmentError_
from harness.java import Java, find_java
from harness.progress import Progress
from harness.wait import wait_until

QUIET = Progress(quiet=True)


@pytest.fixture(scope="module")
def java() -> Java:
    return find_java()


@pytest.fixture(scope="module")
def kafka(java: Java) -> Distribution:
    return distribution(DEFAULT_KAFKA, java, QUIET)


def test_java_accepts_the_archive_for_exactly_this_class_path(kafka: Distribution, tmp_path: Path) -> None:
    assert usable(kafka.archive, kafka.java, kafka.classpath)
    elsewhere = [str(shutil.copy2(jar, tmp_path)) for jar in kafka.jars]  # the same but for the place
    assert not usable(kafka.archive, kafka.java, os.pathsep.join(elsewhere))
    (tmp_path / "not-one.jsa").write_bytes(b"x" * 4096)
    assert not usable(tmp_path / "not-one.jsa", kafka.java, kafka.classpath)


def test_the_command_names_archive_logging_heap_and_what_the_caller_adds(kafka: Distribution, tmp_path: Path) -> None:
    command = kafka.command(
        "node.properties",
        log_directory=tmp_path,
        heap_min_mb=64,
        heap_max_mb=128,
        system_properties={"jdk.net.hosts.file": "hosts"},
        jvm=["-XX:+ExitOnOutOfMemoryError"],
    )
    assert command[0] == str(kafka.java.executable)
    assert command[-4:] == ["-cp", kafka.classpath, "kafka.Kafka", "node.properties"]
    assert {
        "-Xms64m",
        "-Xmx128m",
        f"-XX:SharedArchiveFile={kafka.archive}",
        f"-Dkafka.logs.dir={tmp_path}",
        "-Djdk.net.hosts.file=hosts",
        "-XX:+ExitOnOutOfMemoryError",
    } <= set(command)


def test_a_node_logs_to_its_own_file(kafka: Distribution, tmp_path: Path) -> None:
    command = kafka.command(str(tmp_path / "missing.properties"), log_directory=tmp_path)
    subprocess.run(command, capture_output=True, timeout=120)
    assert re.search(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ERROR .*", (tmp_path / "server.log").read_text(), re.MULTILINE)


def test_a_failed_training_run_says_where_its_logs_are_and_leaves_nothing_else(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(EnvironmentError_, match=rf"see the logs in {tmp_path}/lockstep-training-\w+") as caught:
        trained(tmp_path / "kafka", DEFAULT_KAFKA, java, str(tmp_path / "no.jar"), QUIET)
    logs = Path(re.findall(r"logs in (\S+),", str(caught.value))[0])
    assert "ClassNotFoundException" in (logs / "format.log").read_text()
    assert [path.name for path in (tmp_path / "kafka").iterdir() if not path.name.endswith(".lock")] == []


@pytest.mark.long
def test_training_in_an_empty_cache(java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = distribution_directory(DEFAULT_KAFKA) / "jars"
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    shutil.copytree(jars, distribution_directory(DEFAULT_KAFKA) / "jars")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kafka = distribution(DEFAULT_KAFKA, java, QUIET)
    assert usable(kafka.archive, java, kafka.classpath)
    assert not list(tmp_path.glob("lockstep-training-*"))


LEASH = [sys.executable, "-I", leash.__file__]
SLEEPER = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"]


def test_a_leashed_command_stops_when_told_to() -> None:
    with subprocess.Popen([*LEASH, *SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.stdin.write("stop\n")
        process.stdin.flush()
        assert process.wait(timeout=30) == 256 - 15
        assert not child.is_running()


def test_a_leashed_command_dies_with_whoever_started_it() -> None:
    starter = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen({[*LEASH, *SLEEPER]!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(p.stdout.readline().decode(), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        assert child.is_running()
        process.kill()
        wait_until(lambda: not child.is_running(), timeout_s=30, what="the leashed command to die")
