"""Replicas on disk, from files made by hand; those of real brokers are in `test_decisions`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from lockstep.clients.wire.records import Batch, Producer, encode
from lockstep.cluster.storage.segments import PartitionLog
from lockstep.errors import ClusterError
from lockstep.stepper.observers.stopped_replicas import EPOCHS, HIGH_WATERMARKS, LOG_STARTS, read
from lockstep_model.partition.log import EpochStart


def written(base_offset: int, *values: bytes, epoch: int = 0, producer: Producer | None = None) -> bytes:
    """A batch as a leader of this epoch has written it: where it begins is not covered by its checksum."""
    batch = Batch(values=values, partition_leader_epoch=epoch, timestamp_ms=0)
    if producer is not None:
        batch = Batch(
            values=values, partition_leader_epoch=epoch, timestamp_ms=0, producer=producer, base_sequence=0,
            transactional=True,
        )  # fmt: skip
    return struct.pack(">q", base_offset) + encode(batch)[8:]


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Four records in two segments; the first was deleted on request, the last two are of another leader."""
    directory = tmp_path / "data" / "orders-0"
    directory.mkdir(parents=True)
    (directory / f"{0:020d}.log").write_bytes(written(0, b"a", b"b"))
    (directory / f"{2:020d}.log").write_bytes(
        written(2, b"c", epoch=3) + written(3, b"d", epoch=3, producer=Producer(id=7, epoch=1))
    )
    (directory / EPOCHS).write_text("0\n2\n0 0\n3 2\n")
    (directory.parent / HIGH_WATERMARKS).write_text("0\n2\norders 0 3\norders 1 9\n")
    (directory.parent / LOG_STARTS).write_text("0\n1\norders 0 1\n")
    return PartitionLog(directory)


def test_a_log_is_read_from_its_start_on(log: PartitionLog) -> None:
    replica = read(log)
    assert [(record.offset, record.partition_leader_epoch, record.value) for record in replica.records] == [
        (1, 0, b"b"), (2, 3, b"c"), (3, 3, b"d"),
    ]  # fmt: skip
    assert (replica.start, replica.end, replica.high_watermark) == (1, 4, 3)
    assert replica.epochs == (EpochStart(0, 0), EpochStart(3, 2))


def test_records_come_with_their_producer(log: PartitionLog) -> None:
    *_, plain, last = read(log).records
    assert (plain.producer.id, plain.transactional) == (-1, False)
    assert (last.producer, last.base_sequence, last.transactional) == (Producer(id=7, epoch=1), 0, True)


def test_what_the_broker_never_wrote_down_is_not_known(log: PartitionLog) -> None:
    for name in (HIGH_WATERMARKS, LOG_STARTS):
        (log.directory.parent / name).unlink()
    replica = read(log)
    assert (replica.start, replica.high_watermark) == (0, None)
    assert [record.value for record in replica.records] == [b"a", b"b", b"c", b"d"]


def test_a_batch_that_was_not_written_to_its_end_is_none(log: PartitionLog) -> None:
    with log.segments[-1].open("r+b") as file:
        file.truncate(log.segments[-1].stat().st_size - 1)
    replica = read(log)
    assert [record.value for record in replica.records] == [b"b", b"c"]
    assert replica.end == 3


def test_a_damaged_batch_is_told(log: PartitionLog) -> None:
    with log.segments[0].open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    with pytest.raises(ClusterError, match=r"orders-0 .* cannot be read: Checksum"):
        read(log)
