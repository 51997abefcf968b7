from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lockstep.cluster.distribution import Distribution, Program, distribution, leash, usable
from lockstep.cluster.distribution.archive_training import train
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.host.java import Java
from lockstep.progress import Progress
from lockstep.wait import wait_until

QUIET = Progress(quiet=True)


def test_java_accepts_the_archive_for_exactly_this_class_path(kafka: Distribution, tmp_path: Path) -> None:
    archive = kafka.archive(Program.KRAFT)
    assert usable(archive, kafka.java, kafka.classpath)
    elsewhere = [str(shutil.copy2(jar, tmp_path)) for jar in kafka.jars]  # the same but for the place
    assert not usable(archive, kafka.java, os.pathsep.join(elsewhere))
    (tmp_path / "not-one.jsa").write_bytes(b"x" * 4096)
    assert not usable(tmp_path / "not-one.jsa", kafka.java, kafka.classpath)


def test_the_command_names_archive_logging_heap_and_what_the_caller_adds(kafka: Distribution, tmp_path: Path) -> None:
    command = kafka.command(
        Program.KRAFT,
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
        f"-XX:SharedArchiveFile={kafka.archive(Program.KRAFT)}",
        f"-Dkafka.logs.dir={tmp_path}",
        f"-Dlog4j2.configurationFile={kafka.logging.file}",
        "-Djdk.net.hosts.file=hosts",
        "-XX:+ExitOnOutOfMemoryError",
    } <= set(command)


def test_every_program_has_its_own_main_class_and_heap(kafka: Distribution, tmp_path: Path) -> None:
    old = dataclasses.replace(kafka, jars=(Path("zookeeper-3.8.4.jar"), Path("reload4j-1.2.25.jar")), trained=tmp_path)
    assert old.programs == tuple(Program)
    zookeeper, broker = (old.command(p, log_directory=tmp_path) for p in (Program.ZOOKEEPER, Program.ZK_BROKER))
    assert zookeeper[-1] == "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    assert broker[-1] == "kafka.Kafka"
    assert _heap_mb(zookeeper) < _heap_mb(broker)
    assert f"-Dlog4j.configuration=file:{old.logging.file}" in broker
    assert not any("SharedArchiveFile" in word for word in broker)  # there is none, and Java would complain


def _heap_mb(command: list[str]) -> int:
    return next(int(word[4:-1]) for word in command if word.startswith("-Xmx"))


def test_a_version_without_zookeeper_refuses_its_programs_before_anything_is_fetched(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    with pytest.raises(UsageError, match=r"Kafka 4\.3\.1 has no zk-broker: ZooKeeper mode ended with Kafka 3\.9"):
        distribution("4.3.1", java, QUIET, programs=(Program.ZK_BROKER,))
    assert list(tmp_path.iterdir()) == []


def test_a_failed_training_run_says_where_its_logs_are_and_leaves_nothing_else(
    kafka: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    empty = dataclasses.replace(kafka, jars=(tmp_path / "no.jar",), trained=tmp_path / "trained")
    shutil.copytree(kafka.trained / "formats", empty.trained / "formats")
    with pytest.raises(EnvironmentError_, match=rf"see the logs in {tmp_path}/lockstep-training-\w+") as caught:
        train(empty, [Program.KRAFT], QUIET)
    logs = Path(re.findall(r"logs in (\S+),", str(caught.value))[0])
    assert "ClassNotFoundException" in (logs / "kraft.log").read_text()
    assert [path.name for path in empty.trained.iterdir() if not path.name.endswith(".lock")] == ["formats"]


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
