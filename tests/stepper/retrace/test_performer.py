"""Counterexamples as moves and steps, without a cluster."""

from __future__ import annotations

from functools import cache

import pytest

from lockstep.spec.cluster import ClusterSpec, Mode
from lockstep.stepper.conformance.script import NotReached
from lockstep.stepper.driver.actions import Release, Talk
from lockstep.stepper.retrace.moves import Elects, Fails, Fetches, Follows, Learns, Move, NotReplayable, Writes, read
from lockstep.stepper.retrace.performer import MoveOutcome, Performance
from lockstep.stepper.retrace.promises import broken
from lockstep.stepper.retrace.schedule import Placed, ordered
from lockstep.stepper.retrace.suite import names_for, require_replayable
from lockstep.stepper.retrace.traces import PUBLISHED, Trace, find, names
from lockstep_model.parameters import Parameters, parameters_for
from tests.stepper.retrace.scripted_cluster import ScriptedCluster

REPLAYED = [*PUBLISHED, *(name for name in names() if name.startswith("kraft-4:"))]
SLOW = ("kip320:",)
"""Whose searches take long, and show no other kinds of moves."""
quick = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name.startswith(SLOW) else ()) for name in REPLAYED]
)
KRAFT = parameters_for("4.3.1", "kraft")
ZK = parameters_for("3.9.2", "zk")

found = cache(find)


def played(trace: Trace, parameters: Parameters = KRAFT) -> tuple[Performance, ScriptedCluster]:
    performance = Performance(trace)
    cluster = ScriptedCluster(brokers=trace.brokers, min_isr=trace.min_isr)
    cluster.play(performance, parameters)
    return performance, cluster


@quick
def test_every_action_is_taken_once_and_all_is_well_where_the_guards_are(name: str) -> None:
    trace = found(name)
    performance, cluster = played(trace)
    assert sorted(one.position for one in performance.performed) == list(range(1, len(trace.actions) + 1))
    assert {one.action for one in performance.performed} == set(trace.actions)
    assert broken(cluster.events, KRAFT) == []
    assert all(log == cluster.logs[cluster.leader] for log in cluster.logs.values()), "all goes on in the end"


def test_a_fetch_that_waits_is_not_brought_about() -> None:
    with pytest.raises(NotReplayable, match="sends a fetch"):
        require_replayable(found("kraft-3.9:expand-reaches-epoch-start"))


@pytest.mark.parametrize("name", ["kip101", "kip279", "kip320-first-try"])
def test_a_fetch_in_an_old_epoch_is_where_the_published_variants_are_stopped(name: str) -> None:
    performance, _ = played(found(name))
    stopped = next(one for one in performance.performed if one.outcome is MoveOutcome.NOT_DONE)
    assert "fetches from 0" in stopped.action
    assert "FENCED_LEADER_EPOCH" in stopped.seen


def test_a_follower_does_not_truncate_by_a_leader_that_does_not_know_its_epoch() -> None:
    performance, _ = played(found("kip320-unfenced"))
    stopped = next(one for one in performance.performed if one.outcome is MoveOutcome.NOT_DONE)
    assert stopped.action == "0 begins to follow 1, epoch 1"
    assert "UNKNOWN_LEADER_EPOCH" in stopped.seen


def test_a_cluster_that_takes_the_bad_turn_is_told() -> None:
    """One whose followers keep what their leader does not have."""
    trace = found("kraft-4:divergence-check")
    cluster = ScriptedCluster(brokers=trace.brokers, min_isr=trace.min_isr, truncates=False)
    with pytest.raises(NotReached, match="all replicas should be in the ISR again"):
        cluster.play(Performance(trace), KRAFT)
    assert trace.breaks in {one.promise for one in broken(cluster.events, KRAFT)}


def in_order(*moves: tuple[Move, int | None]) -> list[int]:
    """The positions of moves with their versions, in the order in which they are made."""
    return [
        placed.position for placed in ordered([Placed(move, at, version) for at, (move, version) in enumerate(moves)])
    ]


def test_decisions_wait_for_who_learns_of_them() -> None:
    decisions: list[tuple[Move, int | None]] = [(Elects(0, 0), 0), (Elects(1, 1), 1), (Elects(0, 2), 2)]
    learned: list[tuple[Move, int | None]] = [(Learns(0, 2), 2), (Follows(1, 0, 1), 1)]
    assert in_order(*decisions, (Learns(2, 0), 0), (Writes(0), None), *learned) == [0, 3, 4, 1, 6, 2, 5]


def test_what_was_done_in_between_keeps_its_order() -> None:
    decided: list[tuple[Move, int | None]] = [(Elects(0, 0), 0), (Fails(1, 1), 1), (Learns(0, 1), 1)]
    assert in_order(*decided, (Fetches(2, 0), None), (Follows(2, 0, 0), 0)) == [0, 1, 2, 3, 4], "2 has fetched before"
    assert in_order(*decided, (Fetches(1, 0), None), (Follows(2, 0, 0), 0)) == [0, 4, 1, 2, 3]


def test_a_leader_learns_of_its_isr_before_it_is_deposed() -> None:
    trace = found("kraft-4:high-watermark-gate")
    learns, deposed = "0 learns what the controller decided", "the session of 0 ends"
    actions = [trace.actions[placed.position] for placed in Performance(trace).moves]
    assert actions.index(learns) < actions.index(deposed) < len(actions)
    assert trace.actions.index(deposed) < trace.actions.index(learns), "in the trace it hears of it later"


@pytest.mark.parametrize(
    ("name", "parameters", "first"),
    [("kraft-4:divergence-check", KRAFT, Talk.METADATA), ("zk-3.9:divergence-check", ZK, Talk.HEARTBEATS)],
    ids=["kraft", "zk"],
)
def test_with_zookeeper_nobody_learns_whose_session_is_over(name: str, parameters: Parameters, first: Talk) -> None:
    trace = found(name)
    assert trace.actions[0] == "the session of 0 ends"
    _, cluster = played(trace, parameters)
    released = [step for step in cluster.steps if isinstance(step, Release) and step.broker == 1]
    assert released[0].talk == first


def test_actions_in_other_words_are_refused() -> None:
    with pytest.raises(NotReplayable, match="dances"):
        read("2 dances with 0")


def test_every_counterexample_of_replication_has_a_name() -> None:
    assert set(PUBLISHED) < set(names())
    ours = {name.partition(":")[0] for name in set(names()) - set(PUBLISHED)}
    assert ours == {"zk-3.9", "kraft-3.9", "kraft-4"}


@pytest.mark.parametrize(
    ("spec", "machine"),
    [
        (ClusterSpec(kafka="4.3.1"), "kraft-4"),
        (ClusterSpec(kafka="3.9.2"), "kraft-3.9"),
        (ClusterSpec(kafka="3.9.2", mode=Mode.ZK), "zk-3.9"),
    ],
    ids=["4", "3.9", "zk"],
)
def test_a_cluster_is_led_along_the_mutants_of_what_it_runs(spec: ClusterSpec, machine: str) -> None:
    assert {name.partition(":")[0] for name in set(names_for(spec)) - set(PUBLISHED)} == {machine}
    assert set(PUBLISHED) < set(names_for(spec))
