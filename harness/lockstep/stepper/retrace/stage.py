"""Brings a cluster to the initial state of a counterexample; reads all replicas and lets it recover at the end."""

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
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.retrace.probes import LONG_LOOKS, LOOK_MS, comes_to, complete, hears
from lockstep.stepper.retrace.traces import Trace

Brokers: TypeAlias = tuple[int, ...]
"""Broker ids of the replicas, in the order of the trace's brokers."""

WITHHELD = (Talk.METADATA, Talk.ISR_REQUESTS, Talk.ISR_ANSWERS)
"""Requests and responses between broker and controller that are blocked unless a move unblocks them."""
RECORDS_BEFORE = 1
"""Number of records in every log before the trace begins."""
HEARD_MS = 500
"""Time for a broker to apply metadata that it has received."""


def prepare(trace: Trace, setting: Setting, now: Situation) -> Steps[Situation]:
    """Replicate one record to all replicas, bring the ISR to that of the trace, then block everything."""
    ids = now.replicas
    now = yield from begin(now)
    for id_ in ids:
        yield from high_watermark_rises(id_, RECORDS_BEFORE)
    for follower, leader in permutations(ids, 2):
        yield Cut(follower=follower, leader=leader)
    for id_ in ids[trace.in_sync :]:
        now = yield from out_of_isr(id_)
    if trace.in_sync < trace.brokers:
        yield Idle(ms=2 * setting.lag_ms)  # the high watermark no longer waits for them
    yield Idle(ms=HEARD_MS)
    for id_ in ids:
        for talk in WITHHELD:
            now, _ = yield Withhold(broker=id_, talk=talk)
    in_sync = frozenset(ids[: trace.in_sync])
    require(now.isr == in_sync and now.leader == ids[0], "the trace begins with another ISR or leader")
    return now


def out_of_isr(broker: int) -> Steps[Situation]:
    """Let a broker's session expire and be restored: it then runs, and is not in the ISR."""
    yield Withhold(broker=broker, talk=Talk.HEARTBEATS)
    now = yield from wait(Until.FENCED)
    yield Release(broker=broker, talk=Talk.HEARTBEATS)
    now = yield from wait(Until.REGISTERED)
    require(broker not in now.isr, f"{broker} should have left the ISR")
    return now


def look(ids: Brokers, now: Situation) -> Steps[None]:
    """Read every running replica's log as the trace leaves it."""
    if now.open_writes:
        yield Wait(until=Until.ANSWERS)
    for id_ in ids:
        if id_ in now.running:
            yield from read(id_, 0, Reach.LOG_END)


def go_on(ids: Brokers, now: Situation) -> Steps[None]:
    """Unblock everything, and wait until all replicas are in the ISR with equal, fully committed logs."""
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
        yield from comes_to(follower, leader)  # one at a time keeps the belief small
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
