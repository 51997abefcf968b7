"""Every bug is planted exactly once, where its side file says, and nothing else is different."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from lockstep.errors import UsageError
from lockstep.simulation import BUGS, Planted, Settings, simulate
from tests.simulation.claims import CLAIMS, TABLES
from tests.simulation.runs import Simulated, different, make

SEED = 5

_NO_OPERATIONS = {"stuck-lso"}
"""Whose consequences are in too many operations to list."""


@pytest.fixture(scope="module")
def correct(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    return make(tmp_path_factory.mktemp("correct") / "run", seed=SEED)


def test_there_is_a_claim_for_every_bug() -> None:
    assert set(CLAIMS) == set(BUGS)
    assert len(BUGS) >= 20


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_what_its_side_file_says_and_nothing_else(bug: str, correct: Simulated, tmp_path: Path) -> None:
    run = make(tmp_path / "run", seed=SEED, bug=bug)
    planted = run.planted
    assert planted is not None
    assert (planted.bug, planted.guarantee, planted.topic) == (bug, BUGS[bug].guarantee, "orders")
    assert CLAIMS[bug](run, planted)
    assert not _holds(bug, correct, planted)
    changed = {table for table in run.tables if run.tables[table] != correct.tables[table]}
    assert changed == TABLES[bug]
    for table in changed:
        gone, new = different(correct.tables[table], run.tables[table])
        rows = [*gone, *new]
        assert {row["partition"] for row in rows if "partition" in row} <= {planted.partition}
        if table != "observations" and bug not in _NO_OPERATIONS:
            assert {row["op"] for row in rows} <= set(planted.operations)


def _holds(bug: str, run: Simulated, planted: Planted) -> bool:
    try:
        return CLAIMS[bug](run, planted)
    except (AssertionError, ValueError):  # what the claim speaks of is not even there
        return False


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("bug", BUGS)
def test_there_is_a_place_for_every_bug_in_the_smallest_run(bug: str, seed: int, tmp_path: Path) -> None:
    assert simulate(Settings(seed=seed, ops=3_000, bug=bug), tmp_path / "run") is not None


def test_where_there_is_no_place_nothing_is_planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = dataclasses.replace(BUGS["lost-ack"], where=lambda *_: False)
    monkeypatch.setitem(BUGS, "lost-ack", nowhere)
    with pytest.raises(UsageError, match="no place for lost-ack in this run: give another --seed, or more --ops"):
        simulate(Settings(seed=1, ops=3_000, bug="lost-ack"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
