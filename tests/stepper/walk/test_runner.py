"""What a walk amounts to: its verdict, what it tried, and on a live cluster all that it leaves behind."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lockstep.clients.access import Access
from lockstep.clients.wire.metadata import ask_metadata
from lockstep.network.topology import Address
from lockstep.node_logs import MOST_LINES, Excerpt, excerpts
from lockstep.stepper.controls.evaluation import control, step_of
from lockstep.stepper.controls.wrong_models import wrong_model
from lockstep.stepper.driver.actions import (
    Ask,
    AskEpochEnd,
    Elect,
    Kill,
    Reach,
    Read,
    Sender,
    Step,
    Until,
    Wait,
    Write,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.timeouts import NOT_YET
from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.controller_inference import Cause, Explained
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import Began, Events, Exchanged, Named
from lockstep.stepper.model.tracker import BeliefTracker
from lockstep.stepper.walk.coverage import CauseCount, answer, coverage, kind
from lockstep.stepper.walk.runner import Walked
from lockstep.stepper.walk.session import verdict_of
from lockstep_model.controller import Controller, create
from lockstep_model.errors import Error
from lockstep_model.parameters import parameters_for
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.produce import Acks, Produce, Produced, Unanswered
from lockstep_model.registration import BrokerRegistration
from tests.command import LOCKSTEP, Lockstep

KRAFT = parameters_for("4.3.1", "kraft", min_isr=2)
SESSION_1, SESSION_2 = Cause("a session ended", 1), Cause("a session ended", 2)
ELECTION = Cause("a preferred election")


def done(step: Step, seen: str = "done", *, reply: Any = None, events: int = 0, explained: Any = ()) -> Done:
    return Done(
        step=step, seen=seen, reply=reply, decisions=(), explained=explained, events=events, belief=3, took_ns=5_000_000
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Write(broker=1, acks=-1), "write with acks=-1"),
        (Write(broker=1, acks=1, sender=Sender(producer_id=1, epoch=0, sequence=0)), "write with acks=1, idempotent"),
        (Read(broker=2, offset=7, reach=Reach.LOG_END), "read to the log end"),
        (Ask(broker=2, earliest=True), "ask for the log start"),
        (Ask(broker=2, reach=Reach.HIGH_WATERMARK, leader_epoch=3), "ask for the high watermark"),
        (AskEpochEnd(broker=2, epoch=1), "ask for an epoch's end"),
        (Elect(unclean=True), "elect uncleanly"),
        (Wait(until=Until.LED), "wait until a broker that runs leads"),
        (Kill(broker=3), "kill"),
    ],
    ids=str,
)
def test_a_kind_of_step_leaves_out_what_differs_each_time(step: Step, expected: str) -> None:
    assert kind(step) == expected


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (done(Write(broker=1, acks=0), "taken", reply=Unanswered()), "answered"),
        (done(Write(broker=1, acks=1), reply=Produced(Error.NONE, 3)), "answered"),
        (done(Write(broker=1, acks=-1), reply=Produced(Error.NOT_ENOUGH_REPLICAS)), "NOT_ENOUGH_REPLICAS"),
        (done(Write(broker=1, acks=-1), NOT_YET), NOT_YET),
        (done(Read(broker=1, offset=9), reply=FetchResponse(Error.OFFSET_OUT_OF_RANGE)), "OFFSET_OUT_OF_RANGE"),
        (done(Ask(broker=1), "no answer (connection reset)"), "no answer"),
        (done(Elect(), "the preferred election was refused"), "refused"),
        (done(Wait(until=Until.LED), "it came about"), "it came about"),
        (done(Kill(broker=1), "ended with its log at 7"), "done"),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.step),
)
def test_an_answer_leaves_out_what_differs_each_time(taken: Done, expected: str) -> None:
    assert answer(taken) == expected


def test_coverage_counts_answers_pairs_and_causes() -> None:
    either = Explained(certain=frozenset(), possible=frozenset({SESSION_1, SESSION_2}))
    both = Explained(*[frozenset({SESSION_1, SESSION_2, ELECTION})] * 2)
    read = Read(broker=1, offset=0)
    tried = coverage(
        [
            done(read, reply=FetchResponse(Error.NONE)),
            done(Kill(broker=1), explained=(either, both)),
            done(read, reply=FetchResponse(Error.NOT_LEADER_OR_FOLLOWER)),
            done(read, reply=FetchResponse(Error.NONE)),
        ]
    )
    assert tried.answers == {
        "kill": {"done": 1},
        "read to the high watermark": {"NOT_LEADER_OR_FOLLOWER": 1, "answered": 2},
    }
    assert tried.pairs == {
        "kill": {"read to the high watermark": 1},
        "read to the high watermark": {"kill": 1, "read to the high watermark": 1},
    }
    assert tried.causes == {
        "a preferred election": CauseCount(certain=1, possible=1),
        "a session ended": CauseCount(certain=1, possible=2),  # of 1 or of 2 in one decision: certain in the other only
    }


def recorded() -> list[Events]:
    """A partition on the brokers 11, 12 and 13, one record written, and a read that finds two."""
    registered = tuple((broker, BrokerRegistration(epoch=10 + broker)) for broker in range(3))
    created, _ = create(KRAFT, Controller(brokers=registered), (0, 1, 2))
    write = Named.of(Produce(Acks.LEADER, (7,)))
    read = Named.of(Fetch(0, Isolation.LOG_END))
    found = FetchResponse(Error.NONE, ((0, 7), (0, 8)), 0, 0, 0)
    return [
        Began(controller=created, ids=(11, 12, 13)),
        Exchanged(broker=0, request=write, reply=Named.of(Produced(Error.NONE, 0))),
        Exchanged(broker=0, request=read, reply=Named.of(found)),
    ]


def diverged() -> Walked:
    events = recorded()
    began = events[0]
    assert isinstance(began, Began)
    tracker = BeliefTracker(KRAFT, began)
    tracker.tell(events[1])
    with pytest.raises(Divergence) as raised:
        tracker.tell(events[2])
    return Walked(
        topic="orders",
        steps=[done(Write(broker=11, acks=1), reply=Produced(Error.NONE, 0), events=2)],
        events=events,
        divergence=raised.value,
        diverged_at=Read(broker=11, offset=0, reach=Reach.LOG_END),
    )


def test_a_divergence_is_told_in_words_with_the_ids_of_brokers() -> None:
    verdict = verdict_of("run", diverged(), (Excerpt(node="broker-11", lines=("a line",)),))
    assert verdict.verdict == "violation"
    assert (verdict.steps, verdict.quick_steps_per_second, verdict.largest_belief) == (1, 200.0, 3)
    told = verdict.diverged
    assert told is not None
    assert (told.step, told.words) == (2, "read from 11 at 0 to the log end")
    assert told.seen == "[7-8 of epoch 0], high watermark 0, last stable offset 0, log start 0"
    assert "[7 of epoch 0], high watermark 0, last stable offset 0, log start 0" in told.permitted
    assert told.logs == (Excerpt(node="broker-11", lines=("a line",)),)
    believed = {part.part: part for part in told.belief}
    assert believed["the controller"].ways[0].words.startswith("leader 11 in epoch 0, ISR [11, 12, 13]")
    leads = [way.words for way in believed["broker 11"].ways]
    assert any("leads in epoch 0, with ISR [11, 12, 13], 12 is at 0" in words for words in leads), leads
    assert all("log 0 to 1 (epoch 0 to 1), high watermark " in words for words in leads)
    assert {sum(way.states for way in believed[f"broker {id_}"].ways) for id_ in (11, 12, 13)} == {told.states}
    assert any(line.startswith("broker 12: follows 11 in epoch 0") for state in told.examples for line in state)


def test_a_control_says_during_which_step_a_wrong_model_diverged() -> None:
    walked = diverged()
    early = control(walked, KRAFT, wrong_model("acks-1-waits"))
    assert (early.diverged_after, early.step, early.seen) == (2, 1, "written at 0")
    late = control(walked, KRAFT, wrong_model("elect-anyone"))
    assert (late.diverged_after, late.step) == (3, 2)


def test_the_step_of_an_event() -> None:
    steps = [done(Kill(broker=1), events=events) for events in (2, 2, 5)]
    assert [step_of(steps, events) for events in range(1, 7)] == [1, 1, 3, 3, 3, 4]


def test_node_logs_around_a_moment(tmp_path: Path) -> None:
    log = tmp_path / "nodes" / "broker-1" / "server.log"
    log.parent.mkdir(parents=True)
    lines = [f"2026-11-16T18:13:{second:02}.500Z INFO at {second}" for second in range(60)]
    log.write_text("\n".join([*lines[:10], "java.io.IOException: gone", "\tat some.Frame", *lines[10:]]) + "\n")
    (tmp_path / "nodes" / "broker-2").mkdir()
    (tmp_path / "nodes" / "broker-2" / "stdout.log").write_text("no time here\n")

    def at(second: float) -> int:
        return int(datetime(2026, 11, 16, 18, 13, tzinfo=UTC).timestamp() * 1e9 + second * 1e9)

    one, two = excerpts(tmp_path, after_ns=at(9.5), before_ns=at(11))
    assert one == Excerpt(node="broker-1", lines=(lines[9], "java.io.IOException: gone", lines[10]))
    assert two == Excerpt(node="broker-2", lines=())
    log.write_text("\n".join(lines * 2))
    one, _ = excerpts(tmp_path, after_ns=at(0), before_ns=at(60))
    assert (len(one.lines), one.left_out) == (MOST_LINES, 60)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_a_walk_on_a_live_cluster_leaves_a_run_directory(lockstep: Lockstep, tmp_path: Path) -> None:
    finished = lockstep("step", "--seed", "1", "--steps", "25", "--mode", "zk", "--controls", "--json")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    verdict = json.loads(finished.stdout)
    assert (verdict["verdict"], verdict["steps"]) == ("pass", 25)
    run = tmp_path / "runs" / "latest"
    assert verdict == json.loads((run / "verdict.json").read_text())
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    events = (run / "events.jsonl").read_text().splitlines()
    assert [step["events"] for step in steps] == sorted(step["events"] for step in steps)
    assert steps[-1]["events"] == len(events)
    assert json.loads(events[0])["ids"] == [1, 2, 3]
    tried = verdict["coverage"]
    assert sum(sum(answers.values()) for answers in tried["answers"].values()) == 25
    assert sum(sum(then.values()) for then in tried["pairs"].values()) == 24
    assert any(control["step"] for control in verdict["controls"])
    assert "<h1>Pass</h1>" in (run / "report.html").read_text()
    for command, code in (("report", 0), ("check", 4), ("replay", 4)):
        assert lockstep(command).returncode == code, command


@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_a_live_divergence_is_kept_with_the_belief_and_the_logs(lockstep: Lockstep, tmp_path: Path) -> None:
    arguments = ("step", "--seed", "1", "--steps", "60", "--mode", "zk", "--wrong-model", "acks-0-answers", "--shrink")
    finished = lockstep(*arguments)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    run = tmp_path / "runs" / "latest"
    verdict = json.loads((run / "verdict.json").read_text())
    told = verdict["diverged"]
    assert "with acks=0" in told["words"]
    assert told["seen"] in ("taken", "refused, and the connection closed")
    assert f"diverged   at step {told['step']}: {told['words']}" in finished.stdout
    assert told["shrunk"][-1] == told["words"]
    assert len(told["shrunk"]) <= told["step"]
    assert f"enough     {len(told['shrunk'])}. {told['words']}" in finished.stdout
    assert {part["part"] for part in told["belief"]} >= {"the controller", "broker 1", "broker 2", "broker 3"}
    assert {log["node"] for log in told["logs"]} == {"broker-1", "broker-2", "broker-3", "zookeeper-1"}
    assert any(log["lines"] for log in told["logs"])
    assert "acks-0-answers: a write with acks=0 is answered" in (run / "report.html").read_text()


def _answers(address: Address) -> bool:
    try:
        return bool(ask_metadata(address).brokers)
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_a_cluster_that_diverged_is_held_until_a_key_is_pressed(tmp_path: Path) -> None:
    keyboard, terminal = pty.openpty()
    arguments = [str(LOCKSTEP), "step", "--seed", "1", "--steps", "60", "--wrong-model", "acks-0-answers", "--hold"]
    with subprocess.Popen(arguments, cwd=tmp_path, stdin=terminal, stderr=subprocess.PIPE, text=True) as held:
        assert held.stderr is not None
        told: list[str] = []
        while "press any key" not in (line := held.stderr.readline()):
            assert line, told
            told.append(line)
        (where,) = (line.split()[-1] for line in told if line.startswith("held "))
        listening = [address for address in Access(bootstrap=where).addresses if _answers(address)]
        assert listening, told
        os.write(keyboard, b" ")
        held.stderr.read()
    assert held.returncode == 1
