"""What the model is told, in the order in which it is told: enough to follow a cluster again without the cluster.

With it another model, right or wrong, can be held to what a cluster once did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from lockstep.stepper.groups.state import Plain, Times
from lockstep.stepper.model.client_requests import Told
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.state import Surroundings
from lockstep_model.controller import Controller
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import JoinAnswer, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, OffsetCommit, OffsetFetch
from lockstep_model.metadata import Described
from lockstep_model.partition.fetch import Fetch
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.offsets import EndOfEpoch, Listed, ListOffsets, OffsetForLeaderEpoch
from lockstep_model.partition.produce import Produce, Produced, Unanswered
from lockstep_model.registration import BrokerId
from lockstep_model.transactions.coordinator import AddPartitionsToTxn, Answer, EndTxn, InitProducerId, Producer

OF_PARTITIONS = (Produce, Produced, Unanswered, Fetch, Told, ListOffsets, Listed, OffsetForLeaderEpoch, EndOfEpoch)
OF_TRANSACTIONS = (InitProducerId, AddPartitionsToTxn, EndTxn, Answer)
OF_GROUPS = (
    *(JoinGroup, JoinAnswer, SyncGroup, SyncAnswer, Heartbeat, LeaveGroup, ConsumerGroupHeartbeat, HeartbeatAnswer),
    *(OffsetCommit, OffsetFetch, FetchedOffset, Plain),
)
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*OF_PARTITIONS, *OF_TRANSACTIONS, *OF_GROUPS)}


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A request or an answer of the model's, with the name of its kind."""

    kind: str
    value: Any

    @classmethod
    def of(cls, value: Any) -> Named:
        return cls(kind=type(value).__name__, value=msgspec.to_builtins(value))

    def back(self) -> Any:
        return msgspec.convert(self.value, KINDS[self.kind])


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower, omit_defaults=True):
    """Something that was done or seen."""


class Began(Event, frozen=True, kw_only=True):
    """The partition was created, and the controller has this on record."""

    controller: Controller
    ids: tuple[int, ...] = ()
    """Which broker of the cluster has which number, for people."""


class Surrounded(Event, frozen=True, kw_only=True):
    """This is certain from now on."""

    surroundings: Surroundings


class Ended(Event, frozen=True, kw_only=True):
    """A broker's process ended."""

    broker: BrokerId
    clean: bool
    cut: bool = False
    """Its machine lost power, and its log may end anywhere."""


class Found(Event, frozen=True, kw_only=True):
    """What a broker that does not run has on its disk."""

    broker: BrokerId
    start: Offset
    records: tuple[tuple[Epoch, int], ...]
    """With the epoch and the value of each."""
    high_watermark: Offset
    """The one with which it will start."""


class Started(Event, frozen=True, kw_only=True):
    """A broker's process began."""

    broker: BrokerId


class Decided(Event, frozen=True, kw_only=True):
    """The controller was seen to know this, for which there were these occasions."""

    controller: Controller
    occasions: Occasions


class Exchanged(Event, frozen=True, kw_only=True):
    """A client sent a request and has the answer, and nothing else was seen meanwhile."""

    broker: BrokerId
    request: Named
    reply: Named


class Sent(Event, frozen=True, kw_only=True):
    """A client sent a request; the answer is told later, if only because other things are told before it."""

    slot: int
    broker: BrokerId
    request: Named
    reply: Named | None = None
    """If it is known by now."""


class Answered(Event, frozen=True, kw_only=True):
    """A client has the answer to what it had sent."""

    slot: int
    reply: Named


class GaveUp(Event, frozen=True, kw_only=True):
    """A client will never have the answer to what it had sent."""

    slot: int


class Identified(Event, frozen=True, kw_only=True):
    """A coordinator has told a client with a new transactional id who it is."""

    producer: Producer


class MetadataTold(Event, frozen=True, kw_only=True):
    """A broker has told a client of the partition, and of who is there."""

    broker: BrokerId
    told: Described


class Configured(Event, frozen=True, kw_only=True):
    """Whoever looks at min.insync.replicas goes by one of these from now on."""

    min_isr: tuple[int, ...]


class Leaves(Event, frozen=True, kw_only=True):
    """A broker begins to shut down."""

    broker: BrokerId


class GroupBegan(Event, frozen=True, kw_only=True):
    """Consumers may come to this group, of which nobody has heard yet."""

    group: str
    brokers: int
    times: Times


class CoordinatorElected(Event, frozen=True, kw_only=True):
    """A broker leads the partition of __consumer_offsets that has the groups."""

    leader: BrokerId
    epoch: int
    after_ms: int
    """It did not yet then."""
    before_ms: int
    """It was seen then: until that time the one before may have led."""


class GroupAsked(Event, frozen=True, kw_only=True):
    """A consumer sent a request to a broker, as to the coordinator of its group."""

    group: str
    slot: int
    broker: BrokerId
    request: Named
    at_ms: int


class GroupAnswered(Event, frozen=True, kw_only=True):
    """A consumer has the answer to what it had sent."""

    group: str
    slot: int
    reply: Named
    at_ms: int


class GroupUnanswered(Event, frozen=True, kw_only=True):
    """A consumer will never have the answer to what it had sent."""

    group: str
    slot: int


OfGroup: TypeAlias = GroupAsked | GroupAnswered | GroupUnanswered
OfGroups: TypeAlias = GroupBegan | CoordinatorElected | Leaves | OfGroup
OfRequest: TypeAlias = Exchanged | Sent | Answered | GaveUp | MetadataTold
OfPartition: TypeAlias = Began | Surrounded | Ended | Found | Started | Decided | Configured | OfRequest
Events: TypeAlias = OfPartition | Identified | OfGroups


def write_events(path: Path, events: Iterable[Events]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def read_events(path: Path) -> Iterator[Events]:
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Events)
