"""Steps that look: in which epoch a broker is, what it has, what stands between it and its leader."""

from __future__ import annotations

from collections.abc import Callable

from lockstep.stepper.conformance.script import PATIENT_MS, NotReached, Steps, read, reply
from lockstep.stepper.driver.actions import AskEpochEnd, Idle, Reach, Release, Talk
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.partition.offsets import EndOfEpoch

LOOKS = 20
LOOK_MS = 100
"""So often it is looked for what a move should bring about, before it is said that the cluster does not do it."""
LONG_LOOKS = 150
"""So often for what must come about."""


def epoch_answer(broker: int, leader_epoch: int) -> Steps[Error]:
    _, done = yield AskEpochEnd(broker=broker, epoch=leader_epoch, leader_epoch=leader_epoch)
    return reply(done, EndOfEpoch).error


def known_epoch(now: Situation, broker: int) -> Steps[int]:
    """In which leader epoch a broker is: it tells whoever is in another."""
    for epoch in range(now.leader_epoch, -1, -1):
        error = yield from epoch_answer(broker, epoch)
        if error not in (Error.UNKNOWN_LEADER_EPOCH, Error.FENCED_LEADER_EPOCH):
            return epoch
    raise NotReached(f"{broker} should be in one of the epochs up to {now.leader_epoch}")


def refusal(now: Situation, follower: int, leader: int) -> Steps[str]:
    """What a leader answers to somebody who knows what this follower knows; nothing if it is no error."""
    known = yield from known_epoch(now, follower)
    error = yield from epoch_answer(leader, known)
    return "" if error is Error.NONE else f": refused with {error.name}, as it is in epoch {known}"


def hears(now: Situation, broker: int) -> Steps[None]:
    """Let a broker hear of what was decided, until it is in the newest leader epoch."""
    yield Release(broker=broker, talk=Talk.METADATA)
    for _ in range(LONG_LOOKS):
        if (yield from epoch_answer(broker, now.leader_epoch)) is not Error.UNKNOWN_LEADER_EPOCH:
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should have heard of epoch {now.leader_epoch} by now")


def equal(follower: int, leader: int) -> Steps[bool]:
    _, mine = yield from read(follower, 0, Reach.LOG_END)
    _, others = yield from read(leader, 0, Reach.LOG_END)
    return mine.error is Error.NONE and mine.records == others.records


def comes_to(follower: int, leader: int) -> Steps[bool]:
    """Whether a follower comes to have what its leader has, and the leader to know it."""
    for _ in range(LOOKS):
        if (yield from equal(follower, leader)):
            yield Idle(ms=PATIENT_MS)
            return True
        yield Idle(ms=LOOK_MS)
    return False


def complete(broker: int, leader: int) -> Steps[None]:
    """Look until a replica has what the leader has, and knows all of it to be committed."""
    for _ in range(LONG_LOOKS):
        _, mine = yield from read(broker, 0, Reach.LOG_END)
        if (yield from equal(broker, leader)) and mine.high_watermark == len(mine.records):
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should have what {leader} has by now, all of it committed")


def until(come_about: Callable[[Situation], bool], looks: int = 2 * LOOKS) -> Steps[Situation]:
    """Look for a while until something is so, or is not."""
    for _ in range(looks):
        now, _ = yield Idle(ms=LOOK_MS)
        if come_about(now):
            break
    return now


def partition_in_words(now: Situation) -> str:
    led = f"{now.leader} leads" if now.leader >= 0 else "nobody leads"
    return f"{led} in epoch {now.leader_epoch} with ISR {sorted(now.isr)}"
