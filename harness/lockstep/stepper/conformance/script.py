"""The vocabulary of scripts: what a script demands of a cluster, and the sequences of actions that most scripts take.

The reference model judges every response, but permits any that one of the possible cluster states explains. A script
has brought the partition into one known state, and says itself which response is right there.
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
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.model.client_requests import FetchResponse
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.offsets import EndOfEpoch, Listed
from lockstep_model.partition.produce import Produced

T = TypeVar("T")
Steps: TypeAlias = Generator[Step, tuple[Situation, Done], T]
"""Actions on the cluster: each is sent the situation after it and its response; at the end comes the result."""

PATIENT_MS = 300
"""The time after which a leader has received the controller's AlterPartition response."""
LOOKS = 300
LOOK_MS = 50
"""How often a script polls the cluster for a state that it must reach soon, and the time between two polls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The cluster that a script runs on."""

    parameters: Parameters
    """The behaviour of this Kafka version and mode, as the reference model has it."""
    lag_ms: int
    """replica.lag.time.max.ms"""


Script: TypeAlias = Callable[[Setting, Situation], Steps[None]]


class Unexpected(Exception):
    """The cluster did not do what a claim says: the claim is violated."""


class NotReached(Exception):
    """The partition did not reach the state that a claim is about, as on a slow machine: the claim is undecided."""


def expect(condition: bool, claim: str) -> None:
    """Demand what the claim says, with the claim in words: otherwise the claim is violated."""
    if not condition:
        raise Unexpected(claim)


def require(condition: bool, what: str) -> None:
    """Demand the state that the claim is about: otherwise the claim is undecided."""
    if not condition:
        raise NotReached(what)


def followers(now: Situation) -> list[int]:
    """The partition's followers, in the order of the assignment."""
    return [broker for broker in now.replicas if broker != now.leader]


def all_in_sync(now: Situation) -> None:
    """Require that the ISR is complete, as it is until replica.lag.time.max.ms has passed."""
    require(now.isr == frozenset(now.replicas), "the ISR should still have been complete")


def reply(done: Done, kind: type[T]) -> T:
    """The response to an action; without a response of this kind the claim is undecided."""
    if not isinstance(done.reply, kind):
        raise NotReached(f"{done.step}: {done.seen}")
    return done.reply


def wait(until: Until) -> Steps[Situation]:
    """Wait until the partition is in the state that the script needs."""
    now, done = yield Wait(until=until)
    require(done.seen == "it came about", f"{until}: {done.seen}")
    return now


def joined(follower: int) -> Steps[Situation]:
    """Poll until a follower is in the ISR, and its leader knows that."""
    for _ in range(LOOKS):
        now, _ = yield Idle(ms=LOOK_MS)
        if follower in now.isr:
            now, _ = yield Idle(ms=PATIENT_MS)
            return now
    raise NotReached(f"{follower} should be in the ISR by now")


def led() -> Steps[Situation]:
    """Wait until the partition has a leader, and that broker knows its leader epoch."""
    now = yield from wait(Until.LED)
    for _ in range(LOOKS):
        now, done = yield AskEpochEnd(broker=now.leader, epoch=now.leader_epoch, leader_epoch=now.leader_epoch)
        if reply(done, EndOfEpoch).error is Error.NONE:
            return now
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{now.leader} should know by now that it leads")


def alone() -> Steps[Situation]:
    """Wait until the ISR is the leader alone, and the leader knows that."""
    yield from wait(Until.ALONE)
    now, _ = yield Idle(ms=PATIENT_MS)
    require(now.isr == {now.leader}, "the leader should have been alone in the ISR")
    return now


def write(broker: int, acks: int, records: int = 1) -> Steps[Produced]:
    """Produce, and wait for the produce response, delayed or not."""
    _, done = yield Write(broker=broker, acks=acks, records=records)
    if done.reply is None:
        _, done = yield Wait(until=Until.ANSWERS)
    return reply(done, Produced)


def begin(now: Situation) -> Steps[Situation]:
    """Commit one record, at offset 0: from then on all replicas are in the ISR, with a LEO of 1."""
    require(now.leader == now.replicas[0], "the first replica should lead a new partition")
    produced = yield from write(now.leader, acks=-1)
    require(produced == Produced(Error.NONE, 0), f"the first write was answered {produced.error.name}")
    now = yield from wait(Until.IN_SYNC)
    all_in_sync(now)
    return now


def cut_off(leader: int, *cut: int) -> Steps[Situation]:
    """Cut followers off from their leader, so that they cannot fetch."""
    for follower in cut:
        now, _ = yield Cut(follower=follower, leader=leader)
    return now


def mended(leader: int, *cut: int) -> Steps[None]:
    """Let followers fetch again; their LEO is asked for first, so that the model has fewer states to follow."""
    for follower in cut:
        yield from log_end(follower)
        yield Mend(follower=follower, leader=leader)


def read(broker: int, offset: int, reach: Reach = Reach.HIGH_WATERMARK) -> Steps[tuple[Situation, FetchResponse]]:
    """Fetch from a broker as a consumer does, or up to the log end as a replica can."""
    now, done = yield Read(broker=broker, offset=offset, reach=reach)
    return now, reply(done, FetchResponse)


def log_end(broker: int) -> Steps[int]:
    """The LEO of a replica, by a ListOffsets request to its broker."""
    _, done = yield Ask(broker=broker)
    listed = reply(done, Listed)
    require(listed.error is Error.NONE, f"{broker} has answered {listed.error.name}")
    return listed.offset


def log_ends_at(broker: int, end: int) -> Steps[None]:
    """Poll until a replica has this LEO."""
    for _ in range(LOOKS):
        if (yield from log_end(broker)) == end:
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"the log of {broker} should end at {end} by now")


def clients_are_sent_to(leader: int, broker: int) -> Steps[None]:
    """Poll until a broker names this leader in its metadata responses."""
    for _ in range(LOOKS):
        _, done = yield AskMetadata(broker=broker)
        if done.seen.startswith(f"leader {leader} "):
            return
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"{broker} should know by now that {leader} leads")


def high_watermark_rises(broker: int, to: int) -> Steps[Situation]:
    """Poll until a replica's high watermark is at least this."""
    for _ in range(LOOKS):
        now, told = yield from read(broker, 0)
        if told.high_watermark >= to:
            return now
        yield Idle(ms=LOOK_MS)
    raise NotReached(f"the high watermark of {broker} should be at {to} by now")


def set_min_isr(value: int) -> Steps[None]:
    """Set the topic's min.insync.replicas, and wait until every running broker applies it."""
    _, done = yield SetMinIsr(value=value)
    require(done.seen == "done", f"min.insync.replicas={value}: {done.seen}")


def values(told: FetchResponse) -> list[int]:
    """The values of the records in a fetch response."""
    return [value for _, value in told.records]
