"""Record batches there and back, and such as no correct producer writes."""

from __future__ import annotations

import dataclasses
import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from lockstep.clients.wire.records import CONTROL, NO_PRODUCER, TRANSACTIONAL, Batch, Marker, Producer, encode, parse

PRODUCER = Producer(id=4_000_000_000, epoch=3)


def at(offset: int, batch: bytes, *, leader_epoch: int = -1) -> bytes:
    """The batch as a leader puts it into its log; neither is covered by the CRC."""
    return struct.pack(">q", offset) + batch[8:12] + struct.pack(">i", leader_epoch) + batch[16:]


def control_batch(*, kind: int, coordinator_epoch: int) -> bytes:
    """A batch as a transaction coordinator has it written (EndTransactionMarker): one record with a key."""
    key = struct.pack(">hh", 0, kind)
    value = struct.pack(">hi", 0, coordinator_epoch)
    record = b"\0\0\0" + bytes([2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\0"
    header = struct.pack(">hiqqqhii", TRANSACTIONAL | CONTROL, 0, 7, 7, PRODUCER.id, PRODUCER.epoch, -1, 1)
    counted = header + bytes([2 * len(record)]) + record
    return struct.pack(">qiibI", 0, 9 + len(counted), 0, 2, crc32c(counted)) + counted


def test_what_is_written_is_read() -> None:
    batch = Batch(values=(b"a", b"", b"c" * 300), producer=PRODUCER, base_sequence=17, transactional=True)
    first, second, third = parse(at(40, encode(batch), leader_epoch=6), 0)
    assert [record.offset for record in (first, second, third)] == [40, 41, 42]
    assert [record.value for record in (first, second, third)] == list(batch.values)
    for record in (first, second, third):
        assert (record.producer, record.base_sequence, record.transactional) == (PRODUCER, 17, True)
        assert record.partition_leader_epoch == 6
        assert not record.control
        assert record.marker is None


def test_a_plain_batch_has_no_producer() -> None:
    (record,) = parse(encode(Batch(values=(b"a",), partition_leader_epoch=9)), 0)
    assert (record.producer, record.base_sequence, record.transactional) == (NO_PRODUCER, -1, False)
    assert record.partition_leader_epoch == 9


@given(timestamp_ms=st.integers(0, 2**42 - 1))
def test_milliseconds_are_kept(timestamp_ms: int) -> None:
    batch, _ = read_batch(encode(Batch(values=(b"a", b"b"), timestamp_ms=timestamp_ms)), 0)
    assert (batch.base_timestamp, batch.max_timestamp) == (timestamp_ms, timestamp_ms)


@given(values=st.lists(st.binary(max_size=300), min_size=1, max_size=200), offset=st.integers(0, 2**40))
def test_any_values_come_back_at_their_offsets(values: list[bytes], offset: int) -> None:
    parsed = parse(at(offset, encode(Batch(values=tuple(values)))), offset)
    assert [(record.offset, record.value) for record in parsed] == list(enumerate(values, offset))


def test_records_below_the_fetch_offset_are_left_out() -> None:
    log = at(10, encode(Batch(values=(b"a", b"b", b"c")))) + at(13, encode(Batch(values=(b"d",))))
    assert [record.value for record in parse(log, 12)] == [b"c", b"d"]


@pytest.mark.parametrize("left", [1, 11, 12, 60])
def test_a_batch_that_was_cut_off_is_left_for_the_next_fetch(left: int) -> None:
    whole, cut = at(0, encode(Batch(values=(b"a",)))), at(1, encode(Batch(values=(b"b", b"c"))))
    assert [record.value for record in parse(whole + cut[:left], 0)] == [b"a"]
    assert [record.value for record in parse(whole + cut, 0)] == [b"a", b"b", b"c"]


def test_nothing_fetched_is_no_record() -> None:
    assert parse(None, 0) == parse(b"", 0) == ()


def test_a_wrong_crc_is_all_that_is_wrong() -> None:
    right = Batch(values=(b"a",), timestamp_ms=5)
    wrong = encode(dataclasses.replace(right, wrong_crc=True))
    with pytest.raises(ValueError, match="Checksum"):
        parse(wrong, 0)
    assert wrong[:17] + wrong[21:] == encode(right)[:17] + encode(right)[21:]


@pytest.mark.parametrize("commit", [True, False])
def test_markers_tell_how_a_transaction_ended(commit: bool) -> None:
    (record,) = parse(at(5, control_batch(kind=int(commit), coordinator_epoch=12)), 0)
    assert (record.offset, record.producer, record.control, record.transactional) == (5, PRODUCER, True, True)
    assert record.marker == Marker(commit=commit, coordinator_epoch=12)


def test_a_control_record_of_another_kind_is_no_marker() -> None:
    leader_change = 2
    (record,) = parse(control_batch(kind=leader_change, coordinator_epoch=12), 0)
    assert record.control
    assert record.marker is None


def test_a_batch_with_missing_bytes_is_whole_but_for_its_length() -> None:
    right = Batch(values=(b"a",), timestamp_ms=5)
    wrong = encode(dataclasses.replace(right, missing_bytes=1))
    assert parse(wrong, 0) == ()
    assert wrong[:8] + wrong[12:] == encode(right)[:8] + encode(right)[12:]
