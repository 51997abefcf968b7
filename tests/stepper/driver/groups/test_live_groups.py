"""Consumers on live clusters, step by step: Kafka answers what the model permits, and what is said here."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from lockstep.pytest_plugin import Clusters
from lockstep.stepper.controls.wrong_models import judge, wrong_model
from lockstep.stepper.driver.actions import (
    Beat,
    Claims,
    Commit,
    Committed,
    Enter,
    Exit,
    Join,
    Kill,
    Leave,
    Owned,
    Report,
    Start,
    Step,
    Sync,
    Until,
    Wait,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.walk.runner import OVERRIDES, Script, Walked, parameters_of, scripted, walk
from lockstep_model.errors import Error

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("process-cluster")]

LONG = pytest.mark.long
ANSWERED = Wait(until=Until.GROUP_ANSWERS)
Steps = Generator[Step, tuple[Situation, Done], None]


def coordinator(now: Situation) -> int:
    assert now.groups is not None
    return now.groups.coordinator


def classic(now: Situation) -> Steps:
    """Two members of a classic group, of which the second has the first join again."""
    at = coordinator(now)
    yield Join(broker=at, consumer="ada", claims=Claims.NO_MEMBER)
    yield ANSWERED
    yield Join(broker=at, consumer="ada")
    yield ANSWERED
    yield Sync(broker=at, consumer="ada")
    yield ANSWERED
    yield Commit(broker=at, consumer="ada", partition=1, offset=42)
    yield Commit(broker=at, consumer="ada", partition=1, offset=43, claims=Claims.NEXT)
    yield Commit(broker=at, consumer="ada", partition=1, offset=44, claims=Claims.STRANGER)
    yield Commit(broker=at, consumer="ada", partition=1, offset=45, claims=Claims.NO_MEMBER)
    yield Committed(broker=at, consumer="ada", partition=1)
    yield Join(broker=at, consumer="bob", claims=Claims.NO_MEMBER)
    yield ANSWERED
    yield Join(broker=at, consumer="bob")
    yield Beat(broker=at, consumer="ada")
    yield Join(broker=at, consumer="ada")
    yield ANSWERED
    yield Sync(broker=at, consumer="bob")
    yield Sync(broker=at, consumer="ada")
    yield ANSWERED
    yield Beat(broker=at, consumer="ada")
    yield Beat(broker=at, consumer="ada", claims=Claims.OLD)
    yield Leave(broker=at, consumer="bob")
    yield Beat(broker=at, consumer="ada")
    yield Beat(broker=next(b for b in now.brokers if b != at), consumer="ada")


CLASSIC = [
    Error.NONE,
    Error.ILLEGAL_GENERATION,
    Error.UNKNOWN_MEMBER_ID,
    Error.UNKNOWN_MEMBER_ID,
    Error.NONE,
    Error.REBALANCE_IN_PROGRESS,
    Error.NONE,
    Error.ILLEGAL_GENERATION,
    Error.NONE,
    Error.REBALANCE_IN_PROGRESS,
    Error.NOT_COORDINATOR,
]
"""To all but JoinGroup and SyncGroup, which may be answered later."""
CLASSIC_CONTROLS = (
    "join-hurries",
    "beat-any-generation",
    "commit-any-member",
    "commit-any-generation",
    "simple-commit-any-time",
    "commits-nothing",
)


def consumer(now: Situation) -> Steps:
    """Two members of a group of the consumer protocol: one revokes what the other shall have."""
    at = coordinator(now)
    yield Enter(broker=at, consumer="kim")
    yield Commit(broker=at, consumer="kim", partition=0, offset=42)
    yield Commit(broker=at, consumer="kim", partition=0, offset=43, claims=Claims.NEXT)
    yield Enter(broker=at, consumer="leo")
    yield Report(broker=at, consumer="kim", owned=Owned.UNSAID)
    yield Report(broker=at, consumer="kim")
    yield Report(broker=at, consumer="leo")
    yield Report(broker=at, consumer="leo", claims=Claims.NEXT)
    yield Report(broker=at, consumer="kim", claims=Claims.STRANGER)
    yield Committed(broker=at, consumer="kim", partition=0, claims=Claims.NEXT)
    yield Committed(broker=at, consumer="kim", partition=0)
    yield Exit(broker=at, consumer="kim")
    yield Report(broker=at, consumer="kim", claims=Claims.STRANGER)
    yield Report(broker=next(b for b in now.brokers if b != at), consumer="leo")


CONSUMER = [
    Error.NONE,
    Error.NONE,
    Error.STALE_MEMBER_EPOCH,
    Error.NONE,
    Error.NONE,
    Error.NONE,
    Error.NONE,
    Error.FENCED_MEMBER_EPOCH,
    Error.UNKNOWN_MEMBER_ID,
    Error.STALE_MEMBER_EPOCH,
    Error.NONE,
    Error.NONE,
    Error.UNKNOWN_MEMBER_ID,
    Error.NOT_COORDINATOR,
]


def failover(now: Situation) -> Steps:
    """The coordinator is killed: the next one knows the committed offset, and the generation that was synced."""
    at = coordinator(now)
    yield Join(broker=at, consumer="static-sue", claims=Claims.NO_MEMBER)
    yield ANSWERED
    yield Sync(broker=at, consumer="static-sue")
    yield ANSWERED
    yield Commit(broker=at, consumer="static-sue", partition=0, offset=42)
    now, _ = yield Kill(broker=at)
    while (moved := coordinator(now)) == at or moved not in now.running:
        now, _ = yield ANSWERED
    done = None
    while done is None or done.reply.error is not Error.NONE:  # it may still be loading
        now, done = yield Committed(broker=moved, consumer="static-sue", partition=0)
    yield Beat(broker=moved, consumer="static-sue")
    yield Start(broker=at)


def played(clusters: Clusters, shape: dict[str, Any], script: Script) -> Walked:
    cluster = clusters.get(**shape, overrides=OVERRIDES)
    walked = walk(cluster, scripted(script), parameters_of(cluster), lambda _: None)
    last = "; ".join(f"{done.step} -> {done.seen}" for done in walked.steps[-5:])
    assert walked.verdict == "pass", f"{last}; {walked.diverged_at}: {walked.divergence or walked.undecided}"
    return walked


def errors(walked: Walked) -> list[Error]:
    return [done.reply.error for done in walked.steps if not isinstance(done.step, Join | Sync | Wait)]


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param({}, id="kraft-4.3.1"),
        pytest.param({"mode": "zk"}, id="zk-3.9.2", marks=LONG),
        pytest.param({"kafka": "3.9.2"}, id="kraft-3.9.2", marks=LONG),
    ],
)
def test_a_classic_group(lockstep_clusters: Clusters, shape: dict[str, Any]) -> None:
    walked = played(lockstep_clusters, shape, classic)
    assert errors(walked) == CLASSIC
    right = parameters_of(lockstep_clusters.get(**shape, overrides=OVERRIDES))
    for name in CLASSIC_CONTROLS:
        assert judge(walked.events, wrong_model(name).parameters(right), wrong_model(name).reading).divergence, name


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param({}, id="4.3.1"),
        pytest.param({"kafka": "4.0.2"}, id="4.0.2", marks=LONG),
        pytest.param({"kafka": "4.1.2"}, id="4.1.2", marks=LONG),
    ],
)
def test_a_group_of_the_consumer_protocol(lockstep_clusters: Clusters, shape: dict[str, Any]) -> None:
    walked = played(lockstep_clusters, shape, consumer)
    assert errors(walked) == CONSUMER
    right = parameters_of(lockstep_clusters.get(**shape, overrides=OVERRIDES))
    for name in ("report-any-epoch", "commit-any-epoch", "no-room"):
        assert judge(walked.events, wrong_model(name).parameters(right)).divergence, name


@LONG
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param({}, id="kraft-4.3.1"),
        pytest.param({"mode": "zk"}, id="zk-3.9.2"),
        pytest.param({"kafka": "3.9.2"}, id="kraft-3.9.2"),
    ],
)
def test_a_group_whose_coordinator_is_killed(lockstep_clusters: Clusters, shape: dict[str, Any]) -> None:
    walked = played(lockstep_clusters, shape, failover)
    assert any(done.seen == "committed 42" for done in walked.steps)
    assert walked.steps[-2].reply.error is Error.NONE
