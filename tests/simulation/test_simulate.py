"""The same options give the same bytes, and what is made can be judged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from lockstep.errors import UsageError
from lockstep.history.store import open_history
from lockstep.plan.plan import read_plan
from lockstep.rundir import read_run_info
from lockstep.simulation import BUGS, Planted, Settings, simulate
from lockstep_model.guarantees import NAMED
from tests.command import Lockstep

if TYPE_CHECKING:
    from lockstep.checker import SparkStarter, Verdict


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def made(directory: Path, *, workers: int = 1, seed: int = 7, bug: str | None = None) -> dict[str, str]:
    simulate(Settings(seed=seed, ops=3_000, partitions=2, bug=bug), directory, workers=workers)
    return digests(directory)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    first = made(tmp_path / "first", bug="lost-ack")
    assert "planted.json" in first
    assert made(tmp_path / "again", bug="lost-ack") == first
    other = made(tmp_path / "other", seed=8, bug="lost-ack")
    assert other.keys() == first.keys()
    assert not {name for name in first if other[name] == first[name]} - {"history/faults.parquet"}


def test_workers_make_the_same_bytes(tmp_path: Path) -> None:
    assert made(tmp_path / "alone") == made(tmp_path / "together", workers=2)


def test_everything_that_reads_run_directories_can_read_this_one(tmp_path: Path) -> None:
    made(tmp_path)
    info, plan = read_run_info(tmp_path), read_plan(tmp_path)
    assert (info.run, plan.scenario, plan.topics[0].partitions) == ("simulated-7-3000-2", "simulate", 2)
    assert info.command == "lockstep simulate --seed 7 --ops 3000 --partitions 2"
    with open_history(tmp_path) as history:
        assert history.meta.sealed
        assert [topic.name for topic in history.meta.topics] == ["orders"]
    assert not list(tmp_path.rglob("*.part"))


def test_a_directory_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        made(tmp_path)
    assert digests(tmp_path).keys() == {"mine"}


def test_the_command(lockstep: Lockstep, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = lockstep("simulate", "--seed", "3", "--ops", "3000", "--bug", "phantom", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["operations"], told["run"]) == (3_000, "simulated-3-3000-3-phantom")
    assert told["planted"] == json.loads((out / "planted.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ops", "10"), "--ops 10 is too few for 3 partitions: give 3000 or more"),
        (("--partitions", "0"), "--partitions is 1 to 256"),
        (("--seed", "-1"), "--seed is 0 or more"),
        (("--bug", "lost-akc"), "there is no bug 'lost-akc'; did you mean 'lost-ack'?"),
    ],
)
def test_wrong_usage_is_one_sentence_and_leaves_nothing(
    lockstep: Lockstep, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    out = tmp_path / "run"
    refused = lockstep("simulate", *arguments, "--out", str(out))
    assert refused.returncode == 4
    assert words in refused.stderr
    assert not out.exists()


def test_bugs_are_listed(lockstep: Lockstep) -> None:
    listed = json.loads(lockstep("list", "bugs", "--json").stdout)
    assert [row["name"] for row in listed] == list(BUGS)
    assert {row["name"] for row in listed if row["judged"]} >= {"lost-ack", "phantom", "duplicate", "reorder"}
    assert json.loads(lockstep("simulate", "--bug", "help", "--json").stdout) == listed


class Judged(NamedTuple):
    planted: Planted | None
    verdict: Verdict


JUDGED = [name for name, bug in BUGS.items() if bug.guarantee in NAMED]
SEEDS = ["1", "2", "3"]
QUICK = ("1", "lost-ack", "phantom", "reorder")


def some_now(names: list[str]) -> list[Any]:
    """All of them take the checker some minutes."""
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in names]


@pytest.fixture(scope="module")
def judged(
    request: pytest.FixtureRequest, lockstep_spark: SparkStarter, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Judged]:
    """Runs without a bug, and one for every bug that a test asks for, judged in one set of jobs."""
    from lockstep.checker import judge

    root = tmp_path_factory.mktemp("judged")
    asked = {name for item in request.session.items for name in JUDGED + SEEDS if item.name.endswith(f"[{name}]")}
    bugs = {name: Settings(seed=11, ops=3_000, partitions=2, bug=name) for name in JUDGED}
    correct = {seed: Settings(seed=int(seed), ops=20_000, partitions=2) for seed in SEEDS}
    planted = {name: simulate(one, root / name) for name, one in (bugs | correct).items() if name in asked}
    verdicts = judge([root / name for name in planted], lockstep_spark.start().session())
    return {name: Judged(one, verdict) for (name, one), verdict in zip(planted.items(), verdicts, strict=True)}


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("seed", some_now(SEEDS))
def test_a_run_without_a_bug_passes(judged: dict[str, Judged], seed: str) -> None:
    verdict = judged[seed].verdict
    assert verdict.verdict == "pass", verdict
    assert verdict.counts["unknown"] > 0


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("bug", some_now(JUDGED))
def test_the_checker_finds_the_bug_and_nothing_else(judged: dict[str, Judged], bug: str) -> None:
    planted, verdict = judged[bug]
    assert planted is not None
    assert verdict.verdict == "violation"
    (found,) = [one for one in verdict.anomalies if one.status == "violated"]
    assert found.guarantee == planted.guarantee
    assert (found.topic, found.partition) == (planted.topic, planted.partition)
    assert {one.op for one in found.operations} <= set(planted.operations)
    if found.name != "duplicate":  # of two places the checker shows the first
        assert found.offset == planted.offset
    if found.value is not None:
        assert found.value == planted.value
