"""The client with a transactional id that takes part in a walk: who it was told to be, and how far it has written."""

from __future__ import annotations

from lockstep.stepper.driver.actions import Identity, InTransaction, Sender
from lockstep_model.errors import Error
from lockstep_model.partition.produce import Produced
from lockstep_model.transactions.coordinator import Answer, Producer

STRANGER = 1_000_000
"""By how much the producer id of somebody else differs."""


class TransactionalClient:
    """What it knows, and what it says where it is to say the right thing or something else."""

    def __init__(self, name: str, version: int) -> None:
        self._name = name
        self._ids = 0
        self.version = version
        """The cluster's transaction.version, which it follows."""
        self.producer: Producer | None = None
        """None until it was told."""
        self._sequence = 0

    @property
    def transactional_id(self) -> str:
        return f"{self._name}-{self._ids}"

    def begin_anew(self) -> None:
        """Take another transactional id, as nobody knows what became of the first request with this one."""
        self._ids += 1

    def as_said(self, identity: Identity) -> Producer:
        """Who it says it is."""
        known = self.producer or Producer(0, 0)
        return Producer(known.id + STRANGER * identity.stranger, max(known.epoch + identity.epochs, 0))

    def sender(self, transaction: InTransaction) -> Sender:
        """What it says of its next batch."""
        producer = self.as_said(transaction.identity)
        sequence = max(self._sequence + transaction.sequences, 0)
        return Sender(producer_id=producer.id, epoch=producer.epoch, sequence=sequence)

    def is_told(self, answer: Answer) -> None:
        """A coordinator says who it is from now on; a new epoch begins with sequence 0."""
        if answer.producer is not None and answer.producer != self.producer:
            self.producer = answer.producer
            self._sequence = 0

    def has_written(self, transaction: InTransaction, records: int, reply: Produced | None) -> None:
        """What it wrote is in the log, or may be."""
        if transaction == InTransaction() and (reply is None or reply.error is Error.NONE):
            self._sequence += records
