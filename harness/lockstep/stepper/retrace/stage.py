"""How a cluster is brought to where a counterexample begins, and what is looked at and let go on when it is over."""

from __future__ import annotations

from itertools import permutations
from typing import TypeAlias

from lockstep.stepper.conformance.script import (
    NotReached,
    Setting,
    Steps,
    begin,
    high_watermark_rises,
    read,
    require,
    wait,
)
from lockstep.stepper.driver.actions import Cut, Idle, Mend, Reach, Release, Start, Talk, Until, Wait, Withhold
from lockstep.stepper.retrace.probes import LONG_LOOKS, LOOK_MS, comes_to, complete, hears
from lockstep.stepper.retrace.traces import Trace
from lockstep.stepper.walk.generator import Situation

Brokers: TypeAlias = tuple[int, ...]
"""The replicas, in the order of the trace's brokers."""

WITHHELD = (Talk.METADATA, Talk.ISR_REQUESTS, Talk.ISR_ANSWERS)
"""What does not pass between a broker and its controller unless a move says so."""
RECORDS_BEFORE = 1
"""How many records are there before the trace begins."""
HEARD_MS = 500
"""A broker has read by then what it has heard of."""


def prepare(trace: Trace, setting: Setting, now: Situation) -> Steps[Situation]:
    """One record is on all replicas; then nothing happens by itself. Some may be out of the ISR."""
    ids = now.replicas
    now = yield from begin(now)
    for id_ in ids:
        yield from high_watermark_rises(id_, RECORDS_BEFORE)
    for follower, leader in permutations(ids, 2):
        yield Cut(follower=follower, leader=leader)
    for id_ in ids[trace.in_sync :]:
        now = yield from out_of_isr(id_)
    if trace.in_sync < trace.brokers:
        yield Idle(ms=2 * setting.lag_ms)  # nobody waits any longer for who was in sync before
    yield Idle(ms=HEARD_MS)
    for id_ in ids:
        for talk in WITHHELD:
            now, _ = yield Withhold(broker=id_, talk=talk)
    in_sync = frozenset(ids[: trace.in_sync])
    require(now.isr == in_sync and now.leader == ids[0], "the trace begins with another ISR or leader")
    return now


def out_of_isr(broker: int) -> Steps[Situation]:
    """Its session ends, and it is heard again: then it runs, and is not in the ISR."""
    yield Withhold(broker=broker, talk=Talk.HEARTBEATS)
    now = yield from wait(Until.FENCED)
    yield Release(broker=broker, talk=Talk.HEARTBEATS)
    now = yield from wait(Until.REGISTERED)
    require(broker not in now.isr, f"{broker} should have left the ISR")
    return now


def look(ids: Brokers, now: Situation) -> Steps[None]:
    """At every replica, as the trace leaves it."""
    if now.open_writes:
        yield Wait(until=Until.ANSWERS)
    for id_ in ids:
        if id_ in now.running:
            yield from read(id_, 0, Reach.LOG_END)


def go_on(ids: Brokers, now: Situation) -> Steps[None]:
    """Everything may happen again: all that was committed must be everywhere in the end."""
    for id_ in sorted(now.ended):
        yield Release(broker=id_, talk=Talk.METADATA)
        yield Start(broker=id_)
    for id_ in ids:
        yield Release(broker=id_, talk=Talk.HEARTBEATS)
    yield from wait(Until.REGISTERED)
    now = yield from wait(Until.LED)
    for id_ in ids:
        yield from hears(now, id_)
    for id_ in ids:
        yield Release(broker=id_, talk=Talk.ISR_ANSWERS)
        yield Release(broker=id_, talk=Talk.ISR_REQUESTS)
    leader = now.leader
    for follower in frozenset(ids) - {leader}:
        now, _ = yield Mend(follower=follower, leader=leader)
        yield from comes_to(follower, leader)  # and the belief stays small
    yield from _joined(ids, now)
    for id_ in ids:
        yield from complete(id_, leader)


def _joined(ids: Brokers, now: Situation) -> Steps[Situation]:
    """Wait until all replicas are in the ISR again."""
    for _ in range(LONG_LOOKS):
        if frozenset(ids) <= now.isr:
            return now
        now, _ = yield Idle(ms=LOOK_MS)
    raise NotReached("all replicas should be in the ISR again")
