"""Many walks as one run: the worst counts, and wrong models are told over all of them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from lockstep.errors import ExitCode
from lockstep.stepper.controls.evaluation import Control, Spread, controls, wrong_models_found
from lockstep.stepper.controls.wrong_models import WRONG_MODELS
from lockstep.stepper.driver.actions import Kill, Read, Write
from lockstep.stepper.walk.runner import Walked
from lockstep.stepper.walk.seeds import verdict_of_many
from lockstep.stepper.walk.session import verdict_of
from lockstep_model.errors import Error
from lockstep_model.partition.produce import Produced
from tests.command import Lockstep, Refused
from tests.stepper.walk.test_runner import KRAFT, done, recorded


def walked(word: str = "pass") -> Walked:
    steps = [done(Write(broker=1, acks=1), reply=Produced(Error.NONE, 0), events=2), done(Kill(broker=1), events=2)]
    return Walked(topic="orders", steps=steps, undecided="too many" if word == "undecided" else None, seconds=1.5)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("pass", "pass"), "pass"),
        (("pass", "undecided", "pass"), "undecided"),
        (("undecided", "violation", "pass"), "violation"),
    ],
)
def test_the_worst_walk_is_the_verdict(words: tuple[str, ...], expected: str) -> None:
    taken = {
        seed: (walked(), msgspec.structs.replace(verdict_of("run", walked()), verdict=word))
        for seed, word in enumerate(words, start=5)
    }
    verdict = verdict_of_many("run", taken)
    assert verdict.verdict == expected
    assert [one.seed for one in verdict.walks] == [5, 6, 7][: len(words)]
    assert (verdict.steps, verdict.seconds) == (2 * len(words), 1.5 * len(words))


def test_what_was_tried_is_told_of_all_walks_and_pairs_of_none_between_them() -> None:
    verdict = verdict_of_many("run", {seed: (walked(), verdict_of("run", walked())) for seed in (1, 2)})
    assert verdict.coverage.answers == {"kill": {"done": 2}, "write with acks=1": {"answered": 2}}
    assert verdict.coverage.pairs == {"write with acks=1": {"kill": 2}}


def control(name: str, step: int | None, seconds: float | None) -> Control:
    return Control(name=name, says="", diverged_after=step, step=step, seen=None, seconds=seconds)


def test_a_wrong_model_is_told_by_when_it_diverged_and_where() -> None:
    held = {
        "1": [control("elr", 9, 3.0), control("hw-gate", None, None)],
        "2": [control("elr", None, None), control("hw-gate", None, None)],
        "3": [control("elr", 2, 0.5), control("hw-gate", None, None)],
        "4": [control("elr", 4, 1.0), control("hw-gate", None, None)],
    }
    found = {model.name: model for model in wrong_models_found(held)}
    elr, gate = found["elr"], found["hw-gate"]
    assert (elr.held_to, elr.diverged_in) == (4, ("1", "3", "4"))
    assert (elr.steps, elr.seconds) == (Spread(least=2, median=4), Spread(least=0.5, median=1.0))
    assert (gate.held_to, gate.diverged_in, gate.steps, gate.seconds) == (4, (), None, None)
    assert wrong_models_found({}) == []


def test_wrong_models_are_held_to_every_walk() -> None:
    one = walked()
    one.events = recorded()[:2]
    two = Walked(topic="orders", steps=[done(Read(broker=1, offset=0), events=1)], events=recorded()[:1])
    found = controls({"one": one, "two": two}, KRAFT)
    assert [[control.name for control in tried] for tried in found.values()] == [[m.name for m in WRONG_MODELS]] * 2
    diverged = {where: [control.name for control in tried if control.step] for where, tried in found.items()}
    assert diverged == {"one": ["acks-1-waits"], "two": []}
    (early,) = [control for control in found["one"] if control.step]
    assert (early.step, early.seconds) == (1, 0.005)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seeds", "1-"], "'1-' are not seeds: write 1-10 or 3,5,8"),
        (["--seeds", "9-3"], "'9-3' are not seeds"),
        (["--seeds", "1-100000"], "at most 1000 of them"),
        (["--seeds", "1,2", "--seed", "3"], "--seed is for one walk and --seeds for many"),
    ],
    ids=str,
)
def test_wrong_usage(refused: Refused, arguments: list[str], sentence: str) -> None:
    refused(["step", *arguments], sentence)


@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_many_walks_on_a_live_cluster_leave_one_run_directory(lockstep: Lockstep, tmp_path: Path) -> None:
    finished = lockstep("step", "--seeds", "3,1", "--steps", "15", "--mode", "zk", "--controls", "--json")
    assert finished.returncode == ExitCode.PASS, finished.stdout + finished.stderr
    verdict = json.loads(finished.stdout)
    run = tmp_path / "runs" / "latest"
    assert verdict == json.loads((run / "verdict.json").read_text())
    assert [(one["seed"], one["walk"]["verdict"]) for one in verdict["walks"]] == [(3, "pass"), (1, "pass")]
    for seed in (1, 3):
        assert len((run / "walks" / str(seed) / "steps.jsonl").read_text().splitlines()) == 15
        assert (run / "walks" / str(seed) / "events.jsonl").is_file()
    assert {model["held_to"] for model in verdict["wrong_models"]} == {2}
    assert any(model["diverged_in"] for model in verdict["wrong_models"])
    assert "<h1>Pass</h1>" in (run / "report.html").read_text()
    for command, code in (("report", 0), ("check", 4), ("replay", 4)):
        assert lockstep(command).returncode == code, command


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_one_walk_that_diverges_is_enough_and_the_others_are_taken(lockstep: Lockstep, tmp_path: Path) -> None:
    arguments = ("step", "--seeds", "1-2", "--steps", "60", "--mode", "zk", "--wrong-model", "acks-0-answers")
    finished = lockstep(*arguments)
    assert finished.returncode == ExitCode.VIOLATION, finished.stdout + finished.stderr
    assert "seed 2: " in finished.stderr
    verdict = json.loads((tmp_path / "runs" / "latest" / "verdict.json").read_text())
    assert "violation" in [one["walk"]["verdict"] for one in verdict["walks"]]
    assert "What happened with seed" in (tmp_path / "runs" / "latest" / "report.html").read_text()
