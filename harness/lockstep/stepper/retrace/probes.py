"""Probes: requests that show a broker's leader epoch, its log, and the error that its leader returns to it."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.stepper.conformance.script import PATIENT_MS, NotReached, Steps, read, reply
from lockstep.stepper.driver.actions import AskEpochEnd, Idle, Reach, Release, Talk
from lockstep.stepper.driver.situation import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.offsets import EndOfEpoch

LOOKS = 20
LOOK_MS = 100
"""Number and interval of probes for the effect of a move, before it counts as not done by Kafka."""
LONG_LOOKS = 150
"""Number of probes for an effect that must come about."""


def epoch_answer(broker: int, leader_epoch: int) -> Steps[Error]:
    """The error of an OffsetForLeaderEpoch with this currentLeaderEpoch."""
    _, done = yield AskEpochEnd(broker=broker, epoch=leader_epoch, leader_epoch=leader_epoch)
    return reply(done, EndOfEpoch).error


def known_epoch(now: Situation, broker: int) -> Steps[int]:
    """A broker's leader epoch: the only currentLeaderEpoch to which it responds without an epoch error."""
    for epoch in range(now.leader_epoch, -1, -1):
        error = yield from epoch_answer(broker, epoch)
        if error not in (Error.UNKNOWN_LEADER_EPOCH, Error.FENCED_LEADER_EPOCH):
            return epoch
    raise NotReached(f"{broker} should be in one of the epochs up to {now.leader_epoch}")


def refusal(now: Situation, follower: int, leader: int) -> Steps[str]:
    """The error, in words, that a leader returns to a request with the follower's leader epoch; empty if none."""
    known = yield from known_epoch(now, follower)
    error = yield from epoch_answer(leader, known)
    return "" if error is Error.NONE else f": refused with {error.name}, as it is in epoch {known}"


def hears(now: Situation, broker: int) -> Steps[None]:
    """Unblock metadata for a broker until it is in the newest leader epoch."""
    yield Release(broker=broker, talk=Talk.METADATA)
    for _ in range(LONG_LOOKS):
        if (yield from epoch_answer(broker, now.leader_epoch)) is not Error.UNKNOWN_LEADER_EPOCH:
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should have heard of epoch {now.leader_epoch} by now")


def equal(follower: int, leader: int) -> Steps[bool]:
    """Whether the logs of follower and leader have the same records."""
    _, mine = yield from read(follower, 0, Reach.LOG_END)
    _, others = yield from read(leader, 0, Reach.LOG_END)
    return mine.error is Error.NONE and mine.records == others.records


def comes_to(follower: int, leader: int) -> Steps[bool]:
    """Whether a follower's log becomes equal to its leader's. Then waits for the next Fetch to tell the leader so."""
    for _ in range(LOOKS):
        if (yield from equal(follower, leader)):
            yield Idle(ms=PATIENT_MS)
            return True
        yield Idle(ms=LOOK_MS)
    return False


def complete(broker: int, leader: int) -> Steps[None]:
    """Probe until a replica's log equals the leader's, and its high watermark is its LEO."""
    for _ in range(LONG_LOOKS):
        _, mine = yield from read(broker, 0, Reach.LOG_END)
        if (yield from equal(broker, leader)) and mine.high_watermark == len(mine.records):
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should have what {leader} has by now, all of it committed")


def until(come_about: Callable[[Situation], bool], looks: int = 2 * LOOKS) -> Steps[Situation]:
    """Probe until a condition holds, or the probes are used up. Returns the last situation either way."""
    for _ in range(looks):
        now, _ = yield Idle(ms=LOOK_MS)
        if come_about(now):
            break
    return now


def partition_in_words(now: Situation) -> str:
    led = f"{now.leader} leads" if now.leader >= 0 else "no broker leads"
    return f"{led} in epoch {now.leader_epoch} with ISR {sorted(now.isr)}"
