"""The logs of a broker as files: where they end, what is in them, and how they are cut back."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep.clients.wire.quorum import METADATA_TOPIC

HEADER = struct.Struct(">qiibIhi")
"""Of a record batch (KIP-98): base offset, length, leader epoch, magic, CRC, attributes, last offset delta."""
LENGTH_AT = 12
"""What comes before the part of a batch that its length counts."""
CRC_FROM = 21
"""Where the part of a batch begins that its CRC covers: its attributes."""
RECORDS_FROM = 61

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
INDEXES = (".index", ".timeindex", ".txnindex")
SNAPSHOT = ".snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One whole record batch in a segment file."""

    segment: Path
    position: int
    size: int
    base_offset: int
    next_offset: int
    crc: int

    def intact(self) -> bool:
        """Whether its content is what it was written with."""
        with self.segment.open("rb") as file:
            file.seek(self.position + CRC_FROM)
            return crc32c(file.read(self.size - CRC_FROM)) == self.crc


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What was cut off a log."""

    end_before: int
    end_after: int
    size: int


class PartitionLog:
    """The log of one partition in one log directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def name(self) -> str:
        """Topic and partition, as in `orders-0`."""
        return self.directory.name

    @property
    def topic(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def segments(self) -> list[Path]:
        """Oldest first; the last one is active."""
        return sorted(self.directory.glob("*.log"))

    def batches(self) -> Iterator[Batch]:
        for segment in self.segments:
            yield from _batches(segment)

    def end(self) -> int:
        """The offset of the next record."""
        return max((batch.next_offset for batch in self.batches()), default=int(self.segments[-1].stem))

    def cut(self, *, flushed: int, keep: float) -> Loss | None:
        """Lose what lies behind the flushed offset, but for a share of its bytes; None if nothing does.

        The broker must be down. What is made from the lost records goes too: indexes, and snapshots of producers.
        """
        unflushed = [batch for batch in self.batches() if batch.base_offset >= flushed]
        left = keep * sum(batch.size for batch in unflushed)
        for number, batch in enumerate(unflushed):
            left -= batch.size
            if left < 0:
                self._cut_before(batch)
                size = sum(lost.size for lost in unflushed[number:])
                return Loss(end_before=unflushed[-1].next_offset, end_after=batch.base_offset, size=size)
        return None

    def _cut_before(self, first_lost: Batch) -> None:
        with first_lost.segment.open("r+b") as file:
            file.truncate(first_lost.position)
        last_segment = int(first_lost.segment.stem)
        gone_from = {".log": last_segment + 1, SNAPSHOT: first_lost.base_offset + 1} | dict.fromkeys(
            INDEXES, last_segment
        )
        for path in self.directory.iterdir():
            if path.suffix in gone_from and int(path.stem) >= gone_from[path.suffix]:
                path.unlink()


def partition_logs(log_directory: Path) -> list[PartitionLog]:
    """The partitions in a log directory, without those on their way out and without the metadata of a quorum."""
    found = [PartitionLog(path) for path in sorted(log_directory.iterdir()) if re.fullmatch(r".+-\d+", path.name)]
    return [log for log in found if log.topic != METADATA_TOPIC and log.segments]


def recovery_points(log_directory: Path) -> Mapping[str, int]:
    """Up to where the broker says that it has flushed each log: it may have flushed more since."""
    return checkpoint(log_directory / RECOVERY_POINTS)


def checkpoint(file: Path) -> Mapping[str, int]:
    """An offset for each partition, as a broker keeps them beside its logs; none if it has not written any yet."""
    words = (line.split() for line in checkpoint_lines(file))
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in words}


def checkpoint_lines(file: Path) -> list[str]:
    """What a checkpoint of any kind says, behind a version and how many lines follow."""
    try:
        return file.read_text().splitlines()[2:]
    except FileNotFoundError:
        return []


def _batches(segment: Path) -> Iterator[Batch]:
    """The whole batches of a segment; one that is not there to its end is none."""
    with segment.open("rb") as file:
        size = segment.stat().st_size
        position = 0
        while position + RECORDS_FROM <= size:
            file.seek(position)
            base_offset, length, _, _, crc, _, last_delta = HEADER.unpack(file.read(HEADER.size))
            end = position + LENGTH_AT + length
            if length <= 0 or end > size:
                return
            yield Batch(
                segment=segment,
                position=position,
                size=end - position,
                base_offset=base_offset,
                next_offset=base_offset + last_delta + 1,
                crc=crc,
            )
            position = end


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The checksum of record batches (Castagnoli)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF
