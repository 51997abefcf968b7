"""Record batches, version 2: what a producer writes, be it right or wrong, and what a fetch brings back."""

from __future__ import annotations

import io
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, Record, RecordBatch
from kio.records.writers import write_batch
from kio.schema.control_record_type_schema.v0.data import ControlRecordTypeSchema
from kio.schema.end_txn_marker.v0.data import EndTxnMarker
from kio.serial import entity_reader
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

TRANSACTIONAL = 0x10
CONTROL = 0x20
CRC_AT = 17
LENGTH_AT, LENGTH_END = 8, 12
"""The first offset, and the length of all that follows: there is no telling of a batch without them."""
ABORT, COMMIT = 0, 1
"""Kafka's `ControlRecordType`; the others are in the metadata log only."""
SCHEMA_VERSION_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """Producer id and epoch of an idempotent or transactional producer."""

    id: int
    epoch: int


NO_PRODUCER = Producer(id=-1, epoch=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A record batch as a producer writes it. Nothing is validated: tests send wrong batches, too."""

    values: tuple[bytes, ...]
    producer: Producer = NO_PRODUCER
    base_sequence: int = -1
    transactional: bool = False
    partition_leader_epoch: int = -1
    """The leader writes its own over it."""
    timestamp_ms: int | None = None
    """Of all its records; now, unless it is given."""
    wrong_crc: bool = False
    missing_bytes: int = 0
    """By how many bytes its length field exceeds its real length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A transaction marker, written to the partition for the transaction coordinator."""

    commit: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecord:
    """One record, with what its batch says."""

    offset: int
    partition_leader_epoch: int
    value: bytes | None
    producer: Producer
    base_sequence: int
    """Of the first record that the batch had when it was written."""
    transactional: bool
    control: bool
    """A control record: a transaction marker, or in the metadata log a record of the KRaft quorum's own."""
    marker: Marker | None


def encode(batch: Batch) -> bytes:
    """The batch as Produce carries it."""
    now_ms = int(time.time() * 1000)
    timestamp = _timestamp(now_ms if batch.timestamp_ms is None else batch.timestamp_ms)
    new = NewRecordBatch(
        producer_id=i64(batch.producer.id),
        producer_epoch=i16(batch.producer.epoch),
        partition_leader_epoch=i32(batch.partition_leader_epoch),
        base_sequence=i32(batch.base_sequence),
        attributes=i16(TRANSACTIONAL if batch.transactional else 0),
        records=tuple(
            Record(attributes=i8(0), timestamp=timestamp, offset=i64(index), key=None, value=value, headers=())
            for index, value in enumerate(batch.values)
        ),
    )
    with io.BytesIO() as buffer:
        write_batch(buffer, new)
        encoded = bytearray(buffer.getvalue())
    if batch.wrong_crc:
        encoded[CRC_AT] ^= 0xFF
    struct.pack_into(">i", encoded, LENGTH_AT, len(encoded) - LENGTH_END + batch.missing_bytes)
    return bytes(encoded)


def parse(records: bytes | None, fetch_offset: int) -> tuple[FetchedRecord, ...]:
    """The records of a fetch from `fetch_offset` on.

    A broker sends whole batches, so the first may begin earlier, and the last may be cut off where the bytes ended.
    """
    return tuple(
        record for batch in batches(records or b"") for record in _records(batch) if record.offset >= fetch_offset
    )


def batches(records: bytes) -> Iterator[RecordBatch]:
    """The whole batches of a fetch, or of a segment file."""
    position = 0
    while len(records) >= position + LENGTH_END:
        (length,) = struct.unpack_from(">i", records, position + LENGTH_AT)
        if len(records) < position + LENGTH_END + length:
            return
        batch, size = read_batch(records, position)
        yield batch
        position += size


def _records(batch: RecordBatch) -> Iterator[FetchedRecord]:
    control = bool(batch.attributes & CONTROL)
    for record in batch.records:
        yield FetchedRecord(
            offset=int(record.offset),
            partition_leader_epoch=int(batch.partition_leader_epoch),
            value=record.value,
            producer=Producer(id=int(batch.producer_id), epoch=int(batch.producer_epoch)),
            base_sequence=int(batch.base_sequence),
            transactional=bool(batch.attributes & TRANSACTIONAL),
            control=control,
            marker=_marker(record) if control else None,
        )


def _marker(record: Record) -> Marker | None:
    """Key and value each begin with the version of their schema, and all versions begin alike."""
    kind, _ = entity_reader(ControlRecordTypeSchema)(record.key or b"", SCHEMA_VERSION_BYTES)
    if kind.type_ not in (ABORT, COMMIT):
        return None
    end, _ = entity_reader(EndTxnMarker)(record.value or b"", SCHEMA_VERSION_BYTES)
    return Marker(commit=kind.type_ == COMMIT, coordinator_epoch=int(end.coordinator_epoch))


def _timestamp(timestamp_ms: int) -> TZAwareMicros:
    """Kafka counts milliseconds, kio cuts off what a float holds of them: half of one more keeps them all."""
    return TZAwareMicros.parse(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=timestamp_ms + 0.5))
