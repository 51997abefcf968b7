"""Questions about offsets: ListOffsets, and where an epoch ends."""

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
"""From which version on ListOffsets is answered with an epoch, and with an error of its own (KafkaApis)."""


class Timestamp(IntEnum):
    """Those that stand for an offset (ListOffsetsRequest)."""

    LATEST = -1
    EARLIEST = -2


class ListOffsets(NamedTuple):
    """Somebody asks for the first or the last offset."""

    timestamp: Timestamp
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    """LOG_END for other replicas, and for the debugging replica id -2, which any replica answers."""
    leader_epoch: int | None = None
    of_leader_only: bool = True
    version: int = EPOCH_AND_OFFSET_NOT_AVAILABLE
    """Of the request; those before 1 are answered with a list, and not here."""


class Listed(NamedTuple):
    """The answer."""

    error: Error
    offset: Offset = NO_OFFSET
    leader_epoch: Epoch = NO_EPOCH


def list_offsets(parameters: Parameters, replica: Replica, request: ListOffsets) -> Listed:
    """A replica tells an offset, as the version of the request has it (KafkaApis.handleListOffsetRequestV1AndAbove)."""
    listed = _listed(parameters, replica, request)
    if listed.error is Error.OFFSET_NOT_AVAILABLE and request.version < EPOCH_AND_OFFSET_NOT_AVAILABLE:
        return Listed(Error.LEADER_NOT_AVAILABLE)
    return listed if request.version >= EPOCH_IS_TOLD else listed._replace(leader_epoch=NO_EPOCH)


def _listed(parameters: Parameters, replica: Replica, request: ListOffsets) -> Listed:
    """Partition.fetchOffsetForTimestamp"""
    error = refusal(replica, request.leader_epoch, leader_only=request.of_leader_only)
    if error is not Error.NONE:
        return Listed(error)
    if request.timestamp is Timestamp.EARLIEST:
        start = replica.log.start  # and the epoch that begins there, be it without a record yet
        epoch = next((entry.epoch for entry in replica.log.epochs if entry.start <= start), NO_EPOCH)
        return Listed(Error.NONE, start, epoch)
    if request.isolation is not Isolation.LOG_END and _high_watermark_unknown(replica):
        return Listed(Error.OFFSET_NOT_AVAILABLE)
    return Listed(Error.NONE, readable_end(parameters, replica, request.isolation), replica.leader_epoch)


def _high_watermark_unknown(replica: Replica) -> bool:
    """A new leader's high watermark may be behind what clients have seen until it has reached its epoch (KIP-207)."""
    return replica.leadership is not None and replica.high_watermark < replica.leadership.epoch_start


class OffsetForLeaderEpoch(NamedTuple):
    """A consumer or a follower asks where an epoch ends, to see whether its log was truncated (KIP-320)."""

    epoch: Epoch
    leader_epoch: int | None = None


class EndOfEpoch(NamedTuple):
    """The answer: the largest epoch that is not above the one asked for, and its end."""

    error: Error
    epoch: Epoch = NO_EPOCH
    end: Offset = NO_OFFSET


def offset_for_leader_epoch(replica: Replica, request: OffsetForLeaderEpoch) -> EndOfEpoch:
    """A leader tells where an epoch ends; what it does not know has no end (Partition.lastOffsetForLeaderEpoch)."""
    error = refusal(replica, request.leader_epoch)
    if error is not Error.NONE:
        return EndOfEpoch(error)
    found = replica.log.end_offset_for(request.epoch) or EpochEnd(NO_EPOCH, NO_OFFSET)
    return EndOfEpoch(Error.NONE, found.epoch, found.end)
