from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockstep.cluster.distribution import Jar, Lock, known_versions, read_lock, write_lock
from lockstep.cluster.distribution.lock import SHIPPED_LOCKS, encode
from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE
from lockstep.cluster.distribution.resolver import lock
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.progress import Progress
from lockstep.spec.cluster import DEFAULT_KAFKA
from tests.cluster.distribution.repositories import small_lock

SHA256 = "0" * 64


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_default_version_is_locked_with_its_server_tools_and_logging() -> None:
    assert DEFAULT_KAFKA in known_versions()
    artifacts = {jar.coordinate.split(":")[1] for jar in read_lock(DEFAULT_KAFKA).jars}
    assert {"kafka_2.13", "kafka-tools", "kafka-clients", "log4j-core", "log4j-slf4j-impl"} <= artifacts


def test_shipped_locks_are_canonical_and_name_no_place() -> None:
    for path in SHIPPED_LOCKS.glob("*.json"):
        assert path.read_bytes() == encode(read_lock(path.stem))
        assert b"://" not in path.read_bytes()


def test_an_unknown_version_is_wrong_usage_with_a_suggestion(cache: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean 4\.3\.1\?"):
        read_lock("4.3.11")
    with pytest.raises(UsageError, match=r"known: .*4\.3\.1"):
        read_lock("banana")


def test_a_lock_that_was_added_is_known_from_then_on(cache: Path) -> None:
    added = small_lock()[0]
    assert added.kafka not in known_versions()
    write_lock(added)
    assert read_lock(added.kafka) == added
    assert known_versions() == sorted(
        [added.kafka, *known_versions()[1:]], key=lambda v: [int(n) for n in v.split(".")]
    )


@pytest.mark.parametrize(
    "jar",
    [
        {"coordinate": "org.example:../../evil:1", "sha256": SHA256, "size": 1},
        {"coordinate": "org.example:part", "sha256": SHA256, "size": 1},
        {"coordinate": "org.example:part:1", "sha256": "abc", "size": 1},
    ],
)
def test_a_damaged_lock_file_is_refused_by_name(cache: Path, jar: dict[str, object]) -> None:
    path = cache / "locks" / "9.9.9.json"
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode({"format": 1, "kafka": "9.9.9", "roots": [], "jars": [jar]}))
    with pytest.raises(EnvironmentError_, match=str(path)):
        read_lock("9.9.9")


def test_a_lock_of_another_format_or_with_clashing_names_is_refused() -> None:
    one = Jar(coordinate="org.example:part:1", sha256=SHA256, size=1)
    other = Jar(coordinate="com.example:part:1", sha256=SHA256, size=1)
    with pytest.raises(ValueError, match="format 2"):
        Lock(format=2, kafka="1", roots=(), jars=(one,))
    with pytest.raises(ValueError, match="share a file name"):
        Lock(kafka="1", roots=(), jars=(one, other))


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("latest", "'latest' is not a Kafka release such as 4.3.1"),
        ("2.8.2", "too old: Lockstep runs Kafka 3.6 and newer"),
    ],
)
def test_what_is_no_release_is_not_even_looked_for(
    version: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://127.0.0.1:9")  # nobody answers there
    with pytest.raises(UsageError, match=sentence):
        lock(version, Progress(quiet=True))


# One for each way in which a release names what it logs with.
@pytest.mark.long
@pytest.mark.parametrize("version", ["3.6.2", "3.9.2", "4.0.2", DEFAULT_KAFKA])
def test_locking_again_gives_the_shipped_lock(version: str) -> None:
    assert lock(version, Progress(quiet=True)) == read_lock(version)
