from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.cluster.distribution import (
    HashMismatch,
    Lock,
    distribution_directory,
    ensure_jars,
    read_lock,
    verify_jars,
)
from lockstep.cluster.distribution.jars import JAR_TIME_S
from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE
from lockstep.errors import EnvironmentError_
from lockstep.progress import Progress
from lockstep.spec.cluster import DEFAULT_KAFKA
from tests.cluster.distribution.repositories import Repository, serving, small_lock

QUIET = Progress(quiet=True)


@pytest.fixture
def lock() -> Lock:
    return small_lock()[0]


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    with serving() as repository:
        repository.files = small_lock()[1]
        monkeypatch.setenv(REPOSITORY_VARIABLE, repository.url + "/")
        yield repository


def test_downloads_all_in_class_path_order_and_is_offline_afterwards(
    lock: Lock, repository: Repository, tmp_path: Path
) -> None:
    paths = ensure_jars(lock, tmp_path / "jars", QUIET)
    assert [path.name for path in paths] == [jar.file_name for jar in lock.jars]
    assert sorted(repository.asked) == sorted(repository.files)

    repository.asked.clear()
    assert ensure_jars(lock, tmp_path / "jars", QUIET) == paths
    assert repository.asked == []


def test_fetches_only_what_is_missing(lock: Lock, repository: Repository, tmp_path: Path) -> None:
    paths = ensure_jars(lock, tmp_path, QUIET)
    paths[3].unlink()
    repository.asked.clear()
    ensure_jars(lock, tmp_path, QUIET)
    assert repository.asked == [lock.jars[3].repository_path]


def test_a_repository_that_fails_for_a_moment_is_asked_again(
    lock: Lock, repository: Repository, tmp_path: Path
) -> None:
    repository.failures_left = 2
    ensure_jars(lock, tmp_path, QUIET)
    assert len(repository.asked) == len(lock.jars) + 2


def test_a_jar_the_repository_lacks_is_named_and_not_asked_for_again(
    lock: Lock, repository: Repository, tmp_path: Path
) -> None:
    missing = lock.jars[5]
    del repository.files[missing.repository_path]
    with pytest.raises(EnvironmentError_, match=rf"{missing.file_name}.*HTTP 404.*{REPOSITORY_VARIABLE}"):
        ensure_jars(lock, tmp_path, QUIET)
    assert repository.asked.count(missing.repository_path) == 1


def test_an_unfaithful_repository_is_refused_and_nothing_of_it_kept(
    lock: Lock, repository: Repository, tmp_path: Path
) -> None:
    forged = lock.jars[0]
    repository.files[forged.repository_path] = b"x" * forged.size
    with pytest.raises(HashMismatch, match=forged.file_name) as caught:
        ensure_jars(lock, tmp_path, QUIET)
    assert caught.value.jar == forged
    assert not (tmp_path / forged.file_name).exists()
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("damage", [b"", b"something else"])
def test_a_damaged_jar_in_the_cache_is_refused_by_name_until_repaired(
    lock: Lock, repository: Repository, tmp_path: Path, damage: bytes
) -> None:
    paths = ensure_jars(lock, tmp_path, QUIET)
    whole = paths[7].read_bytes()
    paths[7].write_bytes(damage)
    repository.asked.clear()
    with pytest.raises(HashMismatch, match=rf"{paths[7].name} in {tmp_path}.*lockstep doctor --fix"):
        ensure_jars(lock, tmp_path, QUIET)
    assert repository.asked == []

    ensure_jars(lock, tmp_path, QUIET, repair=True)
    assert repository.asked == [lock.jars[7].repository_path]
    assert paths[7].read_bytes() == whole


def test_one_changed_byte_of_a_real_jar_is_refused_by_name(tmp_path: Path) -> None:
    lock = read_lock(DEFAULT_KAFKA)
    shutil.copytree(distribution_directory(DEFAULT_KAFKA) / "jars", tmp_path / "jars")
    verify_jars(lock, tmp_path / "jars")

    victim = tmp_path / "jars" / f"kafka-clients-{DEFAULT_KAFKA}.jar"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with pytest.raises(HashMismatch, match=victim.name):
        verify_jars(lock, tmp_path / "jars")


def test_jars_always_have_the_same_time_so_that_archives_stay_valid(
    lock: Lock, repository: Repository, tmp_path: Path
) -> None:
    paths = ensure_jars(lock, tmp_path, QUIET)
    assert {path.stat().st_mtime for path in paths} == {JAR_TIME_S}
    paths[0].touch()
    verify_jars(lock, tmp_path)
    assert paths[0].stat().st_mtime == JAR_TIME_S


def test_a_download_without_a_terminal_says_plain_lines(lock: Lock, repository: Repository, tmp_path: Path) -> None:
    stream = io.StringIO()
    ensure_jars(lock, tmp_path, Progress(stream, interval_s=0))
    lines = stream.getvalue().splitlines()
    assert lines[0] == f"downloading Kafka 0.0.1 ({lock.size / 1e6:.1f} MB) ..."
    assert any(" of " in line for line in lines)
    assert "done in" in lines[-1]
    assert "\x1b" not in stream.getvalue()
