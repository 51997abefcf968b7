"""Who is in the ISR."""

from __future__ import annotations

from lockstep.stepper.conformance.script import (
    Setting,
    Steps,
    begin,
    cut_off,
    expect,
    followers,
    joined,
    log_end,
    mended,
    read,
    wait,
    write,
)
from lockstep.stepper.driver.actions import Idle, Until
from lockstep.stepper.walk.generator import Situation


def lag_is_time_behind_the_end(setting: Setting, now: Situation) -> Steps[None]:
    """A follower that does not fetch is in sync for as long as there is nothing to fetch."""
    now = yield from begin(now)
    leader = now.leader
    cut, fetching = followers(now)
    yield from cut_off(leader, cut)
    now, _ = yield Idle(ms=2 * setting.lag_ms)
    expect(now.isr == {leader, cut, fetching}, "who has all of the log is in sync, though it fetches no more")
    yield from write(leader, acks=1)
    now = yield from wait(Until.SHRUNK)
    expect(
        now.isr == {leader, fetching}, "who is behind the end for replica.lag.time.max.ms leaves the ISR, and only that"
    )


def who_catches_up_returns(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader = now.leader
    cut, fetching = followers(now)
    yield from cut_off(leader, cut)
    yield from write(leader, acks=1)
    now = yield from wait(Until.SHRUNK)
    expect(now.isr == {leader, fetching}, "a follower that cannot fetch leaves the ISR")
    expect((yield from log_end(cut)) == 1, "it lacks what was written since")
    yield from mended(leader, cut)
    now = yield from joined(cut)
    expect(now.leader == leader and now.isr == {leader, cut, fetching}, "it returns to the ISR by itself")
    now, told = yield from read(leader, 0)
    expect((yield from log_end(cut)) >= told.high_watermark, "and has all that is committed")
