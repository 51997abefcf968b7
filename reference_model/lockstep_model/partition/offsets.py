"""ListOffsets and OffsetForLeaderEpoch requests to one replica."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.fetch import Isolation, readable_end
from lockstep_model.partition.log import NO_EPOCH, Epoch, EpochEnd, Offset
from lockstep_model.partition.replica import Replica, refusal

NO_OFFSET: Offset = -1
EPOCH_IS_TOLD = 4
EPOCH_AND_OFFSET_NOT_AVAILABLE = 5
"""ListOffsets responses have a leader epoch from version 4 on, OFFSET_NOT_AVAILABLE from version 5 on (KafkaApis)."""


class Timestamp(IntEnum):
    """Special timestamps of ListOffsets (ListOffsetsRequest)."""

    LATEST = -1
    EARLIEST = -2


class ListOffsets(NamedTuple):
    """A ListOffsets request of a client or a follower for the earliest or the latest offset."""

    timestamp: Timestamp
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    """LOG_END for followers, and for the debugging replica id -2, which a follower answers too."""
    leader_epoch: int | None = None
    of_leader_only: bool = True
    version: int = EPOCH_AND_OFFSET_NOT_AVAILABLE
    """Version of the request; version 0, whose response is a list of offsets, is not modelled."""


class Listed(NamedTuple):
    """The ListOffsets response."""

    error: Error
    offset: Offset = NO_OFFSET
    leader_epoch: Epoch = NO_EPOCH


def list_offsets(parameters: Parameters, replica: Replica, request: ListOffsets) -> Listed:
    """ListOffsets response in the form of the request's version (KafkaApis.handleListOffsetRequestV1AndAbove)."""
    listed = _listed(parameters, replica, request)
    if listed.error is Error.OFFSET_NOT_AVAILABLE and request.version < EPOCH_AND_OFFSET_NOT_AVAILABLE:
        return Listed(Error.LEADER_NOT_AVAILABLE)
    return listed if request.version >= EPOCH_IS_TOLD else listed._replace(leader_epoch=NO_EPOCH)


def _listed(parameters: Parameters, replica: Replica, request: ListOffsets) -> Listed:
    """Offset and leader epoch for a timestamp, independent of the version (Partition.fetchOffsetForTimestamp)."""
    error = refusal(replica, request.leader_epoch, leader_only=request.of_leader_only)
    if error is not Error.NONE:
        return Listed(error)
    if request.timestamp is Timestamp.EARLIEST:
        start = replica.log.start  # with the epoch that the cache has for it, even if that epoch has no record yet
        epoch = next((entry.epoch for entry in replica.log.epochs if entry.start <= start), NO_EPOCH)
        return Listed(Error.NONE, start, epoch)
    if request.isolation is not Isolation.LOG_END and _high_watermark_unknown(replica):
        return Listed(Error.OFFSET_NOT_AVAILABLE)
    return Listed(Error.NONE, readable_end(parameters, replica, request.isolation), replica.leader_epoch)


def _high_watermark_unknown(replica: Replica) -> bool:
    """A new leader's high watermark may be below offsets clients saw until it reaches the epoch's start (KIP-207)."""
    return replica.leadership is not None and replica.high_watermark < replica.leadership.epoch_start


class OffsetForLeaderEpoch(NamedTuple):
    """An OffsetForLeaderEpoch request: a follower or consumer detects truncation by an epoch's end offset.

    KIP-101 for followers, KIP-320 for consumers.
    """

    epoch: Epoch
    leader_epoch: int | None = None


class EndOfEpoch(NamedTuple):
    """The OffsetForLeaderEpoch response: the largest epoch not above the requested one, and its end offset."""

    error: Error
    epoch: Epoch = NO_EPOCH
    end: Offset = NO_OFFSET


def offset_for_leader_epoch(replica: Replica, request: OffsetForLeaderEpoch) -> EndOfEpoch:
    """The leader's end offset for an epoch; -1 if its cache has none (Partition.lastOffsetForLeaderEpoch)."""
    error = refusal(replica, request.leader_epoch)
    if error is not Error.NONE:
        return EndOfEpoch(error)
    found = replica.log.end_offset_for(request.epoch) or EpochEnd(NO_EPOCH, NO_OFFSET)
    return EndOfEpoch(Error.NONE, found.epoch, found.end)
