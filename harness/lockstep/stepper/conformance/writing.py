"""Who takes a write, and when it is acknowledged."""

from __future__ import annotations

from lockstep.stepper.conformance.script import (
    Setting,
    Steps,
    all_in_sync,
    alone,
    begin,
    cut_off,
    expect,
    followers,
    joined,
    log_end,
    log_ends_at,
    mended,
    read,
    reply,
    require,
    set_min_isr,
    wait,
    write,
)
from lockstep.stepper.driver.actions import Reassign, Until, Wait, Write
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.produce import Produced, Unanswered

INVALID_ACKS = (2, -2)


def only_leaders_take_writes(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader = now.leader
    for follower in followers(now):
        for acks in (1, -1):
            refused = yield from write(follower, acks)
            expect(refused.error is Error.NOT_LEADER_OR_FOLLOWER, f"a follower refuses a write with acks={acks}")
        now, done = yield Write(broker=follower, acks=0)
        expect(reply(done, Unanswered).closed, "a follower closes the connection of who writes with acks=0")
    require(now.leader == leader, "nobody else should have been elected")
    for broker in now.replicas:
        expect((yield from log_end(broker)) == 1, "what followers refuse is in no log")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 1), "the leader takes it")


def acks_one_is_the_leaders_word(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    yield from cut_off(now.leader, *followers(now))
    written = yield from write(now.leader, acks=1)
    expect(written == Produced(Error.NONE, 1), "acks=1 is answered though no follower can have the record")
    expect((yield from log_end(now.leader)) == 2, "it is in the leader's log when it is acknowledged")
    for follower in followers(now):
        expect((yield from log_end(follower)) == 1, "no follower has it")
    now, told = yield from read(now.leader, 1)
    all_in_sync(now)
    expect(told.high_watermark == 1, "and it is not committed")


def acks_all_waits_for_the_isr(_: Setting, now: Situation) -> Steps[None]:
    """One follower cannot come. The answer does not come either, until that one is in the ISR no more."""
    now = yield from begin(now)
    leader = now.leader
    slow, quick = followers(now)
    yield from cut_off(leader, slow)
    now, done = yield Write(broker=leader, acks=-1)
    yield from log_ends_at(quick, 2)
    now, told = yield from read(leader, 1)
    require(slow in now.isr, "the follower that is cut off should still have been in the ISR")
    expect(done.reply is None and now.open_writes == 1, "while one of the ISR lacks the record nobody is answered")
    expect(told.high_watermark == 1, "nor is the high watermark past it")
    now, done = yield Wait(until=Until.ANSWERS)
    written = reply(done, Produced)
    require(written.error is not Error.REQUEST_TIMED_OUT, "the ISR should have shrunk before the write timed out")
    expect(written == Produced(Error.NONE, 1), "it is acknowledged once all that are in the ISR have it")
    expect(slow not in now.isr, "and not before: who lacks it has left the ISR")
    expect((yield from log_end(slow)) == 1, "for it need not have the record then")


def min_isr_is_asked_for_before_the_append(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader, (returning, away) = now.leader, followers(now)
    yield from cut_off(leader, returning, away)
    yield from write(leader, acks=1)
    yield from alone()
    refused = yield from write(leader, acks=-1)
    expect(refused.error is Error.NOT_ENOUGH_REPLICAS, "with one in the ISR, and two wanted, acks=all is refused")
    expect((yield from log_end(leader)) == 2, "before anything is appended")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 2), "acks=1 does not ask for the ISR")
    yield from mended(leader, returning)
    yield from joined(returning)
    expect((yield from write(leader, acks=-1)) == Produced(Error.NONE, 3), "with two in the ISR it is taken")
    expect((yield from log_end(returning)) == 4, "and there are two copies when it is acknowledged")


def min_isr_can_be_set(setting: Setting, now: Situation) -> Steps[None]:
    """While a leader is alone its topic is told to want one in the ISR, and then two again."""
    now = yield from begin(now)
    leader = now.leader
    yield from cut_off(leader, *followers(now))
    yield from write(leader, acks=1)
    yield from alone()
    yield from set_min_isr(1)
    expect((yield from write(leader, acks=-1)) == Produced(Error.NONE, 2), "with one wanted a leader alone commits")
    now, told = yield from read(leader, 1)
    expect(told.high_watermark == 3, "what was written before, too")
    expect(not now.elr, "nobody is eligible by what was wanted before")
    yield from set_min_isr(2)
    refused = yield from write(leader, acks=-1)
    expect(refused.error is Error.NOT_ENOUGH_REPLICAS, "with two wanted acks=all is refused again")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 3), "acks=1 is not")
    _, told = yield from read(leader, 1)
    committed = 3 if setting.parameters.hw_gate else 4
    expect(told.high_watermark == committed, "and from 3.7 on nothing is committed")


def min_isr_is_never_more_than_the_replicas(setting: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader = now.leader
    yield Reassign(replicas=(leader,))
    now = yield from wait(Until.ALONE)
    require(now.replicas == (leader,), "the partition should have one replica")
    written = yield from write(leader, acks=-1)
    if setting.parameters.min_isr_within_replicas:
        expect(written == Produced(Error.NONE, 1), "of one replica no more than one is wanted")
    else:
        expect(written.error is Error.NOT_ENOUGH_REPLICAS, "before 3.7 two are wanted of one replica")


def acks_are_valid_or_refused(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    for broker in now.replicas:
        for acks in INVALID_ACKS:
            refused = yield from write(broker, acks)
            expect(refused.error is Error.INVALID_REQUIRED_ACKS, f"acks={acks} is refused by leaders and followers")
    for broker in now.replicas:
        expect((yield from log_end(broker)) == 1, "and nothing is appended")
