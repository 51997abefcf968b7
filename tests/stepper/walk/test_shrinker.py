"""What is left of steps that are not needed."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.stepper.driver.actions import Ask, Cut, Kill, Mend, Pause, Resume, Start, Step, Until, Wait, Write
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.walk.shrinker import in_order, makes_sense, shrunk

STEPS: tuple[Step, ...] = (
    *(Ask(broker=1) for _ in range(30)),
    Kill(broker=2),
    *(Ask(broker=3) for _ in range(30)),
    Write(broker=1, acks=1),
)


def test_only_what_is_needed_is_left() -> None:
    tried: list[Sequence[Step]] = []

    def diverges(steps: Sequence[Step]) -> bool:
        tried.append(steps)
        return Kill(broker=2) in steps and isinstance(steps[-1], Write)

    assert shrunk(STEPS, diverges) == (Kill(broker=2), Write(broker=1, acks=1))
    assert len(tried) <= 40


def test_attempts_are_few() -> None:
    tried = []

    def diverges(steps: Sequence[Step]) -> bool:
        tried.append(steps)
        return len(steps) == len(STEPS)

    assert shrunk(STEPS, diverges, attempts=5) == STEPS
    assert len(tried) == 5


def test_no_attempt_begins_when_time_is_up() -> None:
    left = iter([True, True, True, True])
    tried = []

    def diverges(steps: Sequence[Step]) -> bool:
        tried.append(steps)
        return False

    assert shrunk(STEPS, diverges, in_time=lambda: next(left, False)) == STEPS
    assert len(tried) in range(1, 4)


NOW = Situation(
    brokers=(1, 2, 3),
    running=frozenset({1}),
    paused=frozenset({2}),
    ended=frozenset({3}),
    replicas=(1, 2, 3),
    leader=1,
    leader_epoch=0,
    isr=frozenset({1, 2, 3}),
    elr=frozenset(),
    cut=frozenset({(2, 1)}),
    written=0,
    open_writes=0,
    may_leave_open=True,
    belief=1,
)


def test_steps_that_make_no_sense_are_passed_over() -> None:
    sensible: list[Step] = [
        Write(broker=1, acks=1),
        Resume(broker=2),
        Start(broker=3),
        Mend(follower=2, leader=1),
        Wait(until=Until.LED),
    ]
    senseless: list[Step] = [
        Ask(broker=2),
        Kill(broker=3),
        Pause(broker=2),
        Start(broker=1),
        Resume(broker=1),
        Cut(follower=2, leader=1),
    ]
    assert all(makes_sense(step, NOW) for step in sensible)
    assert not any(makes_sense(step, NOW) for step in senseless)
    steps = in_order([*senseless, *sensible])
    assert [steps(NOW, None) for _ in range(len(sensible) + 1)] == [*sensible, None]
