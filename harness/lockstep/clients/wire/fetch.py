"""Reading from exactly one replica, which tells its own offsets whether it leads or follows (KIP-392)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64
from kio.static.protocol import ResponsePayload

from lockstep.clients.wire.connection import Connection, Pending, milliseconds
from lockstep.clients.wire.records import FetchedRecord, parse

CONSUMER = -1
FUTURE_LOCAL_REPLICA = -3
"""FetchRequest.FUTURE_LOCAL_REPLICA_ID: no consumer, so a Fetch reads past the high watermark to the LEO, also from a
follower. DEBUGGING_CONSUMER_ID is -2 and reads to the high watermark (FetchRequest.isConsumer)."""
NO_EPOCH = -1


class Isolation(IntEnum):
    """How far a consumer reads."""

    READ_UNCOMMITTED = 0
    """To the high watermark."""
    READ_COMMITTED = 1
    """To the last stable offset, and it is told which transactions were aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted:
    """An aborted transaction: records of this producer from this offset to its next marker are not committed."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The diverging epoch of a Fetch response: the last epoch and end offset up to which logs may agree (KIP-595)."""

    epoch: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The Fetch response of a replica; offsets are -1 if it returns an error."""

    error: ErrorCode
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start: int = -1
    records: tuple[FetchedRecord, ...] = ()
    aborted: tuple[Aborted, ...] = ()
    preferred_read_replica: int | None = None
    """The replica to read from instead (KIP-392); then the response has no records."""
    divergence: Divergence | None = None


def fetch(
    connection: Connection,
    topic: str,
    partition: int,
    offset: int,
    *,
    replica_id: int = CONSUMER,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
    current_leader_epoch: int = NO_EPOCH,
    last_fetched_epoch: int = NO_EPOCH,
    max_wait_ms: int = 0,
    max_bytes: int = 1_048_576,
    rack: str = "",
) -> Pending[Fetched]:
    """Fetch from one partition; with `last_fetched_epoch`, to be told where the replica's log diverges from ours."""
    wanted = FetchPartition(
        partition=i32(partition),
        current_leader_epoch=i32(current_leader_epoch),
        fetch_offset=i64(offset),
        last_fetched_epoch=i32(last_fetched_epoch),
        partition_max_bytes=i32(max_bytes),
    )
    request = FetchRequest(
        replica_id=BrokerId(replica_id),
        max_wait=milliseconds(max_wait_ms),
        min_bytes=i32(1),
        max_bytes=i32(max_bytes),
        isolation_level=i8(isolation),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
        forgotten_topics_data=(),
        rack_id=rack,
    )
    return connection.begin(request, lambda response: _fetched(response, offset))


def _fetched(response: ResponsePayload, offset: int) -> Fetched:
    assert isinstance(response, FetchResponse)
    if response.error_code is not ErrorCode.none:
        return Fetched(error=response.error_code)
    (topic,) = response.responses
    (answer,) = topic.partitions
    diverging = answer.diverging_epoch
    return Fetched(
        error=answer.error_code,
        high_watermark=int(answer.high_watermark),
        last_stable_offset=int(answer.last_stable_offset),
        log_start=int(answer.log_start_offset),
        records=parse(answer.records, offset),
        aborted=tuple(
            Aborted(producer_id=int(one.producer_id), first_offset=int(one.first_offset))
            for one in answer.aborted_transactions or ()
        ),
        preferred_read_replica=int(answer.preferred_read_replica) if answer.preferred_read_replica >= 0 else None,
        divergence=Divergence(epoch=int(diverging.epoch), end=int(diverging.end_offset))
        if diverging.end_offset >= 0
        else None,
    )
