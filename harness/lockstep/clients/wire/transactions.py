"""A transactional producer's requests to its transaction coordinator; Produce itself is in `produce`.

From transaction version 2 on (KIP-890) brokers add partitions and groups to a transaction by themselves, and its end
brings the producer a new epoch. Old and new producers differ in the versions of their requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.add_offsets_to_txn.v4.response import AddOffsetsToTxnResponse
from kio.schema.add_partitions_to_txn.v3.request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kio.schema.add_partitions_to_txn.v3.response import AddPartitionsToTxnResponse
from kio.schema.end_txn import v4 as end_txn_v4
from kio.schema.end_txn import v5 as end_txn_v5
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v5.request import InitProducerIdRequest
from kio.schema.init_producer_id.v5.response import InitProducerIdResponse
from kio.schema.txn_offset_commit.v4.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.txn_offset_commit.v4.response import TxnOffsetCommitResponse
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32, i64
from kio.static.protocol import ResponsePayload

from lockstep.clients.wire.connection import Connection, Pending, milliseconds
from lockstep.clients.wire.groups import NO_GENERATION, NO_MEMBER, by_topic
from lockstep.clients.wire.records import NO_PRODUCER, Producer

IMPLICIT_OFFSETS_VERSION = 5
"""Of TxnOffsetCommit, as 4, but the group coordinator adds the group to the transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialized:
    """The InitProducerId response: producer id and epoch from now on; `NO_PRODUCER` on an error."""

    error: ErrorCode
    producer: Producer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The EndTxn response."""

    error: ErrorCode
    producer: Producer | None
    """From transaction version 2 on: the producer id and epoch of the next transaction (KIP-890)."""


def init_producer_id(
    connection: Connection,
    transactional_id: str | None = None,
    *,
    producer: Producer = NO_PRODUCER,
    timeout_ms: int = 60_000,
) -> Pending[Initialized]:
    """InitProducerId: for a new idempotent producer, or for this transactional id, whose open transaction is aborted.

    A producer that gives its current id and epoch gets a bumped epoch after an error, unless it was fenced (KIP-360).
    """
    request = InitProducerIdRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        transaction_timeout=milliseconds(timeout_ms),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
    )
    return connection.begin(request, _initialized)


def add_partitions_to_txn(
    connection: Connection, transactional_id: str, producer: Producer, partitions: Iterable[tuple[str, int]]
) -> Pending[Mapping[tuple[str, int], ErrorCode]]:
    """Announce that these partitions, by topic and index, are about to be written: all of them, or none."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TransactionalId(transactional_id),
        v3_and_below_producer_id=ProducerId(producer.id),
        v3_and_below_producer_epoch=i16(producer.epoch),
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=TopicName(topic), partitions=tuple(map(i32, indexes)))
            for topic, indexes in by_topic(partitions).items()
        ),
    )
    return connection.begin(request, _partitions_added)


def add_offsets_to_txn(
    connection: Connection, transactional_id: str, producer: Producer, group: str
) -> Pending[ErrorCode]:
    """Announce that offsets of this group are about to be committed."""
    request = AddOffsetsToTxnRequest(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        group_id=GroupId(group),
    )
    return connection.begin(request, _offsets_added)


def txn_offset_commit(
    connection: Connection,
    transactional_id: str,
    producer: Producer,
    group: str,
    topic: str,
    partition: int,
    offset: int,
    *,
    generation: int = NO_GENERATION,
    member_id: str = NO_MEMBER,
    instance: str | None = None,
    transaction_version: int = 0,
) -> Pending[ErrorCode]:
    """Commit an offset as part of the transaction. The request goes to the group coordinator."""
    committed = TxnOffsetCommitRequestPartition(
        partition_index=i32(partition), committed_offset=i64(offset), committed_metadata=None
    )
    request = TxnOffsetCommitRequest(
        transactional_id=TransactionalId(transactional_id),
        group_id=GroupId(group),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        generation_id=i32(generation),
        member_id=member_id,
        group_instance_id=instance,
        topics=(TxnOffsetCommitRequestTopic(name=TopicName(topic), partitions=(committed,)),),
    )
    version = IMPLICIT_OFFSETS_VERSION if transaction_version >= 2 else None
    return connection.begin(request, _offset_committed, version=version)


def end_txn(
    connection: Connection, transactional_id: str, producer: Producer, *, commit: bool, transaction_version: int = 0
) -> Pending[Ended]:
    """Commit or abort. The answer comes when that is decided, before the markers are written."""
    request_type = end_txn_v5.EndTxnRequest if transaction_version >= 2 else end_txn_v4.EndTxnRequest
    request = request_type(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer.id),
        producer_epoch=i16(producer.epoch),
        committed=commit,
    )
    return connection.begin(request, _ended)


def _initialized(response: ResponsePayload) -> Initialized:
    assert isinstance(response, InitProducerIdResponse)
    return Initialized(
        error=response.error_code,
        producer=Producer(id=int(response.producer_id), epoch=int(response.producer_epoch)),
    )


def _partitions_added(response: ResponsePayload) -> Mapping[tuple[str, int], ErrorCode]:
    assert isinstance(response, AddPartitionsToTxnResponse)
    return {
        (str(topic.name), int(partition.partition_index)): partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }


def _offsets_added(response: ResponsePayload) -> ErrorCode:
    assert isinstance(response, AddOffsetsToTxnResponse)
    return response.error_code


def _offset_committed(response: ResponsePayload) -> ErrorCode:
    assert isinstance(response, TxnOffsetCommitResponse)
    (topic,) = response.topics
    (answer,) = topic.partitions
    return answer.error_code


def _ended(response: ResponsePayload) -> Ended:
    if isinstance(response, end_txn_v5.EndTxnResponse):
        producer = Producer(id=int(response.producer_id), epoch=int(response.producer_epoch))
        return Ended(error=response.error_code, producer=None if producer == NO_PRODUCER else producer)
    assert isinstance(response, end_txn_v4.EndTxnResponse)
    return Ended(error=response.error_code, producer=None)
