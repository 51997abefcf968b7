"""What scripts are made of: what they expect of a cluster, and steps that nearly all of them take.

The model judges every answer, but permits whatever some state explains. A script knows which state it has brought
about, and says itself what must be answered there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from lockstep.stepper.driver.actions import (
    Ask,
    AskEpochEnd,
    AskMetadata,
    Cut,
    Idle,
    Mend,
    Reach,
    Read,
    SetMinIsr,
    Step,
    Until,
    Wait,
    Write,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.model.client_requests import Told
from lockstep.stepper.walk.generator import Situation
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.offsets import EndOfEpoch, Listed
from lockstep_model.partition.produce import Produced

T = TypeVar("T")
Steps: TypeAlias = Generator[Step, tuple[Situation, Done], T]
"""Some steps, and what is known after them."""

PATIENT_MS = 300
"""A leader has heard by then what the controller answered to it."""
LOOKS = 300
LOOK_MS = 50
"""So often, and so long after each other, a script looks for what must come about soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a script is played on."""

    parameters: Parameters
    """What this version does in this mode."""
    lag_ms: int
    """replica.lag.time.max.ms"""


Script: TypeAlias = Callable[[Setting, Situation], Steps[None]]


class Unexpected(Exception):
    """The cluster did not do what a claim says: the claim is violated."""


class NotReached(Exception):
    """The cluster was not brought to where a claim says anything, as on a machine that is too slow: undecided."""


def expect(condition: bool, claim: str) -> None:
    """The claim, in words, is violated unless this is so."""
    if not condition:
        raise Unexpected(claim)


def require(condition: bool, what: str) -> None:
    """Unless this is so, there is nothing to be seen."""
    if not condition:
        raise NotReached(what)


def followers(now: Situation) -> list[int]:
    """In the order of the assignment."""
    return [broker for broker in now.replicas if broker != now.leader]


def all_in_sync(now: Situation) -> None:
    """Require what holds until the lag time has passed."""
    require(now.isr == frozenset(now.replicas), "the ISR should still have been complete")


def reply(done: Done, kind: type[T]) -> T:
    """What a step was answered."""
    if not isinstance(done.reply, kind):
        raise NotReached(f"{done.step}: {done.seen}")
    return done.reply


def wait(until: Until) -> Steps[Situation]:
    """Wait for what a script needs."""
    now, done = yield Wait(until=until)
    require(done.seen == "it came about", f"{until}: {done.seen}")
    return now


def joined(follower: int) -> Steps[Situation]:
    """Look until a follower is in the ISR, and the leader knows it."""
    for _ in range(LOOKS):
        now, _ = yield Idle(ms=LOOK_MS)
        if follower in now.isr:
            now, _ = yield Idle(ms=PATIENT_MS)
            return now
    raise NotReached(f"{follower} should be in the ISR by now")


def led() -> Steps[Situation]:
    """Wait until somebody leads, and knows it."""
    now = yield from wait(Until.LED)
    for _ in range(LOOKS):
        now, done = yield AskEpochEnd(broker=now.leader, epoch=now.leader_epoch, leader_epoch=now.leader_epoch)
        if reply(done, EndOfEpoch).error is Error.NONE:
            return now
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{now.leader} should know by now that it leads")


def alone() -> Steps[Situation]:
    """Wait until the leader is alone in the ISR, and knows it."""
    yield from wait(Until.ALONE)
    now, _ = yield Idle(ms=PATIENT_MS)
    require(now.isr == {now.leader}, "the leader should have been alone in the ISR")
    return now


def write(broker: int, acks: int, records: int = 1) -> Steps[Produced]:
    """Write and have the answer, however long it takes."""
    _, done = yield Write(broker=broker, acks=acks, records=records)
    if done.reply is None:
        _, done = yield Wait(until=Until.ANSWERS)
    return reply(done, Produced)


def begin(now: Situation) -> Steps[Situation]:
    """Commit one record, at offset 0: from then on every replica is there, and known to be at the end."""
    require(now.leader == now.replicas[0], "the first replica should lead a new partition")
    produced = yield from write(now.leader, acks=-1)
    require(produced == Produced(Error.NONE, 0), f"the first write was answered {produced.error.name}")
    now = yield from wait(Until.IN_SYNC)
    all_in_sync(now)
    return now


def cut_off(leader: int, *cut: int) -> Steps[Situation]:
    """Let followers fetch no more from their leader; returns when all are cut off."""
    for follower in cut:
        now, _ = yield Cut(follower=follower, leader=leader)
    return now


def mended(leader: int, *cut: int) -> Steps[None]:
    """Let followers fetch again. Who is looked at before can have done less since, and the belief stays small."""
    for follower in cut:
        yield from log_end(follower)
        yield Mend(follower=follower, leader=leader)


def read(broker: int, offset: int, reach: Reach = Reach.HIGH_WATERMARK) -> Steps[tuple[Situation, Told]]:
    now, done = yield Read(broker=broker, offset=offset, reach=reach)
    return now, reply(done, Told)


def log_end(broker: int) -> Steps[int]:
    """Where a replica's own log ends."""
    _, done = yield Ask(broker=broker)
    listed = reply(done, Listed)
    require(listed.error is Error.NONE, f"{broker} has answered {listed.error.name}")
    return listed.offset


def log_ends_at(broker: int, end: int) -> Steps[None]:
    """Look until a replica's log ends there."""
    for _ in range(LOOKS):
        if (yield from log_end(broker)) == end:
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"the log of {broker} should end at {end} by now")


def clients_are_sent_to(leader: int, broker: int) -> Steps[None]:
    """Look until a broker tells clients that this one leads."""
    for _ in range(LOOKS):
        _, done = yield AskMetadata(broker=broker)
        if done.seen.startswith(f"leader {leader} "):
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should know by now that {leader} leads")


def high_watermark_rises(broker: int, to: int) -> Steps[Situation]:
    """Look until a replica's high watermark is there."""
    for _ in range(LOOKS):
        now, told = yield from read(broker, 0)
        if told.high_watermark >= to:
            return now
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"the high watermark of {broker} should be at {to} by now")


def set_min_isr(value: int) -> Steps[None]:
    """Have everybody go by it."""
    _, done = yield SetMinIsr(value=value)
    require(done.seen == "done", f"min.insync.replicas={value}: {done.seen}")


def values(told: Told) -> list[int]:
    """The records of an answer."""
    return [value for _, value in told.records]
