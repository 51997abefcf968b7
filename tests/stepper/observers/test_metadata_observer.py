"""Decisions from batches of the metadata log, with a log that says what a test wants to have been said."""

from __future__ import annotations

import io
import struct
import time
import uuid

import pytest
from kio.records.schema import RecordBatch
from kio.serial import entity_writer
from kio.static.primitive import i8, i32, i64

from lockstep.clients.wire.records import Batch, batches, encode
from lockstep.stepper.observers.metadata_log import CommittedRecords, MetadataLog
from lockstep.stepper.observers.metadata_observer import MetadataObserver
from lockstep.stepper.observers.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

ORDERS = uuid.UUID(int=1)
CREATED = (
    TopicRecord(name="orders", topic_id=ORDERS),
    PartitionRecord(
        partition_id=i32(0), topic_id=ORDERS, replicas=(i32(1), i32(2)), isr=(i32(1), i32(2)), removing_replicas=(),
        adding_replicas=(), leader=i32(1), leader_epoch=i32(0), partition_epoch=i32(0),
    ),
)  # fmt: skip
LEADER_2 = PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, leader=i32(2))
ONLY_2 = PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, isr=(i32(2),))
OF_ANOTHER = TopicRecord(name="other", topic_id=uuid.UUID(int=2))


class StoredLog(MetadataLog):
    """A log of which each reading was thought of beforehand."""

    def __init__(self, *readings: CommittedRecords | None) -> None:
        self._readings = iter(readings)

    def read(self) -> CommittedRecords | None:
        return next(self._readings)

    def close(self) -> None:
        pass


def value_of(record: MetadataRecord) -> bytes:
    with io.BytesIO() as buffer:
        buffer.write(bytes([1, record.__api_key__, record.__version__]))
        entity_writer(type(record))(buffer, record)
        return buffer.getvalue()


def batch(base_offset: int, *records: MetadataRecord, epoch: int = 1) -> RecordBatch:
    encoded = encode(Batch(values=tuple(map(value_of, records)), partition_leader_epoch=epoch, timestamp_ms=0))
    (decoded,) = batches(struct.pack(">q", base_offset) + encoded[8:])
    return decoded


def reading(*committed: RecordBatch, epoch: int = 1, high_watermark: int = 0) -> CommittedRecords:
    ends = [int(batch.base_offset + batch.last_offset_delta + 1) for batch in committed]
    return CommittedRecords(batches=committed, epoch=epoch, high_watermark=max([high_watermark, *ends]))


def following(*readings: CommittedRecords | None) -> MetadataObserver:
    return MetadataObserver(StoredLog(*readings), "orders", 0)


def test_a_batch_is_one_decision_and_its_events_are_told_apart() -> None:
    observer = following(
        reading(batch(0, *CREATED, epoch=0), epoch=0), reading(batch(2, LEADER_2, ONLY_2, epoch=0), epoch=0)
    )
    (created,) = observer.poll()
    assert (created.position, created.causes[0].split()[0]) == (1, "PartitionRecord")
    (decision,) = observer.poll()
    assert decision.position == 3
    assert decision.causes == ("PartitionChangeRecord leader=2", "PartitionChangeRecord isr=(2,)")
    assert [known.partition.leader for known in decision.through] == [2]
    assert decision.through[0].partition.isr == {1, 2}
    assert decision.controller.partition.isr == {2}
    assert observer.current == decision.controller


def test_several_batches_in_one_answer_are_several_decisions() -> None:
    observer = following(reading(batch(0, *CREATED), batch(2, LEADER_2), batch(3, OF_ANOTHER), batch(4, ONLY_2)))
    assert [decision.position for decision in observer.poll()] == [1, 2, 4]


def test_readings_go_on_up_to_the_high_watermark() -> None:
    observer = following(reading(batch(0, *CREATED), high_watermark=3), reading(batch(2, LEADER_2)))
    assert [decision.position for decision in observer.poll()] == [1, 2]


def test_a_setting_is_a_decision_that_changes_nothing() -> None:
    setting = ConfigRecord(resource_type=i8(2), resource_name="orders", name="min.insync.replicas", value="2")
    observer = following(reading(batch(0, *CREATED)), reading(batch(2, setting)))
    (created,) = observer.poll()
    (decision,) = observer.poll()
    assert decision.controller == created.controller
    assert decision.causes == (
        "ConfigRecord resource_type=2 resource_name=orders name=min.insync.replicas value=2",
    )  # fmt: skip


def test_another_controller_is_a_decision() -> None:
    unfenced = BrokerRegistrationChangeRecord(broker_id=i32(1), broker_epoch=i64(4), fenced=i8(-1))
    observer = following(reading(batch(0, *CREATED)), reading(batch(2, unfenced, epoch=2), epoch=2))
    observer.poll()
    (decision,) = observer.poll()
    assert (decision.causes, decision.controller.epoch) == (("another controller: epoch=2",), 2)


@pytest.mark.parametrize(
    ("end", "leader"), [(EndTransactionRecord(), 2), (AbortTransactionRecord(), 1)], ids=["ended", "aborted"]
)
def test_what_is_in_a_transaction_counts_when_it_ends(end: MetadataRecord, leader: int) -> None:
    observer = following(
        reading(batch(0, *CREATED)),
        reading(batch(2, BeginTransactionRecord(), LEADER_2)),
        reading(batch(4, end)),
        reading(batch(5, ONLY_2)),
    )
    observer.poll()
    assert observer.poll() == []
    assert [decision.position for decision in observer.poll()] == ([4] if leader == 2 else [])
    (last,) = observer.poll()
    assert (last.controller.partition.leader, set(last.controller.partition.isr)) == (leader, {2})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Says what the time is; each look at it takes 1 ns."""
    now = [0]

    def tick() -> int:
        now[0] += 1
        return now[0]

    monkeypatch.setattr(time, "monotonic_ns", tick)
    return now


def test_a_decision_lies_between_the_last_poll_and_the_end_of_this_one(clock: list[int]) -> None:
    observer = following(reading(batch(0, *CREATED)), None, reading(batch(2, LEADER_2)))
    clock[0] = 100
    observer.poll()
    clock[0] = 200
    assert observer.poll() == []
    clock[0] = 300
    (decision,) = observer.poll()
    assert (decision.after_ns, decision.before_ns) == (101, 302)  # the poll at 200 was not answered


def test_a_leader_that_was_deposed_unawares_does_not_narrow_the_interval(clock: list[int]) -> None:
    observer = following(
        reading(batch(0, *CREATED)),
        reading(batch(2, OF_ANOTHER)),
        reading(high_watermark=3),
        reading(batch(3, LEADER_2, epoch=2), epoch=2),
    )
    for now in (100, 200, 300):
        clock[0] = now
        observer.poll()
    clock[0] = 400
    (decision,) = observer.poll()
    assert decision.after_ns == 101  # what was committed at 200 shows that the old leader still led after 100
