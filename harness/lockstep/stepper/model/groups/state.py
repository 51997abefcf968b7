"""The state of which a group's belief consists.

Each broker has a *seat*: its coordinator role for the group, and the group metadata in its memory. A newly elected
coordinator begins with the group as it is in __consumer_offsets. Until the old coordinator has learned of the election
both of them respond, each from its own memory.

A member id that the coordinator has generated is a placeholder until a response discloses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from lockstep_model.coordinators import CoordinatorState
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import ClassicGroup, ClassicMember, JoinAnswer, MemberId, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, Group, OffsetCommit, OffsetFetch, Offsets
from lockstep_model.registration import BrokerId
from lockstep_model.state_machine import Part, State

OPERATIONS = 6
"""Number of slots: requests to one group that may be outstanding at once."""
PLACEHOLDER = "?"

Request: TypeAlias = (
    JoinGroup | SyncGroup | Heartbeat | LeaveGroup | ConsumerGroupHeartbeat | OffsetCommit | OffsetFetch
)


class Plain(NamedTuple):
    """A response that consists of an error code alone, NONE included."""

    error: Error


Reply: TypeAlias = JoinAnswer | SyncAnswer | HeartbeatAnswer | FetchedOffset | Plain


class TimerKind(StrEnum):
    """Timers of a group coordinator."""

    SESSION = "session"
    JOIN = "join"
    """Classic: how long PreparingRebalance waits for members to send JoinGroup."""
    SYNC = "sync"
    """Classic: how long the members of a generation have to send SyncGroup (KIP-559)."""
    REVOCATION = "revocation"
    """KIP-848: how long a member has to revoke partitions before it is fenced."""


class Timer(NamedTuple):
    """A timer of the group, or of one of its members."""

    kind: TimerKind
    member: MemberId = ""


class Times(NamedTuple):
    """The shortest time after which each timer may expire."""

    session_ms: int
    """Session timeout that members of the classic protocol request."""
    rebalance_ms: int
    """Rebalance timeout that members of both protocols request."""
    initial_ms: int
    """group.initial.rebalance.delay.ms"""
    consumer_session_ms: int
    """group.consumer.session.timeout.ms"""
    write_ms: int
    """offsets.commit.timeout.ms: how long a coordinator waits for its records to be replicated."""


class Memory(NamedTuple):
    """A coordinator's in-memory metadata of a group, and the earliest expiry of each of its timers."""

    group: Group | None = None
    offsets: Offsets = Offsets()
    due: tuple[tuple[Timer, int], ...] = ()
    """Timers with their earliest expiry, sorted."""

    def with_timers(self, changes: Mapping[Timer, int]) -> Memory:
        return self._replace(due=tuple(sorted({**dict(self.due), **changes}.items())))


class Stored(NamedTuple):
    """The group as it is in __consumer_offsets, which the next coordinator loads."""

    group: Group | None = None
    offsets: Offsets = Offsets()


class Term(NamedTuple):
    """An election of the partition of __consumer_offsets that has the group."""

    leader: BrokerId
    """-1 if the partition has no leader."""
    epoch: int
    after_ms: int
    """The election was made later than this."""


class Around(NamedTuple):
    """Facts that hold in every state: the time, the elections observed so far, and shutdowns that were requested."""

    now_ms: int
    terms: tuple[Term, ...]
    leaving: frozenset[BrokerId] = frozenset()
    """Brokers in shutdown."""


class Seat(NamedTuple):
    """One broker's coordinator role for the group."""

    coordinating: CoordinatorState
    known: int = -1
    """Index of the latest election that this broker has applied."""
    memory: Memory | None = None
    """Group metadata, while the broker is the active coordinator."""


class PendingGroupRequest(NamedTuple):
    """A request that was sent to a broker and is not handled yet."""

    broker: BrokerId
    request: Request
    at_ms: int
    """When it was sent."""
    name: MemberId
    """Placeholder for the member id that the coordinator may generate."""


class ParkedGroupRequest(NamedTuple):
    """A parked request: a JoinGroup or SyncGroup that waits for other members, or for the group leader."""

    broker: BrokerId
    member: MemberId
    joins: bool


class GroupResponse(NamedTuple):
    """A request that was handled: its response has not been observed yet."""

    reply: Reply


Operation: TypeAlias = PendingGroupRequest | ParkedGroupRequest | GroupResponse | None


class GroupPlaces:
    """Index of each part in the state tuple: the shared facts, the log, one seat per broker, one slot per request."""

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
    """The initial state: the group does not exist, and no broker has applied the coordinator's election yet."""
    seats = [Seat(CoordinatorState.ELSEWHERE) for _ in range(brokers)]
    return Around(term.after_ms, (term,)), Stored(), *seats, *(None,) * OPERATIONS


def placeholder(number: int) -> MemberId:
    return f"{PLACEHOLDER}{number}"


def namings(reply: Reply, seen: Reply) -> Iterator[dict[MemberId, MemberId]]:
    """Every mapping from placeholders to member ids that makes the model's response equal the observed one."""
    ours, theirs = _ids(reply), _ids(seen)
    unnamed = sorted(one for one in ours if one.startswith(PLACEHOLDER))
    for order in permutations(sorted(theirs - ours), len(unnamed)):
        names = dict(zip(unnamed, order, strict=True))
        if renamed(reply, names) == seen:
            yield names


def renamed(value: Part, names: Mapping[MemberId, MemberId]) -> Any:
    """The same value with member ids replaced."""
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
    """Restore the canonical order after a renaming: members and timers are sorted by member id."""
    if type(value) is tuple and all(isinstance(one, ClassicMember | str | tuple) for one in value):
        return tuple(sorted(value))
    return value


def _ids(reply: Reply) -> frozenset[MemberId]:
    if isinstance(reply, JoinAnswer):
        return frozenset({reply.member, reply.leader or reply.member, *reply.members})
    return frozenset()
