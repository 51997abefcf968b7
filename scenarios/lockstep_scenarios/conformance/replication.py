"""Replication and ISR: writes on the leader, fetches of followers, the high watermark, and the members of the ISR."""

from __future__ import annotations

from lockstep.claims import (
    Ask,
    Error,
    Idle,
    Kill,
    Listed,
    Produced,
    Reach,
    Setting,
    Situation,
    Start,
    Steps,
    Unanswered,
    Until,
    Write,
    all_in_sync,
    begin,
    claim,
    claim_script,
    cut_off,
    expect,
    followers,
    high_watermark_rises,
    joined,
    led,
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

FAMILY = "Replication and ISR"

claim(
    number=34,
    family=FAMILY,
    wording="All writes go to the leader.",
    fact="Other replicas refuse them with NOT_LEADER_OR_FOLLOWER, and close the connection of a producer with acks=0.",
)
claim(
    number=37,
    family=FAMILY,
    wording="The leader learns from the fetch offset a follower's progress: a fetch from n means all up to n-1.",
    fact="It does; the fetch offset is a follower's only acknowledgement.",
)
claim(
    number=40,
    family=FAMILY,
    wording="The high watermark is the offset of the last committed record.",
    fact="It is the offset after that record: the smallest LEO in the ISR.",
)
claim(
    number=41,
    family=FAMILY,
    wording="Only records below the high watermark can be read; above it the answer is empty.",
    fact="A fetch up to the LEO returns no records and no error; beyond the LEO the error is OFFSET_OUT_OF_RANGE.",
)
claim(
    number=44,
    family=FAMILY,
    wording="A follower is out of sync that has not fetched, or not been at the log's end, for the lag time.",
    fact=(
        "A follower is caught up while it is at the leader's LEO, so no follower of an idle partition falls behind. "
        "The leader checks every half of the lag time."
    ),
)
claim(
    number=45,
    family=FAMILY,
    wording="A follower that has recovered is in the ISR again.",
    fact=(
        "When its LEO has reached the high watermark and the start offset of the leader's epoch; in KRaft mode its "
        "broker must not be fenced or shutting down either."
    ),
)
claim(
    number=49,
    family=FAMILY,
    wording="With three replicas two brokers may die at once.",
    fact=(
        "Committed records are kept. With min.insync.replicas=2, acks=all is refused then; from 3.7 on the high "
        "watermark stands still, so that acks=1 is accepted, but not readable."
    ),
)


@claim_script(
    claims=[34],
    name="leader-writes",
    shows="Only the leader accepts Produce: other replicas answer NOT_LEADER_OR_FOLLOWER.",
)
def only_leaders_take_writes(_: Setting, now: Situation) -> Steps[None]:
    """Followers refuse produce requests with any acks; the leader takes them."""
    now = yield from begin(now)
    leader = now.leader
    for follower in followers(now):
        for acks in (1, -1):
            refused = yield from write(follower, acks)
            expect(refused.error is Error.NOT_LEADER_OR_FOLLOWER, f"a follower refuses a write with acks={acks}")
        now, done = yield Write(broker=follower, acks=0)
        expect(reply(done, Unanswered).closed, "a follower closes the connection of a producer with acks=0")
    require(now.leader == leader, "no other leader should have been elected")
    for broker in now.replicas:
        expect((yield from log_end(broker)) == 1, "a refused record is in no log")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 1), "the leader accepts it")


@claim_script(
    claims=[41],
    name="hidden-above-high-watermark",
    shows="A Fetch above the high watermark returns no records, and one past the LEO an error.",
)
def records_above_the_high_watermark_are_hidden(_: Setting, now: Situation) -> Steps[None]:
    """No follower can fetch, so the records that the leader appends stay above its high watermark."""
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


@claim_script(
    claims=[37],
    name="fetch-offset",
    shows="The leader learns a follower's LEO from the offset of its Fetch.",
)
def the_fetch_offset_tells_progress(_: Setting, now: Situation) -> Steps[None]:
    """The high watermark rises to the offset that every ISR member has fetched from, and no further."""
    now = yield from begin(now)
    leader = now.leader
    slow, quick = followers(now)
    yield from cut_off(leader, slow)
    yield from write(leader, acks=1)
    yield from log_ends_at(quick, 2)
    now, told = yield from read(leader, 0)
    all_in_sync(now)
    expect(told.high_watermark == 1, "a follower that has not fetched from offset 2 does not count as having offset 1")
    yield from mended(leader, slow)
    yield from high_watermark_rises(leader, 2)
    expect((yield from log_end(slow)) == 2, "a follower that has fetched from offset 2 has offset 1")


@claim_script(
    claims=[40],
    name="exclusive-high-watermark",
    shows="The high watermark is the offset after the last record that every ISR member has.",
)
def the_high_watermark_is_exclusive(_: Setting, now: Situation) -> Steps[None]:
    """The high watermark is the offset after the last committed record: the smallest LEO in the ISR."""
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
    expect(told.high_watermark == 3, "it stays while an ISR member has not fetched further, and never goes back")
    yield from wait(Until.SHRUNK)
    now = yield from high_watermark_rises(leader, 4)
    expect(slow not in now.isr, "it rises when that member has left the ISR")
    now, told = yield from read(slow, 0)
    expect(told.high_watermark == 3, "each replica returns its own high watermark")


@claim_script(
    claims=[44],
    name="lag",
    shows="A follower is out of sync after the lag time behind the leader's LEO, and never on an idle partition.",
)
def lag_is_time_behind_the_log_end(setting: Setting, now: Situation) -> Steps[None]:
    """A follower that does not fetch stays in the ISR until the leader appends a record."""
    now = yield from begin(now)
    leader = now.leader
    cut, fetching = followers(now)
    yield from cut_off(leader, cut)
    now, _ = yield Idle(ms=2 * setting.lag_ms)
    expect(now.isr == {leader, cut, fetching}, "a follower at the LEO stays in the ISR, though it fetches no more")
    yield from write(leader, acks=1)
    now = yield from wait(Until.SHRUNK)
    expect(now.isr == {leader, fetching}, "only the follower behind the LEO for replica.lag.time.max.ms leaves the ISR")


@claim_script(
    claims=[45],
    name="return-to-isr",
    shows="A follower that has caught up rejoins the ISR.",
)
def a_follower_that_catches_up_returns_to_the_isr(_: Setting, now: Situation) -> Steps[None]:
    """A follower leaves the ISR while it cannot fetch, and is back soon after it can."""
    now = yield from begin(now)
    leader = now.leader
    cut, fetching = followers(now)
    yield from cut_off(leader, cut)
    yield from write(leader, acks=1)
    now = yield from wait(Until.SHRUNK)
    expect(now.isr == {leader, fetching}, "a follower that cannot fetch leaves the ISR")
    expect((yield from log_end(cut)) == 1, "it lacks the records appended since")
    yield from mended(leader, cut)
    now = yield from joined(cut)
    expect(now.leader == leader and now.isr == {leader, cut, fetching}, "it returns to the ISR by itself")
    now, told = yield from read(leader, 0)
    expect((yield from log_end(cut)) >= told.high_watermark, "and has every committed record")


@claim_script(
    claims=[49],
    name="two-deaths",
    shows="One of three replicas is enough to keep committed records, but not to commit more.",
)
def one_of_three_replicas_keeps_committed_records(setting: Setting, now: Situation) -> Steps[None]:
    """The leader and one follower are killed; the other follower leads, below min.insync.replicas."""
    now = yield from begin(now)
    leader, (victim, survivor) = now.leader, followers(now)
    yield from high_watermark_rises(survivor, 1)
    yield Kill(broker=leader)
    yield Kill(broker=victim)
    yield from wait(Until.ALONE)
    now = yield from led()
    expect(now.leader == survivor, "the replica that is left leads")
    now, told = yield from read(survivor, 0)
    expect(values(told) == [0], "the committed record can be read")
    refused = yield from write(survivor, acks=-1)
    expect(refused.error is Error.NOT_ENOUGH_REPLICAS, "acks=all is refused")
    expect((yield from write(survivor, acks=1)) == Produced(Error.NONE, 1), "acks=1 is accepted")
    now, told = yield from read(survivor, 1)
    require(now.isr == {survivor}, "no other replica should have returned to the ISR")
    hidden = setting.parameters.hw_gate
    expect(bool(told.records) is not hidden, "and can be read only where the high watermark rises below the minimum")
    yield Start(broker=victim)
    yield from wait(Until.REGISTERED)
    yield from joined(victim)
    yield from high_watermark_rises(survivor, 2)
    written = yield from write(survivor, acks=-1)
    expect(written == Produced(Error.NONE, 2), "with two replicas in the ISR acks=all is accepted again")
