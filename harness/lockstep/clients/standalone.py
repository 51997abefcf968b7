"""A client in an operating-system process of its own, which can be killed and paused: `python -m` this module.

Its task comes in an environment variable, since the task holds credentials, which no command line and no file may show.
The client reports events on standard output: one JSON object a line, with the name of the event.

It has to start quickly, and so imports nothing of `lockstep.history`, which is heavy.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lockstep.clients.access import Access

DUTY = "LOCKSTEP_CLIENT"
"""Environment variable with a `Duty`, as JSON."""

ANSWER_S = 30.0
PACE_S = 0.02
SESSION_MS = 3000
HEARTBEAT_MS = 500

FENCED = frozenset({KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH})


class Write(msgspec.Struct, frozen=True, kw_only=True, tag="write"):
    """Write one record after the other with acks=all, and tell of each that is acknowledged."""

    topic: str


class Transact(msgspec.Struct, frozen=True, kw_only=True, tag="transact"):
    """Commit one transaction after the other, each of one record."""

    topic: str
    transactional_id: str
    insists: bool = False
    """Whether it takes its transactional id back when it is fenced; else it ends there."""


class Join(msgspec.Struct, frozen=True, kw_only=True, tag="join"):
    """Be a member of a group, and commit every record that was read."""

    topic: str
    group: str
    protocol: str
    hold: str | None = None
    """A file: it works on its first record, neither polling nor committing, until that is there."""


class Duty(msgspec.Struct, frozen=True, kw_only=True):
    """A client's identity, the cluster it connects to, and its task for as long as it lives."""

    name: str
    access: Access
    task: Write | Transact | Join

    def encode(self) -> str:
        return msgspec.json.encode(self, enc_hook=str).decode()

    @classmethod
    def decode(cls, text: str) -> Duty:
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))

    def config(self) -> dict[str, Any]:
        """As patient as the workload's clients; what librdkafka complains of goes where the events go."""
        return {
            **self.access.librdkafka(),
            "client.id": self.name,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.fast.interval.ms": 100,
        }


def tell(event: str, **fields: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode({"event": event, **fields}) + b"\n")
    sys.stdout.buffer.flush()


def write(duty: Duty, task: Write) -> None:
    producer = Producer(duty.config() | {"acks": "all", "linger.ms": 0})

    def answered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            tell("acknowledged", offset=message.offset())
        else:
            tell("failed", error=error.name())

    for number in itertools.count():
        producer.produce(task.topic, f"{duty.name}:{number}".encode(), partition=0, on_delivery=answered)
        producer.poll(PACE_S)


def transact(duty: Duty, task: Transact) -> None:
    while True:
        try:
            _commit_one_by_one(duty, task)
        except KafkaException as error:
            reason: KafkaError = error.args[0]
            if reason.code() not in FENCED:
                raise
            tell("fenced", error=reason.name(), why=reason.str())
        if not task.insists:
            return


def _commit_one_by_one(duty: Duty, task: Transact) -> None:
    """Commit transactions until an error: an abortable one aborts the transaction, any other is raised."""
    producer = Producer(duty.config() | {"transactional.id": task.transactional_id, "linger.ms": 0})
    producer.init_transactions(ANSWER_S)
    tell("initialised")
    for number in itertools.count():
        try:
            producer.begin_transaction()
            producer.produce(task.topic, f"{duty.name}:{number}".encode(), partition=0)
            producer.flush(ANSWER_S)
            tell("written", number=number)
            producer.commit_transaction(ANSWER_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(ANSWER_S)
            tell("aborted", error=error.args[0].name())
        else:
            tell("committed", number=number)
        time.sleep(PACE_S)


def join(duty: Duty, task: Join) -> None:
    session = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    consumer = Consumer(
        duty.config()
        | {"group.id": task.group, "group.protocol": task.protocol}
        | {"enable.auto.commit": False, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
        | (session if task.protocol == "classic" else {})  # with the other one, it is the broker's to say
    )

    def noted(event: str) -> Any:
        return lambda _, partitions: tell(
            event, member=consumer.memberid(), partitions=sorted(each.partition for each in partitions)
        )

    # With callbacks, a member that was thrown out does not join again before its next poll.
    consumer.subscribe([task.topic], on_assign=noted("assigned"), on_revoke=noted("revoked"), on_lost=noted("lost"))
    held = task.hold is None
    while True:
        message = consumer.poll(PACE_S)
        if message is None or message.error() is not None:
            continue
        if not held:
            held = True
            _hold(task.hold, message)
        _commit(consumer, message)


def _hold(until: str | None, message: Message) -> None:
    assert until is not None
    tell("holds", partition=message.partition(), offset=message.offset())
    while not Path(until).exists():
        time.sleep(PACE_S)


def _commit(consumer: Consumer, message: Message) -> None:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    try:
        (committed,) = consumer.commit(offsets=[TopicPartition(topic, partition, offset + 1)], asynchronous=False)
        error = committed.error
    except KafkaException as raised:
        error = raised.args[0]
    if error is None:
        tell("committed", partition=partition, offset=offset)
    else:
        tell("refused", partition=partition, offset=offset, error=error.name(), code=error.code())


def main() -> None:
    duty = Duty.decode(os.environ[DUTY])
    match duty.task:
        case Write():
            write(duty, duty.task)
        case Transact():
            transact(duty, duty.task)
        case Join():
            join(duty, duty.task)


if __name__ == "__main__":
    main()
