"""Leader epochs and recovery: a replica that comes back truncates its log to where it agrees with the leader's."""

from __future__ import annotations

from lockstep.claims import (
    AskEpochEnd,
    EndOfEpoch,
    Error,
    Kill,
    Produced,
    Reach,
    Setting,
    Situation,
    Start,
    Steps,
    Until,
    all_in_sync,
    begin,
    claim,
    claim_script,
    cut_off,
    expect,
    followers,
    joined,
    led,
    read,
    reply,
    values,
    wait,
    write,
)

FAMILY = "Leader epochs and recovery"

claim(
    number=51,
    family=FAMILY,
    wording="Leader epochs keep logs consistent in recovery.",
    fact=(
        "A replica that returns truncates its log where the leader's log has other leader epochs: the responses to its "
        "Fetch requests say where."
    ),
)


@claim_script(
    claims=[12, 51],
    name="epochs",
    shows="Records that only a dead leader had are truncated when it returns, at the end of its leader epoch.",
)
def a_returning_leader_truncates_to_the_end_of_its_epoch(_: Setting, now: Situation) -> Steps[None]:
    """A leader is killed with records that no follower has; the next leader writes others at their offsets."""
    now = yield from begin(now)
    leader, others, epoch = now.leader, followers(now), now.leader_epoch
    yield from cut_off(leader, *others)
    yield from write(leader, acks=1, records=2)
    now, lost = yield from read(leader, 1, Reach.LOG_END)
    all_in_sync(now)
    yield Kill(broker=leader)
    now = yield from led()
    expect(now.leader == others[0], "of several ISR members the first of the assignment leads next")
    written = yield from write(now.leader, acks=1)
    expect(written == Produced(Error.NONE, 1), "the next leader appends where the logs diverge")
    yield Start(broker=leader)
    yield from wait(Until.REGISTERED)
    now = yield from joined(leader)
    now, kept = yield from read(now.leader, 0, Reach.LOG_END)
    expect(not set(values(kept)) & set(values(lost)), "the records that only the dead leader had are gone")
    now, told = yield from read(leader, 0, Reach.LOG_END)
    expect(told.records == kept.records, "its log is the new leader's, with the same leader epochs")
    now, done = yield AskEpochEnd(broker=now.leader, epoch=epoch)
    expect(reply(done, EndOfEpoch) == EndOfEpoch(Error.NONE, epoch, 1), "its leader epoch ends where the logs diverged")
