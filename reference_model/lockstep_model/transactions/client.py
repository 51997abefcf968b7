"""A transactional producer: each transaction writes one record to some partitions, then commits or aborts.

Like Kafka's TransactionManager the producer commits only if all its batches were acknowledged, retries requests without
a response, gives up a batch only to abort, and bumps its epoch by InitProducerId after it gave up a batch (KIP-360),
unless the bounds turn that off.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeVar

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Batch
from lockstep_model.transactions.coordinator import Answer, EndTxn, Partition, Partitions, Producer
from lockstep_model.transactions.partition import Source, VerifiedBatch, source_of

T = TypeVar("T")


class Stage(StrEnum):
    """Stage of the producer in its transaction."""

    STARTING = "starting"
    WRITING = "writing"
    COMMITTING = "committing"
    ABORTING = "aborting"
    RENEWING = "renewing"  # InitProducerId to bump the epoch (KIP-360)
    STOPPED = "stopped"  # fenced, or all transactions done


class DeliveryState(StrEnum):
    """State of the present transaction's record for one partition."""

    NOT = "not sent"
    UNANSWERED = "unanswered"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class EndedTransaction(NamedTuple):
    """A transaction that the producer has ended, and the partitions that acknowledged its record."""

    commit: bool
    acknowledged: Partitions


class Client(NamedTuple):
    """One producer process with the transactional id. Copies of its earlier requests may still be in flight."""

    name: str
    transactions: int
    """How many transactions are left to begin, with the present one."""
    records: tuple[DeliveryState, ...]
    """State of the present transaction's record, by partition."""
    sequences: tuple[int, ...]
    """Next sequence number of each partition, in the present producer epoch."""
    stage: Stage = Stage.STARTING
    producer: Producer | None = None
    added: Partitions = frozenset()
    """Partitions acknowledged by AddPartitionsToTxn in the present transaction."""
    ended: tuple[EndedTransaction, ...] = ()
    misled: bool = False
    """The producer got OUT_OF_ORDER_SEQUENCE_NUMBER, though it sends one batch at a time to each partition."""
    fenced: bool = False
    """The producer got a fencing error (`FENCED`) in a response other than InitProducerId's."""
    sent: frozenset[tuple[Partition, VerifiedBatch]] = frozenset()
    """Copies of Produce requests without a waiting producer that may still arrive."""
    ends: frozenset[tuple[EndTxn, Source]] = frozenset()
    """Copies of EndTxn requests without a waiting producer that may still arrive."""

    @property
    def source(self) -> Source:
        """The present transaction, as the source of its records."""
        return source_of(self.name, len(self.ended))

    @property
    def given_up(self) -> bool:
        """Whether a record of the present transaction has no response, or an error."""
        return DeliveryState.UNANSWERED in self.records or DeliveryState.REFUSED in self.records


FENCED = frozenset({Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_ID_MAPPING})
"""Errors that tell a producer that its id or epoch is no longer current."""
RETRIED = frozenset({Error.NOT_ENOUGH_REPLICAS, Error.CONCURRENT_TRANSACTIONS})
"""Errors after which a producer retries the same request."""


def starting(name: str, transactions: int, partitions: int) -> Client:
    """A producer before its first InitProducerId."""
    return Client(
        name=name,
        transactions=transactions,
        stage=Stage.STARTING if transactions else Stage.STOPPED,
        records=(DeliveryState.NOT,) * partitions,
        sequences=(0,) * partitions,
    )


def batch(client: Client, partition: Partition) -> VerifiedBatch | None:
    """The batch this producer sends to this partition now, or None."""
    if client.stage is not Stage.WRITING or client.producer is None:
        return None
    if client.records[partition] not in (DeliveryState.NOT, DeliveryState.UNANSWERED):
        return None
    sequence = client.sequences[partition]
    return VerifiedBatch(Batch(*client.producer, sequence, transactional=True), client.source, None)


def sends(client: Client, partition: Partition) -> Client:
    """The producer has sent its record to this partition."""
    return client._replace(records=_with(client.records, partition, DeliveryState.UNANSWERED))


def acknowledged(client: Client, partition: Partition, waiting: VerifiedBatch) -> Client:
    """Produce response without error: the record is committed with acks=all."""
    if not _waits_for(client, partition, waiting):
        return client
    return client._replace(
        records=_with(client.records, partition, DeliveryState.ACKNOWLEDGED),
        sequences=_with(client.sequences, partition, client.sequences[partition] + 1),
    )


def refused(client: Client, partition: Partition, waiting: VerifiedBatch, error: Error) -> Client:
    """Produce response with an error: the record was not appended."""
    if not _waits_for(client, partition, waiting) or error in RETRIED:
        return client
    return client._replace(
        records=_with(client.records, partition, DeliveryState.REFUSED),
        misled=client.misled or error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        fenced=client.fenced or error in FENCED,
    )


def _waits_for(client: Client, partition: Partition, waiting: VerifiedBatch) -> bool:
    """Whether the producer still waits for the response to this batch."""
    mine = client.stage is Stage.WRITING and client.source == waiting.source
    return mine and client.records[partition] is DeliveryState.UNANSWERED


def commits(client: Client) -> Client | None:
    """The producer decides to commit: every record it sent is acknowledged."""
    if client.stage is not Stage.WRITING or client.given_up or DeliveryState.ACKNOWLEDGED not in client.records:
        return None
    return client._replace(stage=Stage.COMMITTING)


def aborts(client: Client) -> Client | None:
    """The producer decides to abort an open transaction; records without acknowledgement are given up."""
    begun = client.added or set(client.records) != {DeliveryState.NOT}
    return client._replace(stage=Stage.ABORTING) if client.stage is Stage.WRITING and begun else None


def end(client: Client) -> EndTxn | None:
    """The EndTxn request of the producer, if it is committing or aborting."""
    if client.stage not in (Stage.COMMITTING, Stage.ABORTING) or client.producer is None:
        return None
    return EndTxn(client.producer, client.stage is Stage.COMMITTING)


def ends(client: Client, answer: Answer, parameters: Parameters, *, renews: bool) -> Client:
    """EndTxn response: the transaction is over, with the next epoch in transaction version 2 (KIP-890).

    In older versions a producer that gave up a batch bumps its epoch by InitProducerId first (KIP-360).
    """
    if answer.error in RETRIED:
        return client
    if answer.error is not Error.NONE or answer.producer is None:
        return _stopped(client, answer.error)
    wrote = frozenset(place for place, record in enumerate(client.records) if record is DeliveryState.ACKNOWLEDGED)
    after = client._replace(
        transactions=client.transactions - 1,
        records=(DeliveryState.NOT,) * len(client.records),
        added=frozenset(),
        ended=(*client.ended, EndedTransaction(client.stage is Stage.COMMITTING, wrote)),
    )
    if client.transactions == 1:
        return _stopped(after)
    if parameters.transaction_version < 2 and client.given_up and renews:
        return after._replace(stage=Stage.RENEWING)
    return _as(after, answer.producer)


def initialized(client: Client, answer: Answer) -> Client:
    """InitProducerId response: the producer gets its id and epoch."""
    if answer.error in RETRIED:
        return client
    return _stopped(client) if answer.producer is None else _as(client, answer.producer)


def added(client: Client, partition: Partition, answer: Answer) -> Client:
    """AddPartitionsToTxn response: the partition is in the transaction, or the producer is fenced."""
    if answer.error in RETRIED:
        return client
    if answer.error is not Error.NONE:
        return _stopped(client, answer.error)
    return client._replace(added=client.added | {partition})


def _as(client: Client, producer: Producer) -> Client:
    """The producer with this id and epoch; sequence numbers restart at 0 with a new one."""
    same = client.producer == producer
    sequences = client.sequences if same else (0,) * len(client.sequences)
    return client._replace(stage=Stage.WRITING, producer=producer, sequences=sequences)


def _stopped(client: Client, error: Error = Error.NONE) -> Client:
    """The producer after its last transaction or a fatal error; only copies in flight remain."""
    idle = starting(client.name, 0, len(client.records))
    fenced = client.fenced or error in FENCED
    return idle._replace(ended=client.ended, misled=client.misled, fenced=fenced, sent=client.sent, ends=client.ends)


def _with(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*row[:place], value, *row[place + 1 :])
