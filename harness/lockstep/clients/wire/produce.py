"""Writing one batch to one partition, with exactly what is given: no retry, no choice of leader, no check."""

from __future__ import annotations

from dataclasses import dataclass

from kio.schema.errors import ErrorCode
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v11.response import ProduceResponse
from kio.schema.types import TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32
from kio.static.protocol import ResponsePayload

from lockstep.clients.wire.connection import Connection, Pending, framed, milliseconds
from lockstep.clients.wire.records import Batch, encode
from lockstep.clients.wire.versions import WHICH_VERSIONS

ACKS_ALL, ACKS_NONE, ACKS_LEADER = -1, 0, 1
IMPLICIT_VERSION = 12
"""As 11, but from a producer of transaction version 2: the leader adds the partition to the transaction (KIP-890)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentLeader:
    """The current leader, in the NOT_LEADER_OR_FOLLOWER response of a broker that is not it (KIP-951)."""

    id: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """The Produce response to one batch."""

    error: ErrorCode
    base_offset: int = -1
    """Offset of the first record; for a duplicate batch, that of the original."""
    log_start: int = -1
    current_leader: CurrentLeader | None = None
    """Said from 3.7 on."""


def produce(
    connection: Connection,
    topic: str,
    partition: int,
    batch: Batch,
    *,
    acks: int = ACKS_ALL,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
    transaction_version: int = 0,
) -> Pending[Produced]:
    """Produce a batch. With acks=all, the leader answers REQUEST_TIMED_OUT if the ISR lacks it after `timeout_ms`.

    A broker does not answer to acks=0: it goes on to what it is asked next or, if it refuses the batch, closes the
    connection. So it is asked something else behind it, and its answer to that stands for success.
    """
    request = ProduceRequest(
        transactional_id=None if transactional_id is None else TransactionalId(transactional_id),
        acks=i16(acks),
        timeout=milliseconds(timeout_ms),
        topic_data=(
            TopicProduceData(
                name=TopicName(topic),
                partition_data=(PartitionProduceData(index=i32(partition), records=Records(encode(batch))),),
            ),
        ),
    )
    version = IMPLICIT_VERSION if transaction_version >= 2 else connection.version_of(request)
    if acks != ACKS_NONE:
        return connection.begin(request, _produced, version=version)
    connection.send_frame(framed(request, 0, version=version))
    return connection.begin(WHICH_VERSIONS, lambda _: Produced(error=ErrorCode.none))


def _produced(response: ResponsePayload) -> Produced:
    assert isinstance(response, ProduceResponse)
    (topic,) = response.responses
    (answer,) = topic.partition_responses
    leader = answer.current_leader
    return Produced(
        error=answer.error_code,
        base_offset=int(answer.base_offset),
        log_start=int(answer.log_start_offset),
        current_leader=CurrentLeader(id=int(leader.leader_id), epoch=int(leader.leader_epoch))
        if leader.leader_id >= 0
        else None,
    )
