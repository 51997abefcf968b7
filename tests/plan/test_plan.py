from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockstep.errors import UsageError
from lockstep.plan.builder import PlanBuilder, leader_of
from lockstep.plan.plan import Heal, Hold, Inject, Plan, Write, read_plan, write_plan
from lockstep.plan.scenario import get_scenario
from lockstep.plan.targets import LeaderOf


def plan(seed: int = 7) -> Plan:
    return get_scenario("leader-kill").plan(seed)


def test_leader_kill_is_hold_kill_hold_heal_hold() -> None:
    steps = plan().steps
    assert [type(step) for step in steps] == [Hold, Inject, Hold, Heal, Hold]
    assert steps[1] == Inject(step=2, fault="kill", target=LeaderOf(topic="orders", partition=0))
    assert steps[3] == Heal(step=4, of=2)


def test_the_same_seed_gives_the_same_plan_and_another_another() -> None:
    assert plan(7) == plan(7)
    assert plan(7).steps != plan(8).steps


def test_a_stored_plan_is_the_plan(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    assert read_plan(tmp_path) == plan()


def test_a_fault_that_is_not_healed_by_a_block_stays_for_the_heal_phase() -> None:
    builder = PlanBuilder("mine", 1)
    topic = builder.topic("t", partitions=1, replication=3, min_isr=2)
    builder.write(topic)
    builder.kill(leader_of(topic, 0))
    assert [type(step) for step in builder.build().steps] == [Inject]


def test_holds_stretch_together() -> None:
    stretched = get_scenario("leader-kill").plan(7, seconds=60)
    assert sum(step.seconds for step in stretched.steps if isinstance(step, Hold)) == pytest.approx(60, abs=0.01)


def test_an_exact_hold_is_not_stretched() -> None:
    plan = get_scenario("acks-one-loss").plan(7)
    stretched = get_scenario("acks-one-loss").plan(7, seconds=60)
    exact = [step for step in plan.steps if isinstance(step, Hold) and step.exactly]
    assert len(exact) == 1
    assert [step for step in stretched.steps if isinstance(step, Hold) and step.exactly] == exact
    free = [step.seconds for step in stretched.steps if isinstance(step, Hold) and not step.exactly]
    assert sum(free) == pytest.approx(60, abs=0.01)


def test_the_cut_is_mended_after_the_kill_and_before_the_restart() -> None:
    plan = get_scenario("acks-one-loss").plan(7)
    broken = [step for step in plan.steps if not isinstance(step, Hold)]
    leader = LeaderOf(topic="orders", partition=0)
    assert broken == [
        Inject(step=2, fault="replication-cut", target=leader),
        Inject(step=4, fault="kill", target=leader),
        Heal(step=5, of=2),
        Heal(step=7, of=4),
    ]


def test_the_control_differs_in_its_acks_alone() -> None:
    loss, control = get_scenario("acks-one-loss").plan(7), get_scenario("acks-all-survives").plan(7)
    assert (loss.topics, loss.cluster) == (control.topics, control.cluster)
    assert [type(step) for step in loss.steps] == [type(step) for step in control.steps]
    one, all_ = loss.workloads[0], control.workloads[0]
    assert isinstance(one, Write)
    assert isinstance(all_, Write)
    assert (one.acks, all_.acks) == (1, -1)
    assert msgspec.structs.replace(one, acks=-1) == all_
    assert [str(expected) for expected in loss.expectations] == ["no-lost-acks permitted"]
    assert [str(expected) for expected in control.expectations] == ["no-lost-acks held"]


def test_a_plan_of_version_1_is_read_and_expects_nothing(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    stored = msgspec.json.decode((tmp_path / "plan.json").read_bytes())
    del stored["cluster"], stored["expectations"]
    for step in stored["steps"]:
        step.pop("exactly", None)
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(stored | {"version": 1}))
    assert read_plan(tmp_path) == msgspec.structs.replace(plan(), version=1)
    assert read_plan(tmp_path).expectations == ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not a plan"),
        (b"[]", "is not a plan"),
        (msgspec.json.encode({"version": 9}), "plan of version 9"),
        (msgspec.json.encode({"version": 1, "scenario": "x"}), "is not a plan"),
    ],
)
def test_what_is_not_a_plan_is_refused_in_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_plan(tmp_path)


def test_a_directory_without_a_plan(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no plan"):
        read_plan(tmp_path)


def test_impossible_plans_are_refused() -> None:
    builder = PlanBuilder("mine", 1)
    with pytest.raises(UsageError, match="min_isr is 1 to 3"):
        builder.topic("t", partitions=1, replication=3, min_isr=4)
    topic = builder.topic("t", partitions=1, replication=3, min_isr=2)
    alone = builder.topic("alone", partitions=1, replication=1, min_isr=1)
    with pytest.raises(UsageError, match="alone has one replica: there is no replication to cut"):
        builder.cut_replication(leader_of(alone, 0))
    with pytest.raises(UsageError, match="there is no guarantee 'no-lost'; there are: no-lost-acks"):
        builder.expect("no-lost", "held")
    with pytest.raises(UsageError, match="expected to be held, permitted, not-applicable, not 'violated'"):
        builder.expect("no-lost-acks", "violated")
    with pytest.raises(UsageError, match="needs acks=all"):
        builder.write(topic, acks=1)
    with pytest.raises(UsageError, match="no writer"):
        builder.build()
