"""Who leads when the leader is gone, and what becomes of the records."""

from __future__ import annotations

from lockstep.stepper.conformance.script import (
    Setting,
    Steps,
    all_in_sync,
    begin,
    clients_are_sent_to,
    cut_off,
    expect,
    followers,
    high_watermark_rises,
    joined,
    led,
    log_ends_at,
    read,
    reply,
    require,
    values,
    wait,
    write,
)
from lockstep.stepper.driver.actions import AskEpochEnd, Elect, Idle, Kill, Reach, Start, Stop, Until
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.offsets import EndOfEpoch
from lockstep_model.partition.produce import Produced
from lockstep_model.registration import NO_LEADER

ELECTION_MS = 500
"""For how long it is watched that nobody is elected."""


def first_in_sync_of_the_assignment_leads(_: Setting, now: Situation) -> Steps[None]:
    """Not the next in the list: that one is alive, and not in the ISR."""
    now = yield from begin(now)
    leader, (lagging, next_in_sync) = now.leader, followers(now)
    yield from cut_off(leader, lagging)
    yield from write(leader, acks=1)
    before = yield from wait(Until.SHRUNK)
    require(before.isr == {leader, next_in_sync}, "the follower that is cut off should have left the ISR")
    yield Kill(broker=leader)
    now = yield from led()
    alive = now.running & before.isr
    expect(now.leader == next(broker for broker in now.replicas if broker in alive), "the first that is in sync leads")
    expect(now.leader_epoch > before.leader_epoch, "in a new epoch")
    for broker in sorted(now.running):
        yield from clients_are_sent_to(now.leader, broker)


def only_complete_replicas_lead(setting: Setting, now: Situation) -> Steps[None]:
    """The ISR is gone, and a replica that was not in it is alive: it is not elected.

    One that left the ISR in good order is, where there are eligible leader replicas; otherwise all wait for the last
    of the ISR.
    """
    now = yield from begin(now)
    leader, (eligible, lagging) = now.leader, followers(now)
    yield from cut_off(leader, lagging)
    yield from write(leader, acks=1)
    now = yield from wait(Until.SHRUNK)
    require(now.isr == {leader, eligible}, "the follower that is cut off should have left the ISR")
    yield from log_ends_at(eligible, 2)
    yield Stop(broker=eligible)
    now = yield from wait(Until.ALONE)
    expect(
        now.elr == ({eligible} if setting.parameters.elr else set()), "who leaves an ISR below the minimum is eligible"
    )
    yield Kill(broker=leader)
    yield from wait(Until.LEADERLESS)
    now, _ = yield Idle(ms=ELECTION_MS)
    require(lagging in now.running, "the replica that is not in sync should run")
    expect(now.leader == NO_LEADER, "a replica that is neither in sync nor eligible is not elected")
    yield Start(broker=eligible)
    yield from wait(Until.REGISTERED)
    if setting.parameters.elr:
        now = yield from led()
        expect(now.leader == eligible, "an eligible leader replica is elected when nobody is in sync")
    else:
        now, _ = yield Idle(ms=ELECTION_MS)
        expect(now.leader == NO_LEADER and now.isr == {leader}, "the last of the ISR is waited for")
        yield Start(broker=leader)
        now = yield from led()
        expect(now.leader == leader, "and leads again")
    now, told = yield from read(now.leader, 0, Reach.LOG_END)
    expect(values(told) == [0, 1], "no record is lost")


def the_last_leader_leads_again(setting: Setting, now: Situation) -> Steps[None]:
    """Nobody is left that is known to be complete: all died, and may lack the end of their logs."""
    now = yield from begin(now)
    leader, (other, lagging) = now.leader, followers(now)
    yield from cut_off(leader, lagging)
    yield from write(leader, acks=1)
    yield from wait(Until.SHRUNK)
    yield Kill(broker=other)
    yield from wait(Until.ALONE)
    yield Kill(broker=leader)
    yield from wait(Until.LEADERLESS)
    yield Start(broker=other)
    yield from wait(Until.REGISTERED)
    now, _ = yield Idle(ms=ELECTION_MS)
    expect(now.leader == NO_LEADER, "who died and came back is not known to be complete")
    expect(now.elr == ({leader} if setting.parameters.elr else set()), "nor eligible")
    yield Start(broker=leader)
    now = yield from led()
    expect(now.leader == leader and leader in now.isr, "the last leader leads, with unclean elections forbidden")


def unclean_elections_are_asked_for(_: Setting, now: Situation) -> Steps[None]:
    now = yield from begin(now)
    leader, (leaving, lagging) = now.leader, followers(now)
    yield from cut_off(leader, lagging)
    yield from write(leader, acks=1)
    yield from wait(Until.SHRUNK)
    yield Stop(broker=leaving)
    yield from wait(Until.ALONE)
    yield Kill(broker=leader)
    yield from wait(Until.LEADERLESS)
    yield Elect(unclean=True)
    now = yield from led()
    expect(
        now.leader == lagging and now.isr == {lagging}, "asked for an unclean election, the controller elects anybody"
    )
    now, told = yield from read(lagging, 0, Reach.LOG_END)
    expect(values(told) == [0], "with whom a record is lost that others had")


def one_of_three_survives(setting: Setting, now: Situation) -> Steps[None]:
    """Two brokers die at once."""
    now = yield from begin(now)
    leader, (victim, survivor) = now.leader, followers(now)
    yield from high_watermark_rises(survivor, 1)
    yield Kill(broker=leader)
    yield Kill(broker=victim)
    yield from wait(Until.ALONE)
    now = yield from led()
    expect(now.leader == survivor, "the one that is left leads")
    now, told = yield from read(survivor, 0)
    expect(values(told) == [0], "what was committed can be read")
    refused = yield from write(survivor, acks=-1)
    expect(refused.error is Error.NOT_ENOUGH_REPLICAS, "acks=all is refused")
    expect((yield from write(survivor, acks=1)) == Produced(Error.NONE, 1), "acks=1 is taken")
    now, told = yield from read(survivor, 1)
    require(now.isr == {survivor}, "nobody should have come back")
    hidden = setting.parameters.hw_gate
    expect(bool(told.records) is not hidden, "and can be read only where the high watermark rises below the minimum")
    yield Start(broker=victim)
    yield from wait(Until.REGISTERED)
    yield from joined(victim)
    yield from high_watermark_rises(survivor, 2)
    written = yield from write(survivor, acks=-1)
    expect(written == Produced(Error.NONE, 2), "with two in the ISR acks=all is taken again")


def epochs_end_where_logs_part(_: Setting, now: Situation) -> Steps[None]:
    """A leader dies with records that no other has, and finds others at their offsets when it comes back."""
    now = yield from begin(now)
    leader, others, epoch = now.leader, followers(now), now.leader_epoch
    yield from cut_off(leader, *others)
    yield from write(leader, acks=1, records=2)
    now, lost = yield from read(leader, 1, Reach.LOG_END)
    all_in_sync(now)
    yield Kill(broker=leader)
    now = yield from led()
    expect(now.leader == others[0], "of several in sync the first of the assignment leads next")
    written = yield from write(now.leader, acks=1)
    expect(written == Produced(Error.NONE, 1), "the next leader writes where the logs part")
    yield Start(broker=leader)
    yield from wait(Until.REGISTERED)
    now = yield from joined(leader)
    now, kept = yield from read(now.leader, 0, Reach.LOG_END)
    expect(not set(values(kept)) & set(values(lost)), "what only the dead leader had is gone")
    now, told = yield from read(leader, 0, Reach.LOG_END)
    expect(told.records == kept.records, "it has what the new leader has, with the same epochs")
    now, done = yield AskEpochEnd(broker=now.leader, epoch=epoch)
    expect(reply(done, EndOfEpoch) == EndOfEpoch(Error.NONE, epoch, 1), "its epoch ends where the logs parted")
