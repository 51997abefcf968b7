"""Observer for KRaft mode: the metadata log has every decision of the controller, in order."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kio.records.schema import RecordBatch

from lockstep.clients.wire.records import CONTROL
from lockstep.stepper.observers.decisions import ControllerObserver, Decision
from lockstep.stepper.observers.metadata_image import Image, words
from lockstep.stepper.observers.metadata_log import UNKNOWN, CommittedRecords, MetadataLog, end_of
from lockstep.stepper.observers.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    decode,
)
from lockstep_model.controller import Controller


class MetadataObserver(ControllerObserver):
    """Observes the decisions about one partition in the metadata log."""

    def __init__(self, log: MetadataLog, topic: str, partition: int) -> None:
        self._log = log
        self._image = Image(topic, partition)
        self._open_transaction: list[MetadataRecord] | None = None
        self._epoch = self._high_watermark = UNKNOWN
        self._asked_ns = self._led_ns = time.monotonic_ns()

    @property
    def current(self) -> Controller:
        return self._image.controller

    @property
    def answered(self) -> bool:
        return self._epoch != UNKNOWN

    def poll(self) -> list[Decision]:
        decisions: list[Decision] = []
        complete = False
        while not complete:
            asked_ns = time.monotonic_ns()
            committed = self._log.read()
            if committed is None:
                break
            before_ns, after_ns = time.monotonic_ns(), self._not_before(committed)
            for batch in committed.batches:
                decisions += self._decided(batch, after_ns, before_ns)
            self._asked_ns, complete = asked_ns, committed.complete
        return decisions

    def close(self) -> None:
        self._log.close()

    def _not_before(self, committed: CommittedRecords) -> int:
        """A time before which none of these batches had been committed.

        If the same quorum leader answered the last read, that is the time when that read began. A new leader may have
        been elected before the old one noticed, but not before the old one last advanced its high watermark, which it
        does about twice a second.
        """
        same = committed.epoch == self._epoch
        after_ns = self._asked_ns if same else self._led_ns
        if same and committed.high_watermark > self._high_watermark:
            self._led_ns = self._asked_ns
        self._epoch, self._high_watermark = committed.epoch, committed.high_watermark
        return after_ns

    def _decided(self, batch: RecordBatch, after_ns: int, before_ns: int) -> Iterator[Decision]:
        """The decision in a batch, if the batch concerns the partition or a broker."""
        steps = list(self._steps(batch))
        if steps:
            yield Decision(
                position=end_of(batch) - 1,
                controller=self.current,
                causes=tuple(cause for cause, _ in steps),
                through=tuple(controller for _, controller in steps[:-1]),
                after_ns=after_ns,
                before_ns=before_ns,
            )

    def _steps(self, batch: RecordBatch) -> Iterator[tuple[str, Controller]]:
        """Each relevant change in a batch, in words, and the controller's state after it."""
        epoch = int(batch.partition_leader_epoch)
        if epoch != self.current.epoch:
            self._image = self._image._replace(controller=self.current._replace(epoch=epoch))
            yield f"another controller: epoch={epoch}", self.current
        for record in self._counting(batch):
            before, self._image = self._image, self._image.after(record)
            if self.current != before.controller or before.concerns(record):
                yield words(record), self.current

    def _counting(self, batch: RecordBatch) -> Iterator[MetadataRecord]:
        """The records that take effect with this batch.

        Records of a metadata transaction (KIP-868) take effect when it ends, and never if it is aborted.
        """
        for record in _decoded(batch):
            match record:
                case BeginTransactionRecord():
                    self._open_transaction = []
                case AbortTransactionRecord():
                    self._open_transaction = None
                case EndTransactionRecord():
                    yield from self._open_transaction or ()
                    self._open_transaction = None
                case _ if self._open_transaction is not None:
                    self._open_transaction.append(record)
                case _:
                    yield record


def _decoded(batch: RecordBatch) -> Iterator[MetadataRecord]:
    """The metadata records of a batch whose types matter here; none of a control batch."""
    if not batch.attributes & CONTROL:
        decoded = (decode(record.value or b"") for record in batch.records)
        yield from (record for record in decoded if record is not None)
