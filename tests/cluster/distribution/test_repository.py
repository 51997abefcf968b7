from __future__ import annotations

from pathlib import Path

import pytest
from jgo.constants import MAVEN_CENTRAL_URL

from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE, repository_url, without_credentials

SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>
<mirror><id>a</id><mirrorOf>internal</mirrorOf><url>http://a.example/</url></mirror>
<mirror><id>b</id><mirrorOf>{of}</mirrorOf><url>http://b.example/maven/</url>{extra}</mirror>
</mirrors></settings>"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(REPOSITORY_VARIABLE, raising=False)
    (tmp_path / ".m2").mkdir()
    return tmp_path / ".m2" / "settings.xml"


def test_central_when_nothing_else_is_said(settings: Path) -> None:
    assert repository_url() == MAVEN_CENTRAL_URL


@pytest.mark.parametrize("of", ["central", "*", "external:*", "internal, central"])
def test_the_mirror_of_central_in_maven_settings(settings: Path, of: str) -> None:
    settings.write_text(SETTINGS.format(of=of, extra=""))
    assert repository_url() == "http://b.example/maven"


@pytest.mark.parametrize(("of", "extra"), [("*,!central", ""), ("other", ""), ("*", "<blocked>true</blocked>")])
def test_a_mirror_that_is_not_one_of_central(settings: Path, of: str, extra: str) -> None:
    settings.write_text(SETTINGS.format(of=of, extra=extra))
    assert repository_url() == MAVEN_CENTRAL_URL


def test_broken_maven_settings_are_maven_s_problem(settings: Path) -> None:
    settings.write_text("<settings>")
    assert repository_url() == MAVEN_CENTRAL_URL


def test_the_variable_wins(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text(SETTINGS.format(of="*", extra=""))
    monkeypatch.setenv(REPOSITORY_VARIABLE, "http://c.example/maven/")
    assert repository_url() == "http://c.example/maven"


def test_credentials_are_never_shown() -> None:
    assert without_credentials("https://me:secret@c.example:8/maven") == "https://c.example:8/maven"
