"""Leader election: the replica that the controller elects when a partition's leader is gone."""

from __future__ import annotations

from lockstep.claims import (
    NO_LEADER,
    Elect,
    Idle,
    Kill,
    Reach,
    Setting,
    Situation,
    Start,
    Steps,
    Stop,
    Until,
    begin,
    claim,
    claim_script,
    clients_are_sent_to,
    cut_off,
    expect,
    followers,
    led,
    log_ends_at,
    read,
    require,
    values,
    wait,
    write,
)

FAMILY = "Leader election"
ELECTION_MS = 500
"""How long a script watches a partition without a leader, to see that the controller elects none."""

claim(
    number=12,
    family=FAMILY,
    wording="When a broker fails, the controller picks the next replica in the list for each partition that it led.",
    fact="The controller elects the first replica of the assignment that is alive and in the ISR.",
)
claim(
    number=19,
    family=FAMILY,
    wording="A partition's leader is elected from the ISR only.",
    fact=(
        "Unless an unclean election is asked for or configured. With eligible leader replicas (4.1 and later by "
        "default) an ELR member leads when the ISR is empty, and the last known leader when ISR and ELR are."
    ),
)


@claim_script(
    claims=[12],
    name="next-leader",
    shows="The next leader is the first live ISR member in the order of the assignment, not simply the next replica.",
)
def the_first_in_sync_replica_of_the_assignment_leads(_: Setting, now: Situation) -> Steps[None]:
    """The second replica of the assignment is alive but out of the ISR, so the third leads."""
    now = yield from begin(now)
    leader, (lagging, next_in_sync) = now.leader, followers(now)
    yield from cut_off(leader, lagging)
    yield from write(leader, acks=1)
    before = yield from wait(Until.SHRUNK)
    require(before.isr == {leader, next_in_sync}, "the follower that is cut off should have left the ISR")
    yield Kill(broker=leader)
    now = yield from led()
    alive = now.running & before.isr
    expect(now.leader == next(broker for broker in now.replicas if broker in alive), "the first live ISR member leads")
    expect(now.leader_epoch > before.leader_epoch, "in a new epoch")
    for broker in sorted(now.running):
        yield from clients_are_sent_to(now.leader, broker)


@claim_script(
    claims=[19],
    name="complete-leaders",
    shows="A replica outside the ISR is not elected, unless it is an eligible leader replica.",
)
def only_isr_and_elr_members_lead(setting: Setting, now: Situation) -> Steps[None]:
    """The last ISR member is dead, and a live replica that is outside the ISR is not elected.

    A replica that left the ISR by a clean shutdown is elected where eligible leader replicas are on (KIP-966);
    otherwise the partition has no leader until the last ISR member is back.
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
    eligible_now = {eligible} if setting.parameters.elr else set()
    expect(now.elr == eligible_now, "a replica that leaves an ISR of min.insync.replicas members is eligible")
    yield Kill(broker=leader)
    yield from wait(Until.LEADERLESS)
    now, _ = yield Idle(ms=ELECTION_MS)
    require(lagging in now.running, "the replica that is not in sync should run")
    expect(now.leader == NO_LEADER, "a replica that is neither in sync nor eligible is not elected")
    yield Start(broker=eligible)
    yield from wait(Until.REGISTERED)
    if setting.parameters.elr:
        now = yield from led()
        expect(now.leader == eligible, "an eligible leader replica is elected when the ISR is empty")
    else:
        now, _ = yield Idle(ms=ELECTION_MS)
        expect(now.leader == NO_LEADER and now.isr == {leader}, "the partition waits for the last ISR member")
        yield Start(broker=leader)
        now = yield from led()
        expect(now.leader == leader, "and leads again")
    now, told = yield from read(now.leader, 0, Reach.LOG_END)
    expect(values(told) == [0, 1], "no record is lost")


@claim_script(
    claims=[19],
    name="last-leader",
    shows="When ISR and ELR have no live member, only the last known leader is elected.",
)
def the_last_leader_leads_again(setting: Setting, now: Situation) -> Steps[None]:
    """Every ISR member was killed, and the first to return is not elected: only the last leader is.

    With eligible leader replicas it is elected as the last known leader (KIP-966), with
    unclean.leader.election.enable=false; otherwise as the last ISR member.
    """
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
    expect(now.leader == NO_LEADER, "a replica that was killed is not elected when it returns")
    expect(now.elr == ({leader} if setting.parameters.elr else set()), "nor is it eligible")
    yield Start(broker=leader)
    now = yield from led()
    expect(now.leader == leader and leader in now.isr, "the last leader leads, with unclean elections forbidden")


@claim_script(
    claims=[19],
    name="unclean-election",
    shows="A replica outside the ISR is elected by an unclean election on request, and records are lost.",
)
def an_unclean_election_loses_records(_: Setting, now: Situation) -> Steps[None]:
    """The only live replica lags, and an ElectLeaders request of type UNCLEAN makes it the leader."""
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
    expect(now.leader == lagging and now.isr == {lagging}, "an unclean election takes a replica outside the ISR")
    now, told = yield from read(lagging, 0, Reach.LOG_END)
    expect(values(told) == [0], "and the records that it lacked are lost")
