from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockstep.cluster.distribution import Distribution, Program, described, distribution, usable, version_in
from lockstep.cluster.distribution.local import jars_in
from lockstep.errors import UsageError
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.host.java import Java
from lockstep.progress import Progress


def _touch(directory: Path, *names: str) -> Path:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return directory


def test_an_unpacked_release(tmp_path: Path) -> None:
    names = ("libs/kafka_2.13-4.1.2.jar", "libs/kafka-clients-4.1.2.jar")
    _touch(tmp_path, *names, "libs/kafka_2.13-4.1.2-test.jar", "bin/kafka-run-class.sh")
    assert version_in(tmp_path) == "4.1.2"
    assert {str(jar.relative_to(tmp_path)) for jar in jars_in(tmp_path)} == set(names)


def test_a_source_build_prefers_what_it_built_to_copies_and_leaves_tests_and_sources_out(tmp_path: Path) -> None:
    built = (
        "core/build/libs/kafka_2.13-4.4.0-SNAPSHOT.jar",
        "clients/build/libs/kafka-clients-4.4.0-SNAPSHOT.jar",
        "connect/api/build/libs/connect-api-4.4.0-SNAPSHOT.jar",
        "core/build/dependant-libs-2.13.17/slf4j-api-1.7.36.jar",
        "tools/build/dependant-libs-2.13.17/log4j-core-2.25.4.jar",
    )
    _touch(
        tmp_path,
        *built,
        "core/build/dependant-libs-2.13.17/kafka-clients-4.4.0-SNAPSHOT.jar",
        "core/build/libs/kafka_2.13-4.4.0-SNAPSHOT-sources.jar",
        "clients/build/libs/kafka-clients-4.4.0-SNAPSHOT-test.jar",
    )
    assert version_in(tmp_path) == "4.4.0-SNAPSHOT"
    assert {str(jar.relative_to(tmp_path)) for jar in jars_in(tmp_path)} == set(built)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["README.md"], "has no kafka_2.13-VERSION.jar in libs or core/build/libs: give --kafka-dir an unpacked Kafka"),
        (["libs/kafka-clients-4.1.2.jar"], "has no kafka_2.13-VERSION.jar"),
        (
            ["core/build/libs/kafka_2.13-4.1.2.jar", "core/build/libs/kafka_2.13-4.3.1.jar"],
            r"holds several Kafka versions \(4.1.2, 4.3.1\): clean it",
        ),
    ],
)
def test_a_directory_without_one_kafka_is_wrong_usage(tmp_path: Path, names: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        version_in(_touch(tmp_path, *names))


def test_no_directory_and_another_version_are_wrong_usage(java: Java, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere is not a directory"):
        version_in(tmp_path / "nowhere")
    _touch(tmp_path, "libs/kafka_2.13-4.1.2.jar")
    with pytest.raises(UsageError, match=r"is Kafka 4\.1\.2, not 4\.3\.1"):
        distribution("4.3.1", java, Progress(quiet=True), kafka_dir=tmp_path)


def test_a_jar_that_was_built_again_is_trained_again(java: Java, tmp_path: Path) -> None:
    server = _touch(tmp_path, "libs/kafka_2.13-4.1.2.jar") / "libs" / "kafka_2.13-4.1.2.jar"
    before = described("4.1.2", java, tmp_path).trained
    assert described("4.1.2", java, tmp_path).trained == before
    os.utime(server, (1, 1))
    later = described("4.1.2", java, tmp_path).trained
    server.write_bytes(b"more")
    os.utime(server, (1, 1))
    assert len({before, later, described("4.1.2", java, tmp_path).trained}) == 3


@pytest.mark.long
def test_a_source_tree_of_real_jars_runs(kafka: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    tree = tmp_path / "kafka"
    for jar in kafka.jars:
        ours = jar.name.startswith("kafka_2.13-")
        place = tree / "core" / "build" / ("libs" if ours else "dependant-libs-2.13.17")
        place.mkdir(parents=True, exist_ok=True)
        (place / jar.name).symlink_to(jar)
    local = distribution(version_in(tree), kafka.java, Progress(quiet=True), kafka_dir=tree)  # starts a real node
    assert {jar.name for jar in local.jars} == {jar.name for jar in kafka.jars}
    assert local.trained != kafka.trained
    assert usable(local.archive(Program.KRAFT), local.java, local.classpath)

    server = next((tree / "core" / "build" / "libs").iterdir())
    server.unlink()
    server.write_bytes(next(jar for jar in kafka.jars if jar.name == server.name).read_bytes())
    again = distribution(local.version, local.java, Progress(quiet=True), kafka_dir=tree)
    assert usable(again.archive(Program.KRAFT), again.java, again.classpath)
    assert not local.trained.exists()
