"""Events: the actions and observations of a run, in the order in which the tracker applies them.

A recorded list of events is enough to check a model against that run again without a cluster, also a changed or a
deliberately wrong model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.groups.state import Plain, Times
from lockstep.stepper.model.state import Surroundings
from lockstep_model.controller import Controller
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import JoinAnswer, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, OffsetCommit, OffsetFetch
from lockstep_model.metadata import PartitionMetadataResponse
from lockstep_model.partition.fetch import Fetch
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.offsets import EndOfEpoch, Listed, ListOffsets, OffsetForLeaderEpoch
from lockstep_model.partition.produce import Produce, Produced, Unanswered
from lockstep_model.registration import BrokerId
from lockstep_model.transactions.coordinator import AddPartitionsToTxn, Answer, EndTxn, InitProducerId, Producer

OF_PARTITIONS = (
    Produce,
    Produced,
    Unanswered,
    Fetch,
    FetchResponse,
    ListOffsets,
    Listed,
    OffsetForLeaderEpoch,
    EndOfEpoch,
)
OF_TRANSACTIONS = (InitProducerId, AddPartitionsToTxn, EndTxn, Answer)
OF_GROUPS = (
    *(JoinGroup, JoinAnswer, SyncGroup, SyncAnswer, Heartbeat, LeaveGroup, ConsumerGroupHeartbeat, HeartbeatAnswer),
    *(OffsetCommit, OffsetFetch, FetchedOffset, Plain),
)
KINDS: dict[str, type] = {
    "Told" if kind is FetchResponse else kind.__name__: kind for kind in (*OF_PARTITIONS, *OF_TRANSACTIONS, *OF_GROUPS)
}
"""The classes of requests and responses, by their names in `events.jsonl`."""
_NAMES = {kind: name for name, kind in KINDS.items()}


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A request or response of the model, serialized with the name of its class."""

    kind: str
    value: Any

    @classmethod
    def of(cls, value: Any) -> Named:
        return cls(kind=_NAMES[type(value)], value=msgspec.to_builtins(value))

    def back(self) -> Any:
        return msgspec.convert(self.value, KINDS[self.kind])


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower, omit_defaults=True):
    """An action of the harness, or an observation of the cluster."""


class Began(Event, frozen=True, kw_only=True):
    """The partition was created; always the first event."""

    controller: Controller
    """The controller's state after the creation."""
    ids: tuple[int, ...] = ()
    """The broker id of each of the model's broker numbers, for reports."""


class Surrounded(Event, frozen=True, kw_only=True):
    """The injected faults or the timeouts that may have passed have changed."""

    surroundings: Surroundings


class BrokerEnded(Event, frozen=True, kw_only=True, tag="ended"):
    """A broker's process ended."""

    broker: BrokerId
    clean: bool
    """It was a controlled shutdown, after which the checkpointed high watermark is the last one."""
    cut: bool = False
    """Its machine lost power: the log may end at any offset."""


class Found(Event, frozen=True, kw_only=True):
    """The replica of a stopped broker was read from its log directory."""

    broker: BrokerId
    start: Offset
    records: tuple[tuple[Epoch, int], ...]
    """The leader epoch and the value of each record."""
    high_watermark: Offset
    """The checkpointed high watermark, bounded by the log's start and end: the broker will start with it."""


class Started(Event, frozen=True, kw_only=True):
    """A broker's process was started; its registration is observed later."""

    broker: BrokerId


class Decided(Event, frozen=True, kw_only=True):
    """A controller decision was observed, with its possible causes besides AlterPartition requests."""

    controller: Controller
    occasions: Occasions


class Exchanged(Event, frozen=True, kw_only=True):
    """A client sent a request and got the response, with no other observation in between."""

    broker: BrokerId
    request: Named
    reply: Named


class RequestSent(Event, frozen=True, kw_only=True, tag="sent"):
    """A client sent a request. Its response is a later event, even if only because decisions come in between."""

    slot: int
    broker: BrokerId
    request: Named
    reply: Named | None = None
    """The response, if it has already arrived."""


class ResponseArrived(Event, frozen=True, kw_only=True, tag="answered"):
    """The response to an open client request arrived."""

    slot: int
    reply: Named


class GaveUp(Event, frozen=True, kw_only=True):
    """The connection of an open client request broke: its outcome is unknown."""

    slot: int


class Identified(Event, frozen=True, kw_only=True):
    """The first InitProducerId of a new transactional id succeeded."""

    producer: Producer


class MetadataTold(Event, frozen=True, kw_only=True):
    """A broker's Metadata response arrived: the partition and the live brokers."""

    broker: BrokerId
    told: PartitionMetadataResponse


class Configured(Event, frozen=True, kw_only=True):
    """min.insync.replicas values that a broker or the controller may apply from now on; the last one is the latest."""

    min_isr: tuple[int, ...]


class ShutdownBegan(Event, frozen=True, kw_only=True, tag="leaves"):
    """A broker begins its controlled shutdown."""

    broker: BrokerId


class GroupBegan(Event, frozen=True, kw_only=True):
    """A consumer group is in use from now on; it does not exist on any coordinator yet."""

    group: str
    brokers: int
    times: Times


class CoordinatorElected(Event, frozen=True, kw_only=True):
    """A broker was elected leader of the groups' __consumer_offsets partition, and so their coordinator."""

    leader: BrokerId
    epoch: int
    after_ms: int
    """The election came after this time."""
    before_ms: int
    """The election was observed at this time; until then the previous coordinator may have been in charge."""


class GroupAsked(Event, frozen=True, kw_only=True):
    """A consumer sent a group request to a broker, which need not be the coordinator."""

    group: str
    slot: int
    broker: BrokerId
    request: Named
    at_ms: int


class GroupAnswered(Event, frozen=True, kw_only=True):
    """The response to an open group request arrived."""

    group: str
    slot: int
    reply: Named
    at_ms: int


class GroupUnanswered(Event, frozen=True, kw_only=True):
    """The connection of an open group request broke: its outcome is unknown."""

    group: str
    slot: int


OfGroup: TypeAlias = GroupAsked | GroupAnswered | GroupUnanswered
OfGroups: TypeAlias = GroupBegan | CoordinatorElected | ShutdownBegan | OfGroup
OfRequest: TypeAlias = Exchanged | RequestSent | ResponseArrived | GaveUp | MetadataTold
OfPartition: TypeAlias = Began | Surrounded | BrokerEnded | Found | Started | Decided | Configured | OfRequest
Events: TypeAlias = OfPartition | Identified | OfGroups


def write_events(path: Path, events: Iterable[Events]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in events))


def read_events(path: Path) -> Iterator[Events]:
    for line in path.read_bytes().splitlines():
        yield msgspec.json.decode(line, type=Events)
