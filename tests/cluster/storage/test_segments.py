"""Logs as files, made by hand: cutting them is told in batches and bytes, and leaves nothing made from what is lost."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from lockstep.cluster.storage.segments import PartitionLog, crc32c, partition_logs, recovery_points


def batch(base_offset: int, records: int, payload: bytes = b"payload") -> bytes:
    """A record batch of version 2 with its checksum; its records are not looked at."""
    covered = struct.pack(">hiqqqhii", 0, records - 1, 0, 0, -1, -1, -1, records) + payload
    return struct.pack(">qiibI", base_offset, 9 + len(covered), 0, 2, crc32c(covered)) + covered


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    """Two segments: offsets 0 to 9 in batches of 5, offsets 10 to 29 in batches of 10."""
    directory = tmp_path / "data" / "orders-0"
    directory.mkdir(parents=True)
    for segment, batches in ((0, [batch(0, 5), batch(5, 5)]), (10, [batch(10, 10), batch(20, 10)])):
        name = f"{segment:020d}"
        (directory / f"{name}.log").write_bytes(b"".join(batches))
        for suffix in (".index", ".timeindex", ".snapshot"):
            (directory / f"{name}{suffix}").write_bytes(b"made from records")
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    return PartitionLog(directory)


SIZE = len(batch(0, 1))


def names(log: PartitionLog) -> set[str]:
    return {path.name.lstrip("0") for path in log.directory.iterdir()}


def test_the_checksum_is_the_known_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_batches_are_read_with_their_offsets(log: PartitionLog) -> None:
    assert [(b.base_offset, b.next_offset, b.position) for b in log.batches()] == [
        (0, 5, 0), (5, 10, SIZE), (10, 20, 0), (20, 30, SIZE),
    ]  # fmt: skip
    assert all(b.intact() for b in log.batches())
    assert log.end() == 30


def test_a_torn_batch_at_the_end_is_none(log: PartitionLog) -> None:
    with log.segments[-1].open("r+b") as file:
        file.truncate(2 * SIZE - 1)
    assert log.end() == 20


def test_a_changed_byte_does_not_fit_its_checksum(log: PartitionLog) -> None:
    with log.segments[0].open("r+b") as file:
        file.seek(SIZE - 1)
        file.write(b"?")
    assert [b.intact() for b in log.batches()] == [False, True, True, True]


@pytest.mark.parametrize(
    ("flushed", "keep", "end", "lost_batches", "left"),
    [
        (0, 0.0, 0, 4, {".log", ".snapshot"}),
        (10, 0.0, 10, 2, {".log", ".index", ".timeindex", ".snapshot", "10.log", "10.snapshot"}),
        (0, 0.5, 10, 2, {".log", ".index", ".timeindex", ".snapshot", "10.log", "10.snapshot"}),
        (0, 0.3, 5, 3, {".log", ".snapshot"}),
        (25, 0.0, 30, 0, None),
        (0, 1.0, 30, 0, None),
    ],
)
def test_a_log_is_cut_to_what_was_flushed_and_a_share_of_the_rest(
    log: PartitionLog, flushed: int, keep: float, end: int, lost_batches: int, left: set[str] | None
) -> None:
    before = names(log)

    loss = log.cut(flushed=flushed, keep=keep)

    assert log.end() == end
    assert names(log) == (before if left is None else left | {"leader-epoch-checkpoint"})
    assert (0 if loss is None else loss.size) == lost_batches * SIZE
    if loss is not None:
        assert (loss.end_before, loss.end_after) == (30, end)


def test_only_partitions_are_logs_and_never_the_metadata_of_a_quorum(log: PartitionLog) -> None:
    data = log.directory.parent
    for other in ("__cluster_metadata-0", "orders-1.0123456789abcdef-delete", "orders-2"):
        (data / other).mkdir()
    (data / "__cluster_metadata-0" / "0.log").touch()
    assert [found.name for found in partition_logs(data)] == ["orders-0"]


def test_what_is_flushed_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    assert recovery_points(tmp_path) == {}
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 42\n__consumer_offsets 2 7\n")
    assert recovery_points(tmp_path) == {"orders-0": 42, "__consumer_offsets-2": 7}
