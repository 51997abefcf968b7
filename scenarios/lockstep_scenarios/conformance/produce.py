"""Produce and acks: when a leader acknowledges a produce request, and when it refuses one."""

from __future__ import annotations

from lockstep.claims import (
    Error,
    Produced,
    Reassign,
    Setting,
    Situation,
    Steps,
    Until,
    Wait,
    Write,
    all_in_sync,
    alone,
    begin,
    claim,
    claim_script,
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

FAMILY = "Produce and acks"
INVALID_ACKS = (2, -2)

claim(
    number=66,
    family=FAMILY,
    wording="acks=1 is answered after the leader has appended the record.",
    fact="The record is in the leader's log, perhaps not flushed to disk yet, and perhaps on no follower.",
)
claim(
    number=67,
    family=FAMILY,
    wording="acks=all is answered when all of the ISR have the record.",
    fact="When the high watermark is past the record, and the ISR has min.insync.replicas members or more.",
)
claim(
    number=68,
    family=FAMILY,
    wording="min.insync.replicas=2 and acks=all guarantee two copies.",
    fact="They do; but from 3.7 on the effective min.insync.replicas is at most the number of replicas.",
)
claim(
    number=69,
    family=FAMILY,
    wording="A write is checked for permission, valid acks and enough in-sync replicas.",
    fact="INVALID_REQUIRED_ACKS for other acks than -1, 0 and 1, and NOT_ENOUGH_REPLICAS before the append.",
)


@claim_script(
    claims=[69],
    name="valid-acks",
    shows="Other acks than -1, 0 and 1 are refused with INVALID_REQUIRED_ACKS.",
)
def invalid_acks_are_refused(_: Setting, now: Situation) -> Steps[None]:
    """Leaders and followers refuse a produce request whose acks is not -1, 0 or 1, and append nothing."""
    now = yield from begin(now)
    for broker in now.replicas:
        for acks in INVALID_ACKS:
            refused = yield from write(broker, acks)
            expect(refused.error is Error.INVALID_REQUIRED_ACKS, f"acks={acks} is refused by leaders and followers")
    for broker in now.replicas:
        expect((yield from log_end(broker)) == 1, "and nothing is appended")


@claim_script(
    claims=[66],
    name="acks-one",
    shows="acks=1 is answered when the record is in the leader's log, and in no other.",
)
def acks_one_waits_for_the_leader_only(_: Setting, now: Situation) -> Steps[None]:
    """No follower can fetch, and a produce request with acks=1 is acknowledged all the same."""
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


@claim_script(
    claims=[68],
    name="effective-min-isr",
    shows="From 3.7 on the effective min.insync.replicas is at most the number of replicas.",
)
def min_isr_counts_for_no_more_than_the_replicas(setting: Setting, now: Situation) -> Steps[None]:
    """The partition is reassigned to one replica, with min.insync.replicas=2."""
    now = yield from begin(now)
    leader = now.leader
    yield Reassign(replicas=(leader,))
    now = yield from wait(Until.ALONE)
    require(now.replicas == (leader,), "the partition should have one replica")
    written = yield from write(leader, acks=-1)
    if setting.parameters.min_isr_within_replicas:
        expect(written == Produced(Error.NONE, 1), "with one replica, an ISR of one is enough")
    else:
        expect(
            written.error is Error.NOT_ENOUGH_REPLICAS,
            "before 3.7 an ISR of one replica is too small",
        )


@claim_script(
    claims=[68, 69],
    name="min-isr",
    shows="With an ISR smaller than min.insync.replicas, acks=all is refused before the append.",
)
def min_isr_is_checked_before_the_append(_: Setting, now: Situation) -> Steps[None]:
    """A leader alone in the ISR refuses acks=all, and takes it again when a second replica has joined."""
    now = yield from begin(now)
    leader, (returning, away) = now.leader, followers(now)
    yield from cut_off(leader, returning, away)
    yield from write(leader, acks=1)
    yield from alone()
    refused = yield from write(leader, acks=-1)
    expect(
        refused.error is Error.NOT_ENOUGH_REPLICAS,
        "below min.insync.replicas acks=all is refused",
    )
    expect((yield from log_end(leader)) == 2, "before anything is appended")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 2), "acks=1 is not checked against the ISR")
    yield from mended(leader, returning)
    yield from joined(returning)
    expect(
        (yield from write(leader, acks=-1)) == Produced(Error.NONE, 3),
        "with two in the ISR it is accepted",
    )
    expect((yield from log_end(returning)) == 4, "and the record has two copies when it is acknowledged")


@claim_script(
    claims=[68],
    name="new-min-isr",
    shows="min.insync.replicas can be changed while brokers run, and takes effect then.",
)
def min_isr_changes_while_brokers_run(setting: Setting, now: Situation) -> Steps[None]:
    """While a leader is alone in the ISR, min.insync.replicas is set to one, and to two again."""
    now = yield from begin(now)
    leader = now.leader
    yield from cut_off(leader, *followers(now))
    yield from write(leader, acks=1)
    yield from alone()
    yield from set_min_isr(1)
    expect(
        (yield from write(leader, acks=-1)) == Produced(Error.NONE, 2),
        "with minimum 1 a leader alone commits",
    )
    now, told = yield from read(leader, 1)
    expect(told.high_watermark == 3, "the high watermark is past the earlier record, too")
    expect(not now.elr, "no replica stays in the ELR by the old min.insync.replicas")
    yield from set_min_isr(2)
    refused = yield from write(leader, acks=-1)
    expect(refused.error is Error.NOT_ENOUGH_REPLICAS, "with min.insync.replicas=2 acks=all is refused again")
    expect((yield from write(leader, acks=1)) == Produced(Error.NONE, 3), "acks=1 is not")
    _, told = yield from read(leader, 1)
    committed = 3 if setting.parameters.hw_gate else 4
    expect(told.high_watermark == committed, "and from 3.7 on nothing is committed")


@claim_script(
    claims=[67],
    name="acks-all",
    shows="acks=all is answered when every ISR member has the record; a follower without it must leave the ISR first.",
)
def acks_all_waits_for_the_isr(_: Setting, now: Situation) -> Steps[None]:
    """One follower cannot fetch: the produce response is delayed until that follower has left the ISR."""
    now = yield from begin(now)
    leader = now.leader
    slow, quick = followers(now)
    yield from cut_off(leader, slow)
    now, done = yield Write(broker=leader, acks=-1)
    yield from log_ends_at(quick, 2)
    now, told = yield from read(leader, 1)
    require(slow in now.isr, "the follower that is cut off should still have been in the ISR")
    expect(done.reply is None and now.open_writes == 1, "there is no response while an ISR member lacks the record")
    expect(told.high_watermark == 1, "nor is the high watermark past it")
    now, done = yield Wait(until=Until.ANSWERS)
    written = reply(done, Produced)
    require(written.error is not Error.REQUEST_TIMED_OUT, "the ISR should have shrunk before the write timed out")
    expect(written == Produced(Error.NONE, 1), "the record is acknowledged once every ISR member has it")
    expect(slow not in now.isr, "and not before: the follower that lacks it has left the ISR")
    expect((yield from log_end(slow)) == 1, "and still lacks the record")
