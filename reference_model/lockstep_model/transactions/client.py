"""A producer that writes one record to each of some partitions in every transaction, and then commits or aborts.

It behaves as Kafka's own does: it commits only what was acknowledged, repeats what was not answered, gives up only to
abort, and takes another epoch after it gave up a batch (KIP-360), unless it is told not to.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeVar

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Batch
from lockstep_model.transactions.coordinator import Answer, EndTxn, Partition, Partitions, Producer
from lockstep_model.transactions.partition import Source, Verified, source_of

T = TypeVar("T")


class Stage(StrEnum):
    """What the client is about."""

    STARTING = "starting"
    WRITING = "writing"
    COMMITTING = "committing"
    ABORTING = "aborting"
    RENEWING = "renewing"  # its epoch
    STOPPED = "stopped"  # as it was told that it is fenced, or has nothing more to do


class Sent(StrEnum):
    """What became of the record for one partition, in the present transaction."""

    NOT = "not sent"
    UNANSWERED = "unanswered"
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"


class Ended(NamedTuple):
    """One transaction that the client is done with, and to which partitions it wrote with success."""

    commit: bool
    acknowledged: Partitions


class Client(NamedTuple):
    """One process with the transactional id. What it sent before may still be under way."""

    name: str
    transactions: int
    """How many it still begins."""
    records: tuple[Sent, ...]
    """Of the present transaction, by partition."""
    sequences: tuple[int, ...]
    """The next for each partition, in the present epoch."""
    stage: Stage = Stage.STARTING
    producer: Producer | None = None
    added: Partitions = frozenset()
    """Which partitions it knows to be in the present transaction."""
    ended: tuple[Ended, ...] = ()
    misled: bool = False
    """It was told that a sequence is out of order, though it keeps the order."""
    fenced: bool = False
    """In answer to anything but InitProducerId it was told that another has its transactional id."""
    sent: frozenset[tuple[Partition, Verified]] = frozenset()
    ends: frozenset[tuple[EndTxn, Source]] = frozenset()
    """Copies of requests that are no longer waited for, but that may yet arrive."""

    @property
    def source(self) -> Source:
        """The present transaction."""
        return source_of(self.name, len(self.ended))

    @property
    def given_up(self) -> bool:
        """Whether it has no answer for a record, or a bad one."""
        return Sent.UNANSWERED in self.records or Sent.REFUSED in self.records


FENCED = frozenset({Error.PRODUCER_FENCED, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_ID_MAPPING})
"""After which the client is not who it was."""
RETRIED = frozenset({Error.NOT_ENOUGH_REPLICAS, Error.CONCURRENT_TRANSACTIONS})
"""After which the client sends the same again."""


def starting(name: str, transactions: int, partitions: int) -> Client:
    """A client that has yet to ask who it is."""
    return Client(
        name=name,
        transactions=transactions,
        stage=Stage.STARTING if transactions else Stage.STOPPED,
        records=(Sent.NOT,) * partitions,
        sequences=(0,) * partitions,
    )


def batch(client: Client, partition: Partition) -> Verified | None:
    """What it sends to this partition, if it does."""
    if client.stage is not Stage.WRITING or client.producer is None:
        return None
    if client.records[partition] not in (Sent.NOT, Sent.UNANSWERED):
        return None
    sequence = client.sequences[partition]
    return Verified(Batch(*client.producer, sequence, transactional=True), client.source, None)


def sends(client: Client, partition: Partition) -> Client:
    """It has sent its record to this partition."""
    return client._replace(records=_with(client.records, partition, Sent.UNANSWERED))


def acknowledged(client: Client, partition: Partition, waiting: Verified) -> Client:
    """The record is in the log, and the client is told."""
    if not _waits_for(client, partition, waiting):
        return client
    return client._replace(
        records=_with(client.records, partition, Sent.ACKNOWLEDGED),
        sequences=_with(client.sequences, partition, client.sequences[partition] + 1),
    )


def refused(client: Client, partition: Partition, waiting: Verified, error: Error) -> Client:
    """The record is not taken, and the client is told why."""
    if not _waits_for(client, partition, waiting) or error in RETRIED:
        return client
    return client._replace(
        records=_with(client.records, partition, Sent.REFUSED),
        misled=client.misled or error is Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
        fenced=client.fenced or error in FENCED,
    )


def _waits_for(client: Client, partition: Partition, waiting: Verified) -> bool:
    mine = client.stage is Stage.WRITING and client.source == waiting.source
    return mine and client.records[partition] is Sent.UNANSWERED


def commits(client: Client) -> Client | None:
    """It commits if all that it sent was acknowledged."""
    if client.stage is not Stage.WRITING or client.given_up or Sent.ACKNOWLEDGED not in client.records:
        return None
    return client._replace(stage=Stage.COMMITTING)


def aborts(client: Client) -> Client | None:
    """It may abort whatever it has begun, and gives up what was not acknowledged."""
    begun = client.added or set(client.records) != {Sent.NOT}
    return client._replace(stage=Stage.ABORTING) if client.stage is Stage.WRITING and begun else None


def end(client: Client) -> EndTxn | None:
    """The request with which it ends its transaction, if it does."""
    if client.stage not in (Stage.COMMITTING, Stage.ABORTING) or client.producer is None:
        return None
    return EndTxn(client.producer, client.stage is Stage.COMMITTING)


def ends(client: Client, answer: Answer, parameters: Parameters, *, renews: bool) -> Client:
    """It learns what became of its request to end the transaction."""
    if answer.error in RETRIED:
        return client
    if answer.error is not Error.NONE or answer.producer is None:
        return _stopped(client, answer.error)
    wrote = frozenset(place for place, record in enumerate(client.records) if record is Sent.ACKNOWLEDGED)
    after = client._replace(
        transactions=client.transactions - 1,
        records=(Sent.NOT,) * len(client.records),
        added=frozenset(),
        ended=(*client.ended, Ended(client.stage is Stage.COMMITTING, wrote)),
    )
    if client.transactions == 1:
        return _stopped(after)
    if parameters.transaction_version < 2 and client.given_up and renews:
        return after._replace(stage=Stage.RENEWING)
    return _as(after, answer.producer)


def initialized(client: Client, answer: Answer) -> Client:
    """It learns who it is."""
    if answer.error in RETRIED:
        return client
    return _stopped(client) if answer.producer is None else _as(client, answer.producer)


def added(client: Client, partition: Partition, answer: Answer) -> Client:
    """It learns that a partition is in its transaction, or that it is fenced."""
    if answer.error in RETRIED:
        return client
    if answer.error is not Error.NONE:
        return _stopped(client, answer.error)
    return client._replace(added=client.added | {partition})


def _as(client: Client, producer: Producer) -> Client:
    """Sequences start again with every epoch."""
    same = client.producer == producer
    sequences = client.sequences if same else (0,) * len(client.sequences)
    return client._replace(stage=Stage.WRITING, producer=producer, sequences=sequences)


def _stopped(client: Client, error: Error = Error.NONE) -> Client:
    """What it was about does not matter any more, but for what may be under way."""
    idle = starting(client.name, 0, len(client.records))
    fenced = client.fenced or error in FENCED
    return idle._replace(ended=client.ended, misled=client.misled, fenced=fenced, sent=client.sent, ends=client.ends)


def _with(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*row[:place], value, *row[place + 1 :])
