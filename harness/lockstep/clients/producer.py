"""A producer whose every send is on disk before it is sent, and whose answers are recorded as they came."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep.clients import librdkafka, values
from lockstep.clients.access import Access
from lockstep.history.lines import OperationLine, ProcessLine, RecordLine
from lockstep.history.recorder import Recorder
from lockstep.history.schema import Direction, Outcome, Role, value_id

DELIVERY_TIMEOUT_MS = 180_000
"""Longer than any planned outage: after a time-out the client takes a new producer epoch, in which it sends again what
is unanswered, and brokers take that for new. The longest outage measured is one of 98 s, in a migration on a busy
machine.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """The settings of a producer on which its guarantees depend; recorded with the history."""

    acks: int
    idempotent: bool
    in_flight: int


class RecordedProducer:
    """One process of the history. Not thread-safe: one thread owns it.

    `poll` and `close` raise `AccessRefused` when the cluster does not let it in.
    """

    def __init__(
        self, recorder: Recorder, access: Access, topic: str, topic_id: str, settings: ProducerSettings
    ) -> None:
        self.process = recorder.next_process()
        self.fatal: KafkaError | None = None
        self.outstanding = 0
        self._recorder = recorder
        self._topic = topic
        self._topic_id = topic_id
        self._sequence = 0
        self._operations: list[OperationLine] = []
        self._records: list[RecordLine] = []
        self._admission = librdkafka.Admission(access)
        client = librdkafka.common(access, self._admission, f"writer-{self.process}") | {
            "acks": settings.acks,
            "enable.idempotence": settings.idempotent,
            "max.in.flight.requests.per.connection": settings.in_flight,
            "message.timeout.ms": DELIVERY_TIMEOUT_MS,
            "retry.backoff.ms": 50,
            "linger.ms": 10,
        }
        self._producer = Producer(client)
        recorder.process(
            ProcessLine(
                process=self.process,
                role=Role.WRITER,
                client=librdkafka.CLIENT,
                version=librdkafka.version(),
                acks=settings.acks,
                idempotent=settings.idempotent,
                retries=2**31 - 1,  # librdkafka's default; its deadline is message.timeout.ms
                in_flight=settings.in_flight,
            )
        )

    def send(self, partitions: Sequence[int]) -> None:
        """Send one new value to each of these partitions, without waiting for answers."""
        ops = self._recorder.reserve_ops(len(partitions))
        sends = []
        for op, partition in zip(ops, partitions, strict=True):
            sends.append((op, partition, value_id(self.process, self._sequence)))
            self._sequence += 1
        invoke_ns = time.monotonic_ns()
        self._recorder.write(
            "operations",
            [OperationLine(op=op, process=self.process, kind="send", invoke_ns=invoke_ns) for op, _, _ in sends],
        )
        self._recorder.write(
            "records",
            [
                RecordLine(
                    op=op,
                    position=0,
                    direction=Direction.SENT,
                    topic=self._topic,
                    topic_id=self._topic_id,
                    partition=partition,
                    value=value,
                )
                for op, partition, value in sends
            ],
        )
        for op, partition, value in sends:
            self._send(op, partition, value)

    def poll(self, timeout_s: float = 0.0) -> None:
        """Let answers come in, and write down those that did."""
        with self._fatal_noted():
            self._producer.poll(timeout_s)
        self._write_answers()
        self._admission.check()

    def close(self) -> None:
        """Wait for every answer; librdkafka gives each send one, at the latest at its delivery time-out."""
        while self.outstanding:
            with self._fatal_noted():
                self._producer.flush(0.5)
            self._write_answers()
            self._admission.check()

    def abandon(self) -> None:
        """Give up what is on the way: its outcome stays unknown."""
        with self._fatal_noted():
            self._producer.purge()
            self._producer.flush(0)
        self._write_answers()

    @contextmanager
    def _fatal_noted(self) -> Iterator[None]:
        """A fatal error is raised by whatever is called next: this producer can never send again, others can."""
        try:
            yield
        except KafkaException as error:
            self.fatal = error.args[0]

    def _send(self, op: int, partition: int, value: int) -> None:
        payload = values.encode(self._recorder.run, self._topic, value)
        self.outstanding += 1
        try:
            self._producer.produce(
                self._topic,
                value=payload,
                partition=partition,
                on_delivery=lambda error, message: self._answered(op, error, message),
            )
        except BufferError:
            self._answered(op, KafkaError(KafkaError._QUEUE_FULL), None, refused=True)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.fatal() or reason.code() == KafkaError._FATAL:
                self.fatal = reason
            self._answered(op, reason, None, refused=True)

    def _answered(self, op: int, error: KafkaError | None, message: Message | None, *, refused: bool = False) -> None:
        """`refused`: the client itself did not take the record, so it was certainly never sent."""
        return_ns = time.monotonic_ns()
        self.outstanding -= 1
        self._operations.append(
            OperationLine(
                op=op,
                return_ns=return_ns,
                outcome=Outcome.FAIL if refused else librdkafka.outcome_of(error),
                error=None if error is None else error.name(),
            )
        )
        offset = None if error is not None or message is None else message.offset()
        if offset is not None and offset >= 0:  # an acknowledgement without offset is legal
            assert message is not None
            self._records.append(RecordLine(op=op, position=0, offset=offset, leader_epoch=message.leader_epoch()))

    def _write_answers(self) -> None:
        if self._operations:
            self._recorder.write("operations", self._operations)
            self._recorder.write("records", self._records)
            self._operations, self._records = [], []
