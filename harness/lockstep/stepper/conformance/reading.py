"""What is committed, and who may read how far."""

from __future__ import annotations

from lockstep.stepper.conformance.script import (
    Setting,
    Steps,
    all_in_sync,
    begin,
    cut_off,
    expect,
    followers,
    high_watermark_rises,
    log_end,
    log_ends_at,
    mended,
    read,
    reply,
    require,
    values,
    wait,
    write,
)
from lockstep.stepper.driver.actions import Ask, Reach, Until
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.offsets import Listed
from lockstep_model.partition.produce import Produced


def the_fetch_offset_tells_progress(_: Setting, now: Situation) -> Steps[None]:
    """A leader commits what its followers have asked to go on from, and hears of it in no other way."""
    now = yield from begin(now)
    leader = now.leader
    slow, quick = followers(now)
    yield from cut_off(leader, slow)
    yield from write(leader, acks=1)
    yield from log_ends_at(quick, 2)
    now, told = yield from read(leader, 0)
    all_in_sync(now)
    expect(told.high_watermark == 1, "who has not asked for offset 2 is not known to have what is before it")
    yield from mended(leader, slow)
    yield from high_watermark_rises(leader, 2)
    expect((yield from log_end(slow)) == 2, "who has asked for offset 2 has what is before it")


def the_high_watermark_is_exclusive(_: Setting, now: Situation) -> Steps[None]:
    """It is the offset after the last committed record: the smallest end of a log in the ISR."""
    now = yield from begin(now)
    leader = now.leader
    slow, quick = followers(now)
    require((yield from write(leader, acks=-1, records=2)) == Produced(Error.NONE, 1), "two more are committed")
    now, done = yield Ask(broker=leader, reach=Reach.HIGH_WATERMARK)
    expect(reply(done, Listed)[:2] == (Error.NONE, 3), "after offset 2 was committed the high watermark is 3")
    now, last = yield from read(leader, 2)
    expect(values(last) == [2] and last.high_watermark == 3, "the record before it can be read")
    now, behind = yield from read(leader, 3)
    expect((behind.error, values(behind)) == (Error.NONE, []), "at the high watermark there is no record")
    yield from high_watermark_rises(quick, 3)
    yield from high_watermark_rises(slow, 3)
    yield from cut_off(leader, slow)
    yield from write(leader, acks=1)
    yield from log_ends_at(quick, 4)
    now, told = yield from read(leader, 3)
    all_in_sync(now)
    expect(told.high_watermark == 3, "it stays while one of the ISR has not come further, and never goes back")
    yield from wait(Until.SHRUNK)
    now = yield from high_watermark_rises(leader, 4)
    expect(slow not in now.isr, "it rises when that one has left the ISR")
    now, told = yield from read(slow, 0)
    expect(told.high_watermark == 3, "each replica tells its own")


def records_above_the_high_watermark_are_hidden(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader = now.leader
    yield from cut_off(leader, *followers(now))
    yield from write(leader, acks=1, records=2)
    for reach in (Reach.HIGH_WATERMARK, Reach.LAST_STABLE_OFFSET):
        for offset in (1, 2, 3):
            now, told = yield from read(leader, offset, reach)
            all_in_sync(now)
            expect(told.error is Error.NONE, f"offset {offset}, between high watermark and log end, is no error")
            expect(values(told) == [] and told.high_watermark == 1, f"and there is nothing to be read to the {reach}")
    now, told = yield from read(leader, 4)
    expect(told.error is Error.OFFSET_OUT_OF_RANGE, "past the end of the log is out of range")
    now, told = yield from read(leader, 1, Reach.LOG_END)
    expect(values(told) == [1, 2], "the records are there")
    yield from mended(leader, *followers(now))
    yield from high_watermark_rises(leader, 3)
    now, told = yield from read(leader, 1)
    expect(values(told) == [1, 2], "and can be read once they are committed")
