"""What a state of a group's belief consists of.

Each broker has a *seat*: whether it coordinates the group, for all that it knows, and what it remembers of it. The one
that is elected next begins with what is in the log of __consumer_offsets. While an old coordinator has not heard of the
next one's election both answer, each from its own memory.

Members whose id nobody but the coordinator knows yet have a placeholder for it, until an answer tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from lockstep_model.coordinators import Coordinating
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import ClassicGroup, ClassicMember, JoinAnswer, MemberId, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, Group, OffsetCommit, OffsetFetch, Offsets
from lockstep_model.registration import BrokerId
from lockstep_model.state_machine import Part, State

OPERATIONS = 6
"""How many requests to one group may be open at once."""
PLACEHOLDER = "?"

Request: TypeAlias = (
    JoinGroup | SyncGroup | Heartbeat | LeaveGroup | ConsumerGroupHeartbeat | OffsetCommit | OffsetFetch
)


class Plain(NamedTuple):
    """An answer that is an error alone, or says that there is none."""

    error: Error


Reply: TypeAlias = JoinAnswer | SyncAnswer | HeartbeatAnswer | FetchedOffset | Plain


class TimerKind(StrEnum):
    SESSION = "session"
    JOIN = "join"
    """Until when a rebalance waits for members to join."""
    SYNC = "sync"
    """Until when members have to ask for their assignment (KIP-559)."""
    REVOCATION = "revocation"


class Timer(NamedTuple):
    kind: TimerKind
    member: MemberId = ""


class Times(NamedTuple):
    """How long timers run at least."""

    session_ms: int
    """Of classic members, as they ask for it."""
    rebalance_ms: int
    """Of members of both protocols, as they ask for it."""
    initial_ms: int
    """group.initial.rebalance.delay.ms"""
    consumer_session_ms: int
    """group.consumer.session.timeout.ms"""
    write_ms: int
    """offsets.commit.timeout.ms: for how long a coordinator waits until what it wrote is replicated."""


class Memory(NamedTuple):
    """What a coordinator remembers of a group, and when it may time somebody out at the earliest."""

    group: Group | None = None
    offsets: Offsets = Offsets()
    due: tuple[tuple[Timer, int], ...] = ()
    """In order."""

    def with_timers(self, changes: Mapping[Timer, int]) -> Memory:
        return self._replace(due=tuple(sorted({**dict(self.due), **changes}.items())))


class Stored(NamedTuple):
    """What the log has of a group: what the next coordinator begins with."""

    group: Group | None = None
    offsets: Offsets = Offsets()


class Term(NamedTuple):
    """An election of the partition of __consumer_offsets that has the group."""

    leader: BrokerId
    """-1 if nobody leads."""
    epoch: int
    after_ms: int
    """It was not yet decided then."""


class Around(NamedTuple):
    """What is certain, because the harness did it or saw it, or because its clock says so."""

    now_ms: int
    terms: tuple[Term, ...]
    leaving: frozenset[BrokerId] = frozenset()
    """Who is shutting down."""


class Seat(NamedTuple):
    """How one broker stands to the group."""

    coordinating: Coordinating
    known: int = -1
    """The last term of which it has heard."""
    memory: Memory | None = None
    """Only of one that is active."""


class Asked(NamedTuple):
    """A request on its way to a broker."""

    broker: BrokerId
    request: Request
    at_ms: int
    """When it was sent."""
    name: MemberId
    """The placeholder for the member id that the coordinator would make up."""


class Waits(NamedTuple):
    """A JoinGroup or SyncGroup that is answered when others have come."""

    broker: BrokerId
    member: MemberId
    joins: bool


class Answered(NamedTuple):
    reply: Reply


Operation: TypeAlias = Asked | Waits | Answered | None


class Places:
    """Where the parts stand in a state."""

    AROUND = 0
    STORED = 1

    def __init__(self, brokers: int) -> None:
        self.brokers = range(brokers)
        self.operations = tuple(2 + brokers + slot for slot in range(OPERATIONS))

    def seat(self, broker: BrokerId) -> int:
        return 2 + broker

    def operation(self, slot: int) -> int:
        return self.operations[slot]


def before_anything(brokers: int, term: Term) -> State:
    """Nobody knows of the group, and all brokers know who coordinates it, or will soon."""
    seats = [Seat(Coordinating.ELSEWHERE) for _ in range(brokers)]
    return Around(term.after_ms, (term,)), Stored(), *seats, *(None,) * OPERATIONS


def placeholder(number: int) -> MemberId:
    return f"{PLACEHOLDER}{number}"


def namings(reply: Reply, seen: Reply) -> Iterator[dict[MemberId, MemberId]]:
    """What placeholders may stand for, so that one answer is the other."""
    ours, theirs = _ids(reply), _ids(seen)
    unnamed = sorted(one for one in ours if one.startswith(PLACEHOLDER))
    for order in permutations(sorted(theirs - ours), len(unnamed)):
        names = dict(zip(unnamed, order, strict=True))
        if renamed(reply, names) == seen:
            yield names


def renamed(value: Part, names: Mapping[MemberId, MemberId]) -> Any:
    """The same with other names for some members."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, frozenset):
        return frozenset(renamed(one, names) for one in value)
    if isinstance(value, ClassicGroup):
        return ClassicGroup(*(_in_order(renamed(one, names)) for one in value))
    if isinstance(value, JoinAnswer | Memory):
        return type(value)(*(_in_order(renamed(one, names)) for one in value))
    if isinstance(value, tuple):
        parts: Iterable[Any] = (renamed(one, names) for one in value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _in_order(value: Any) -> Any:
    """Members are kept in the order of their ids, and so are timers."""
    if type(value) is tuple and all(isinstance(one, ClassicMember | str | tuple) for one in value):
        return tuple(sorted(value))
    return value


def _ids(reply: Reply) -> frozenset[MemberId]:
    if isinstance(reply, JoinAnswer):
        return frozenset({reply.member, reply.leader or reply.member, *reply.members})
    return frozenset()
