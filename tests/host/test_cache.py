from __future__ import annotations

import multiprocessing
from pathlib import Path

import platformdirs
import pytest

from lockstep.errors import EnvironmentError_
from lockstep.host.cache import CACHE_VARIABLE, atomically, cache_dir, make_once

RACERS = 4


def test_the_cache_is_the_user_s_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    assert cache_dir() == Path(platformdirs.user_cache_dir("lockstep"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert cache_dir() == tmp_path


def test_several_processes_make_a_thing_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(RACERS)
    racers = [context.Process(target=_race, args=(tmp_path, start)) for _ in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    assert (tmp_path / "made").read_text() == "once\n"


def _race(directory: Path, start: multiprocessing.synchronize.Barrier) -> None:
    def make(place: Path) -> None:
        with (directory / "made").open("a") as made:
            made.write("once\n")
        place.write_text("thing")

    start.wait(60)
    assert make_once(directory / "thing", make).read_text() == "thing"


def test_what_could_not_be_made_leaves_nothing_and_can_be_made_again(tmp_path: Path) -> None:
    def fail(place: Path) -> None:
        place.mkdir()
        (place / "half").touch()
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        make_once(tmp_path / "thing", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]
    assert make_once(tmp_path / "thing", Path.mkdir).is_dir()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyError):
        _fail_half_way(path)
    assert path.read_text() == "old"
    with atomically(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def _fail_half_way(path: Path) -> None:
    with atomically(path) as temporary:
        temporary.write_text("ne")
        raise KeyError


def test_a_cache_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentError_, match=rf"cannot write to the cache .*{CACHE_VARIABLE}"):
        make_once(tmp_path / "file" / "thing", Path.touch)
