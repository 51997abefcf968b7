from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.errors import EnvironmentError_
from lockstep.host.java import find_java
from tests.host import fakes


@pytest.fixture(autouse=True)
def _no_java_but_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lockstep.host.java._PLACES", (f"{tmp_path}/jvm/*",))
    monkeypatch.setenv("PATH", f"{tmp_path}/path:/usr/bin:/bin")  # the fakes are shell scripts and use cat
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)


def test_it_says_what_it_is(tmp_path: Path) -> None:
    home = fakes.java(tmp_path / "jvm" / "seventeen", "17.0.15")
    java = find_java()
    assert (java.executable, java.home, java.version, java.major) == (home / "bin" / "java", home, "17.0.15", 17)
    assert (java.vendor, java.build) == ("Fake", "17.0.15+1")


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.java(tmp_path / "jvm" / "seventeen", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(fakes.java(tmp_path / "mine", "21.0.2")))
    assert find_java().version == "21.0.2"


def test_path_comes_before_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.java(tmp_path / "jvm" / "seventeen", "17.0.15")
    home = fakes.java(tmp_path / "mine", "21.0.2")
    monkeypatch.setattr("shutil.which", lambda _: str(home / "bin" / "java"))
    assert find_java().version == "21.0.2"


def test_one_spark_is_tested_with_is_preferred_even_over_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fakes.java(tmp_path / "mine", "25.0.3")))
    assert find_java().major == 25
    fakes.java(tmp_path / "jvm" / "seventeen", "17.0.15")
    assert find_java().major == 17


@pytest.mark.parametrize(
    ("version", "modules", "reason"),
    [
        ("11.0.2", "jdk.incubator.vector", "is Java 11.0.2"),
        ("17.0.15", "java.sql", "lacks the module jdk.incubator.vector"),
    ],
)
def test_an_unsuitable_one_is_passed_over_and_the_reason_told(
    tmp_path: Path, version: str, modules: str, reason: str
) -> None:
    home = fakes.java(tmp_path / "jvm" / "a", version, modules=modules)
    with pytest.raises(EnvironmentError_, match=rf"{home}/bin/java {reason}.*openjdk-17-jre-headless.*JAVA_HOME"):
        find_java()
    fakes.java(tmp_path / "jvm" / "b", "17.0.15")
    assert find_java().home == tmp_path / "jvm" / "b"


def test_one_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    fakes.executable(tmp_path / "jvm" / "a" / "bin" / "java", "echo Unrecognized option: --list-modules >&2; exit 1")
    with pytest.raises(EnvironmentError_, match="does not run"):
        find_java()


def test_none_at_all() -> None:
    with pytest.raises(EnvironmentError_, match=r"^no full Java 17 or newer found: install one"):
        find_java()
