"""Counterexamples on live clusters, and `lockstep retrace` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.faults.support.roles import controller_id
from lockstep.network.conditions import Open
from lockstep.pytest_plugin import Clusters
from lockstep.stepper.controls.wrong_models import wrong_model
from lockstep.stepper.retrace.runner import REPLAY_OVERRIDES, BrokenModelResult, Turn, replay
from lockstep.stepper.retrace.traces import BROKEN, find
from tests.command import Lockstep, Refused
from tests.stepper.retrace.test_performer import REPLAYED

PASS, VIOLATION, USAGE = 0, 1, 4

live = pytest.mark.cluster
grouped = pytest.mark.xdist_group("process-cluster")
DIVERGING = "kraft-4:divergence-check"
TAKEN = "kip320:hw-epoch"
"""The bad turn that Kafka takes."""
MISSED = ("kraft-4:answer-waits", DIVERGING)
"""Mutants that each answer of a cluster tells from Kafka, whenever it is given."""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["kip102"], "there is no specification 'kip102'"),
        (["kip320"], "kip320 has no counterexample about replication"),
        (["kraft-3.9:expand-reaches-epoch-start"], "'1 sends a fetch to 0' cannot be brought about"),
        (["kip101", "--brokers", "2"], "they need 3"),
        (["kip101", "--mode", "zk", "--brokers", "3"], "in ZooKeeper mode another one is the controller: they need 4"),
        (["kip101", "--backend", "external"], "they need a cluster of their own"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(refused: Refused, arguments: list[str], sentence: str) -> None:
    refused(["retrace", *arguments], sentence)


@pytest.mark.long
@live
@grouped
def test_a_leader_that_missed_a_leader_commits_what_a_follower_has_truncated(lockstep_clusters: Clusters) -> None:
    """What real Kafka does: docs/findings.md. The model explains it, and a promise is broken."""
    cluster = lockstep_clusters.get(kafka="4.3.1", overrides=REPLAY_OVERRIDES)
    replayed = replay(cluster, find(TAKEN))
    assert replayed.turn is Turn.PERMITTED, replayed.evidence
    assert {one.promise for one in replayed.broken} == {"leader-candidate-completeness"}


@live
@grouped
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == DIVERGING else pytest.mark.long) for name in REPLAYED if name != TAKEN],
)
def test_kafka_does_not_take_the_bad_turn(lockstep_clusters: Clusters, name: str) -> None:
    cluster = lockstep_clusters.get(kafka="4.3.1", overrides=REPLAY_OVERRIDES)
    replayed = replay(cluster, find(name))
    assert replayed.turn is Turn.NOT_TAKEN, replayed.evidence
    assert len(replayed.performed) == len(replayed.trace.actions)
    assert name not in MISSED or replayed.broken_model is BrokenModelResult.APART
    assert set(cluster.links.conditions().values()) == {Open()}, "the cluster is as it was"


@pytest.mark.long
@live
@grouped
@pytest.mark.parametrize("name", [*BROKEN, "kraft-3.9:divergence-check", "kraft-3.9:high-watermark-gate"])
def test_nor_did_it_before(lockstep_clusters: Clusters, name: str) -> None:
    cluster = lockstep_clusters.get(kafka="3.9.2", overrides=REPLAY_OVERRIDES)
    assert replay(cluster, find(name)).turn is Turn.NOT_TAKEN


@pytest.mark.long
@live
@grouped
@pytest.mark.parametrize("name", ["kip101", "kip320-unfenced", "zk-3.9:divergence-check"])
def test_nor_does_it_with_zookeeper(lockstep_clusters: Clusters, name: str) -> None:
    """The controller is a fourth broker there, so that each of the others can be kept from hearing of its decisions."""
    cluster = lockstep_clusters.get(kafka="3.9.2", mode="zk", brokers=4, overrides=REPLAY_OVERRIDES)
    replayed = replay(cluster, find(name))
    assert controller_id(cluster) not in replayed.brokers
    assert replayed.turn is Turn.NOT_TAKEN, replayed.evidence
    assert len(replayed.performed) == len(replayed.trace.actions)


@pytest.mark.long
@live
@grouped
def test_a_wrong_model_takes_the_bad_turn(lockstep_clusters: Clusters) -> None:
    cluster = lockstep_clusters.get(kafka="4.3.1", overrides=REPLAY_OVERRIDES)
    replayed = replay(cluster, find(DIVERGING), wrong=wrong_model("no-divergence"))
    assert replayed.turn is Turn.TAKEN
    assert replayed.walked.divergence is not None


@pytest.mark.long
@live
@grouped
def test_it_leaves_a_run_directory_with_a_report_for_each(lockstep: Lockstep, tmp_path: Path) -> None:
    finished = lockstep("retrace", DIVERGING, "--wrong-model", "no-divergence", "--json")
    assert finished.returncode == VIOLATION, finished.stdout + finished.stderr
    run = tmp_path / "runs" / "latest"
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict == json.loads(finished.stdout)
    (trace,) = verdict["traces"]
    assert (trace["name"], trace["turn"]) == (DIVERGING, "taken")
    walk = run / "traces" / "kraft-4.divergence-check"
    assert (walk / "steps.jsonl").is_file()
    assert (walk / "events.jsonl").is_file()
    assert "which breaks committed-reads-stable, was taken" in (walk / "report.html").read_text()
    for command, code in (("report", PASS), ("check", USAGE), ("replay", USAGE)):
        assert lockstep(command).returncode == code, command
