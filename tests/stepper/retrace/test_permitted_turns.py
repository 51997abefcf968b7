"""Bad turns that Kafka is known to take: they are told and permitted, and nothing else is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from lockstep.cli.main import run_cli
from lockstep.errors import ExitCode
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.retrace import suite
from lockstep.stepper.retrace.performer import Performance
from lockstep.stepper.retrace.permitted_turns import FINDINGS, PERMITTED, known_of
from lockstep.stepper.retrace.promises import Broken, broken
from lockstep.stepper.retrace.runner import BrokenModelResult, Replayed, Turn
from lockstep.stepper.retrace.traces import Trace, find, names
from lockstep.stepper.walk.runner import Walked
from lockstep.stepper.walk.session import Session
from lockstep_model.parameters import Mode, parameters_for
from lockstep_model.replication import invariants
from tests.reports.test_report_ci import outcomes
from tests.stepper.retrace.scripted_cluster import ScriptedCluster

KRAFT = parameters_for("4.3.1", "kraft", min_isr=2)
KNOWN, OTHER = "kip320:hw-epoch", "kip101"
LACKS, LOST = invariants.LEADER_CANDIDATE_COMPLETENESS, invariants.COMMITTED_READS_STABLE


def replayed(
    name: str,
    *promises: str,
    walked: Walked | None = None,
    not_reached: str | None = None,
    mode: Mode = Mode.KRAFT,
) -> Replayed:
    return Replayed(
        trace=Trace(name, "strong-isr", (), (), 3, 3, 1, None),
        brokers=(1, 2, 3),
        walked=walked or Walked(topic="orders"),
        performed=(),
        broken=tuple(Broken(promise, "a record is missing") for promise in promises),
        not_reached=not_reached,
        broken_model=BrokenModelResult.NONE,
        known=known_of(name, mode),
    )


@pytest.mark.parametrize(
    ("name", "promises", "turn"),
    [
        (KNOWN, [LACKS], Turn.PERMITTED),
        (KNOWN, [LACKS, LACKS], Turn.PERMITTED),
        (KNOWN, [LOST], Turn.TAKEN),
        (KNOWN, [LACKS, LOST], Turn.TAKEN),
        (KNOWN, [], Turn.NOT_TAKEN),
        (OTHER, [LACKS], Turn.TAKEN),
        (OTHER, [], Turn.NOT_TAKEN),
    ],
)
def test_only_what_is_known_of_a_counterexample_is_permitted(name: str, promises: list[str], turn: Turn) -> None:
    assert replayed(name, *promises).turn is turn


def test_what_the_model_does_not_explain_is_not_permitted() -> None:
    diverged = Walked(topic="orders")
    diverged.divergence = Divergence.__new__(Divergence)
    assert replayed(KNOWN, LACKS, walked=diverged).turn is Turn.TAKEN


def test_what_was_not_seen_to_the_end_is_not_permitted() -> None:
    cut_short = replayed(KNOWN, LACKS, not_reached="all replicas should be in the ISR again")
    assert (cut_short.turn, cut_short.evidence) == (Turn.UNDECIDED, "all replicas should be in the ISR again")


def test_what_is_known_of_kraft_is_not_permitted_with_zookeeper() -> None:
    assert replayed(KNOWN, LACKS, mode=Mode.ZK).turn is Turn.TAKEN
    assert replayed(KNOWN, mode=Mode.ZK).notice is None


def test_one_that_is_not_taken_any_more_is_told() -> None:
    assert replayed(OTHER).notice is None
    assert replayed(KNOWN, LACKS).notice is None
    assert "known to take the bad turn of kip320:hw-epoch, and did not" in (replayed(KNOWN).notice or "")


def test_each_is_a_counterexample_and_written_down() -> None:
    written = (Path(__file__).parents[3] / FINDINGS).read_text()
    assert set(PERMITTED) <= set(names())
    assert {known.heading for known in PERMITTED.values()} <= set(re.findall(r"^## (.*)$", written, re.MULTILINE))


@pytest.mark.long
def test_a_cluster_that_keeps_how_far_followers_were_takes_the_known_turn_and_no_other() -> None:
    """As Partition.makeLeader does for a leader that has not heard of the one in between."""
    trace = find(KNOWN)
    cluster = ScriptedCluster(brokers=trace.brokers, min_isr=trace.min_isr, remembers=True)
    cluster.play(Performance(trace), KRAFT)
    assert {one.promise for one in broken(cluster.events, KRAFT)} == PERMITTED[KNOWN].breaks


Retrace = Callable[[Sequence[Replayed]], tuple[int, Path]]


@pytest.fixture
def retrace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Retrace:
    """`lockstep retrace` on a cluster of which it is known what came of each counterexample."""

    @contextmanager
    def pretended(*_: object, progress: Any, **__: object) -> Iterator[Session]:
        run: Any = SimpleNamespace(path=tmp_path / "run", info=SimpleNamespace(run="run"))
        cluster: Any = None
        yield Session(run=run, cluster=cluster, parameters=KRAFT, progress=progress)

    def retraced(came: Sequence[Replayed]) -> tuple[int, Path]:
        by_name = {one.trace.name: one for one in came}
        monkeypatch.setattr(suite, "open_session", pretended)
        monkeypatch.setattr(suite, "find", lambda name: by_name[name].trace)
        monkeypatch.setattr(suite, "replay", lambda _, trace, *__, **___: by_name[trace.name])
        return run_cli(["retrace", *by_name]), tmp_path / "run"

    return retraced


@pytest.mark.parametrize(
    ("came", "code", "cases"),
    [
        ([replayed(KNOWN, LACKS), replayed(OTHER)], ExitCode.PASS, ["system-out", "pass"]),
        ([replayed(KNOWN, LACKS), replayed(OTHER, LACKS)], ExitCode.VIOLATION, ["system-out", "failure"]),
        ([replayed(KNOWN, LOST), replayed(OTHER)], ExitCode.VIOLATION, ["failure", "pass"]),
        ([replayed(KNOWN), replayed(OTHER)], ExitCode.PASS, ["system-out", "pass"]),
        ([replayed(KNOWN, LACKS, not_reached="too slow")], ExitCode.UNDECIDED, ["error"]),
    ],
    ids=["as is known", "another one", "more than is known", "not any more", "not seen to the end"],
)
def test_ci_is_green_where_only_the_known_turn_is_taken(
    retrace: Retrace, came: list[Replayed], code: ExitCode, cases: list[str]
) -> None:
    ended, run = retrace(came)
    assert ended == code
    assert list(outcomes(ElementTree.parse(run / "junit.xml").getroot()).values()) == cases
    turns = [trace["turn"] for trace in json.loads((run / "verdict.json").read_text())["traces"]]
    assert turns == [one.turn for one in came]


def test_it_is_never_hidden(retrace: Retrace, capsys: pytest.CaptureFixture[str]) -> None:
    _, run = retrace([replayed(KNOWN, LACKS)])
    said, told = capsys.readouterr().out, PERMITTED[KNOWN].finding
    assert "bad turn   permitted (leader-candidate-completeness: a record is missing)" in said
    assert f"known      {told}" in said
    assert "verdict    PASS, 1 counterexamples in 0 s, 1 of them with a bad turn that is permitted" in said
    (trace,) = json.loads((run / "verdict.json").read_text())["traces"]
    assert (trace["turn"], trace["finding"], trace["notice"]) == ("permitted", told, None)
    for file in ("report.html", "junit.xml", "traces/kip320.hw-epoch/report.html"):
        assert told in (run / file).read_text(), file


def test_that_it_is_not_taken_any_more_is_told_everywhere(retrace: Retrace, capsys: pytest.CaptureFixture[str]) -> None:
    _, run = retrace([replayed(KNOWN)])
    notice = replayed(KNOWN).notice
    assert notice is not None
    assert f"notice     {notice}" in capsys.readouterr().out
    for file in ("verdict.json", "report.html", "junit.xml", "traces/kip320.hw-epoch/report.html"):
        assert notice in (run / file).read_text(), file
