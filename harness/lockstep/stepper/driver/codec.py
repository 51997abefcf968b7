"""Codec: translates a step into a Kafka request and the model's request, and the Kafka response into the model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from lockstep.clients.wire import fetch as fetching
from lockstep.clients.wire import offsets
from lockstep.clients.wire import produce as producing
from lockstep.clients.wire.connection import Connection, Pending
from lockstep.clients.wire.metadata import ClusterView
from lockstep.clients.wire.records import Batch, FetchedRecord, Producer
from lockstep.stepper.driver.actions import Ask, AskEpochEnd, Reach, Read, Sender, Write
from lockstep.stepper.driver.broker_index import BrokerIndex
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.state import ABORTED, COMMITTED
from lockstep_model.errors import Error
from lockstep_model.metadata import PartitionMetadata, PartitionMetadataResponse
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.log import Epoch
from lockstep_model.partition.offsets import EndOfEpoch, Listed, ListOffsets, OffsetForLeaderEpoch, Timestamp
from lockstep_model.partition.produce import Acks, Produce, Produced, Unanswered
from lockstep_model.partition.producer_state import Batch as ModelBatch
from lockstep_model.registration import NO_LEADER

WRITE_TIMEOUT_MS = 4_000
"""The timeout_ms of a Produce request: after it, a broker returns REQUEST_TIMED_OUT for acks=all."""

ISOLATIONS = {
    Reach.HIGH_WATERMARK: Isolation.READ_UNCOMMITTED,
    Reach.LAST_STABLE_OFFSET: Isolation.READ_COMMITTED,
    Reach.LOG_END: Isolation.LOG_END,
}
ISOLATION_LEVELS = {
    Reach.HIGH_WATERMARK: fetching.Isolation.READ_UNCOMMITTED,
    Reach.LAST_STABLE_OFFSET: fetching.Isolation.READ_COMMITTED,
    Reach.LOG_END: fetching.Isolation.READ_UNCOMMITTED,
}


class Exchange(NamedTuple):
    """One request as the model and as the wire protocol have it, and the translation of its response."""

    request: Any
    """The model's request."""
    send: Callable[[Connection], Pending[Any]]
    """Sends the Kafka request over a connection."""
    read: Callable[[Any], Any]
    """Translates the Kafka response into the model's."""


def write(step: Write, topic: str, values: tuple[int, ...], client: TransactionalClient) -> Exchange:
    sender = step.sender if step.transaction is None else client.sender(step.transaction)
    batch = Batch(values=tuple(str(value).encode() for value in values), wrong_crc=step.corrupt)
    transactional = step.transaction is not None
    if sender is not None:
        producer = Producer(id=sender.producer_id, epoch=sender.epoch)
        batch = replace(batch, producer=producer, base_sequence=sender.sequence, transactional=transactional)
    said = None if sender is None else ModelBatch(*_fields(sender), len(values), transactional)
    request = Produce(step.acks, values, said, corrupt=step.corrupt)

    def send(connection: Connection) -> Pending[producing.Produced]:
        return producing.produce(
            connection,
            topic,
            0,
            batch,
            acks=step.acks,
            timeout_ms=WRITE_TIMEOUT_MS,
            transactional_id=client.transactional_id if transactional else None,
            transaction_version=client.version if transactional else 0,
        )

    return Exchange(request, send, lambda answer: _produced(answer, step.acks))


def _fields(sender: Sender) -> tuple[int, int, int]:
    return sender.producer_id, sender.epoch, sender.sequence


def _produced(answer: producing.Produced, acks: int) -> Produced | Unanswered:
    if acks == Acks.NONE:
        return Unanswered(closed=answer.error is not ErrorCode.none)
    error = Error(int(answer.error))
    return Produced(error, answer.base_offset if error is Error.NONE else None)


def read(step: Read, topic: str) -> Exchange:
    request = Fetch(step.offset, ISOLATIONS[step.reach], step.leader_epoch)
    replica = fetching.FUTURE_LOCAL_REPLICA if step.reach is Reach.LOG_END else fetching.CONSUMER

    def send(connection: Connection) -> Pending[fetching.Fetched]:
        return fetching.fetch(
            connection,
            topic,
            0,
            step.offset,
            replica_id=replica,
            isolation=ISOLATION_LEVELS[step.reach],
            current_leader_epoch=_or_none(step.leader_epoch),
        )

    return Exchange(request, send, _fetched)


def _fetched(answer: fetching.Fetched) -> FetchResponse:
    error = Error(int(answer.error))
    if error is not Error.NONE:
        return FetchResponse(error)
    return FetchResponse(
        error,
        tuple(map(logged, answer.records)),
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.last_stable_offset,
        log_start=answer.log_start,
        aborted=frozenset((one.producer_id, one.first_offset) for one in answer.aborted),
    )


def logged(record: FetchedRecord) -> tuple[Epoch, int]:
    """A record as the model compares it: its leader epoch, and its value or the type of its transaction marker."""
    if record.marker is not None:
        return record.partition_leader_epoch, COMMITTED if record.marker.commit else ABORTED
    return record.partition_leader_epoch, int(record.value or b"-1")


def ask(step: Ask, topic: str) -> Exchange:
    timestamp = Timestamp.EARLIEST if step.earliest else Timestamp.LATEST
    debugging = step.reach is Reach.LOG_END
    request = ListOffsets(timestamp, ISOLATIONS[step.reach], step.leader_epoch, of_leader_only=not debugging)

    def send(connection: Connection) -> Pending[offsets.Listed]:
        return offsets.list_offsets(
            connection,
            topic,
            0,
            int(timestamp),
            replica_id=offsets.DEBUGGING_REPLICA if debugging else fetching.CONSUMER,
            isolation=ISOLATION_LEVELS[step.reach],
            current_leader_epoch=_or_none(step.leader_epoch),
        )

    return Exchange(request, send, _listed)


def _listed(answer: offsets.Listed) -> Listed:
    error = Error(int(answer.error))
    return Listed(error, answer.offset, answer.leader_epoch) if error is Error.NONE else Listed(error)


def ask_epoch_end(step: AskEpochEnd, topic: str) -> Exchange:
    def send(connection: Connection) -> Pending[offsets.EpochEnd]:
        known = _or_none(step.leader_epoch)
        return offsets.offset_for_leader_epoch(connection, topic, 0, step.epoch, current_leader_epoch=known)

    return Exchange(OffsetForLeaderEpoch(step.epoch, step.leader_epoch), send, _end_of_epoch)


def _end_of_epoch(answer: offsets.EpochEnd) -> EndOfEpoch:
    error = Error(int(answer.error))
    return EndOfEpoch(error, answer.leader_epoch, answer.end) if error is Error.NONE else EndOfEpoch(error)


def described(view: ClusterView, topic: str, number: BrokerIndex) -> PartitionMetadataResponse:
    """A Metadata response as the model has it: the partition and the live brokers."""
    brokers = frozenset(map(number, view.brokers))
    told = view.partition(topic, 0)
    if told is None:
        return PartitionMetadataResponse(PartitionMetadata(Error.UNKNOWN_TOPIC_OR_PARTITION), brokers)
    partition = PartitionMetadata(
        Error(int(told.error)),
        number(told.leader) if told.leader >= 0 else NO_LEADER,
        told.leader_epoch,
        tuple(map(number, told.replicas)),
        frozenset(map(number, told.isr)),
        frozenset(map(number, told.offline)),
    )
    return PartitionMetadataResponse(partition, brokers)


def _or_none(epoch: int | None) -> int:
    return fetching.NO_EPOCH if epoch is None else epoch
