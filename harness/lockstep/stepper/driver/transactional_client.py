"""The transactional client of a walk: its transactional id, producer id, producer epoch and next sequence."""

from __future__ import annotations

from lockstep.stepper.driver.actions import Identity, InTransaction, Sender
from lockstep_model.errors import Error
from lockstep_model.partition.produce import Produced
from lockstep_model.transactions.coordinator import Answer, Producer

STRANGER = 1_000_000
"""The distance of a wrong producer id from the client's own."""


class TransactionalClient:
    """The state of a transactional producer, and the fields of its requests, correct or deliberately wrong."""

    def __init__(self, name: str, version: int) -> None:
        self._name = name
        self._ids = 0
        self.version = version
        """The cluster's finalized transaction.version, by which the client chooses its request versions."""
        self.producer: Producer | None = None
        """Producer id and epoch from the coordinator; None before the first InitProducerId."""
        self._sequence = 0

    @property
    def transactional_id(self) -> str:
        return f"{self._name}-{self._ids}"

    def begin_anew(self) -> None:
        """Take a new transactional id: an InitProducerId that failed may have left state for the previous one."""
        self._ids += 1

    def as_said(self, identity: Identity) -> Producer:
        """Producer id and epoch for a request: the client's own, changed as the step demands."""
        known = self.producer or Producer(0, 0)
        return Producer(known.id + STRANGER * identity.stranger, max(known.epoch + identity.epochs, 0))

    def sender(self, transaction: InTransaction) -> Sender:
        """Producer and base sequence for the next batch: the correct ones, changed as the step demands."""
        producer = self.as_said(transaction.identity)
        sequence = max(self._sequence + transaction.sequences, 0)
        return Sender(producer_id=producer.id, epoch=producer.epoch, sequence=sequence)

    def is_told(self, answer: Answer) -> None:
        """Take producer id and epoch from a coordinator's response; a new epoch begins with sequence 0."""
        if answer.producer is not None and answer.producer != self.producer:
            self.producer = answer.producer
            self._sequence = 0

    def has_written(self, transaction: InTransaction, records: int, reply: Produced | None) -> None:
        """Advance the sequence after a correct batch that was appended, or that may have been: it got no response."""
        if transaction == InTransaction() and (reply is None or reply.error is Error.NONE):
            self._sequence += records
