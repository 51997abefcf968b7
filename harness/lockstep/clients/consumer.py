"""A consumer whose every poll is recorded with what it returned, in order."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lockstep.clients import librdkafka, values
from lockstep.clients.access import Access
from lockstep.clients.wire.connection import require_admission
from lockstep.history.lines import OperationLine, ProcessLine, RecordLine
from lockstep.history.recorder import Recorder
from lockstep.history.schema import Direction, Outcome, Role
from lockstep.wait import wait_until

BATCH = 500


class RecordedConsumer:
    """One process of the history, assigned to partitions by hand. Not thread-safe: one thread owns it.

    `poll` and `watermarks` raise `AccessRefused` when the cluster does not let it in.
    """

    def __init__(self, recorder: Recorder, access: Access, topic: str, topic_id: str, role: Role) -> None:
        self.process = recorder.next_process()
        self._recorder = recorder
        self._topic = topic
        self._topic_id = topic_id
        self._assigned: tuple[int, ...] = ()
        isolation = "read_committed"
        self._access = access
        self._admission = librdkafka.Admission(access)
        client = librdkafka.common(access, self._admission, f"{role}-{self.process}") | {
            "group.id": f"{recorder.run}-{self.process}",  # required by the client, never joined
            "enable.auto.commit": False,
            "auto.offset.reset": "error",  # a silent jump would look like a non-monotonic read
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
        }
        self._consumer = Consumer(client)
        recorder.process(
            ProcessLine(
                process=self.process,
                role=role,
                client=librdkafka.CLIENT,
                version=librdkafka.version(),
                isolation=isolation,
                commit_mode="none",
            )
        )

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on; a new span of monotonic reads begins."""
        op = self._recorder.next_op()
        invoke_ns = time.monotonic_ns()
        self._consumer.assign([TopicPartition(self._topic, partition, offset) for partition, offset in offsets.items()])
        self._assigned = tuple(offsets)
        self._recorder.write(
            "operations",
            [
                OperationLine(
                    op=op,
                    process=self.process,
                    kind="assign",
                    invoke_ns=invoke_ns,
                    return_ns=time.monotonic_ns(),
                    outcome=Outcome.OK,
                )
            ],
        )

    def poll(self, timeout_s: float) -> int:
        """One recorded poll; returns how many records it gave."""
        op = self._recorder.next_op()
        invoke_ns = time.monotonic_ns()
        messages = self._consumer.consume(BATCH, timeout_s)
        return_ns = time.monotonic_ns()
        errors = [error for message in messages if (error := message.error()) is not None]
        records = self._lines(op, [message for message in messages if message.error() is None])
        self._recorder.write(
            "operations",
            [
                OperationLine(
                    op=op,
                    process=self.process,
                    kind="poll",
                    invoke_ns=invoke_ns,
                    return_ns=return_ns,
                    outcome=Outcome.OK if records or not errors else Outcome.FAIL,
                    error=errors[0].name() if errors else None,
                )
            ],
        )
        self._recorder.write("records", records)
        if any(error.code() == KafkaError._AUTO_OFFSET_RESET for error in errors):
            self.assign(dict.fromkeys(self._assigned, OFFSET_BEGINNING))
        self._admission.check()
        return len(records)

    def position(self, partition: int) -> int:
        """The offset after the last record read, past control records; -1 before the first."""
        (position,) = self._consumer.position([TopicPartition(self._topic, partition)])
        return int(position.offset)

    def watermarks(self, partition: int) -> tuple[int, int]:
        """Log start and the end that a consumer may read to, asked from the leader now.

        A fresh leader refuses (OFFSET_NOT_AVAILABLE) until its high watermark has caught up with its epoch (KIP-207).
        """
        asked = TopicPartition(self._topic, partition)

        def ask() -> tuple[int, int]:
            try:
                low, high = self._consumer.get_watermark_offsets(asked, timeout=10)
            except KafkaException:
                require_admission(self._access)
                raise
            return int(low), int(high)

        return wait_until(
            ask,
            timeout_s=60,
            what=f"the end of {self._topic}-{partition}",
            retry_on=(KafkaException,),
        )

    def close(self) -> None:
        self._consumer.close()

    def _lines(self, op: int, messages: Sequence[Message]) -> list[RecordLine]:
        return [
            RecordLine(
                op=op,
                position=position,
                direction=Direction.READ,
                topic=self._topic,
                topic_id=self._topic_id,
                partition=message.partition(),
                offset=message.offset(),
                value=values.decode(self._recorder.run, self._topic, message.value()),
                leader_epoch=message.leader_epoch(),
                timestamp_ms=message.timestamp()[1],
                bytes=len(message),
            )
            for position, message in enumerate(messages)
        ]
