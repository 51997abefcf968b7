"""Parquet files made of parts: each part is written on its own, in any process, and all are joined without decoding.

A Parquet file is column chunks and, at its end, a footer with the place of each. To join files is to copy their chunks
one after another, and to write one footer in which every place is moved by what was copied before it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lockstep.host.disk import explained
from lockstep.simulation import thrift

_MAGIC = b"PAR1"

# Fields of the footer's structs, by their numbers in parquet.thrift.
_ROWS, _ROW_GROUPS = 3, 4  # FileMetaData
_COLUMNS, _GROUP_PLACE, _ORDINAL = 1, 5, 7  # RowGroup
_CHUNK_PLACE, _CHUNK = 2, 3  # ColumnChunk
_PAGES = (9, 10, 11)  # ColumnMetaData: data, index and dictionary pages


class PartWriter:
    """One part of a table, a row group at a time: what is written is out of memory."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        if len(table):
            with explained(self._path):
                self._writer.write_table(table, row_group_size=len(table))

    def close(self) -> None:
        with explained(self._path):
            self._writer.close()


@dataclass(slots=True, kw_only=True)
class Joined:
    """A file that parts are appended to; it can be read once it is finished."""

    path: Path
    handle: BinaryIO
    footer: thrift.Struct | None = None

    @classmethod
    def create(cls, path: Path) -> Joined:
        with explained(path):
            handle = path.open("wb")
            handle.write(_MAGIC)
        return cls(path=path, handle=handle)

    def append(self, part: Path) -> None:
        """Copy the chunks of a part, and note where they are now."""
        with explained(self.path), part.open("rb") as source:
            moved = self.handle.tell() - len(_MAGIC)
            footer, chunks_end = _footer(source)
            source.seek(len(_MAGIC))
            _copy(source, self.handle, chunks_end - len(_MAGIC))
        groups = footer[_ROW_GROUPS].items
        for group in groups:
            _move(group, moved)
        if self.footer is None:
            self.footer = footer
        else:
            self.footer[_ROWS] += footer[_ROWS]
            self.footer[_ROW_GROUPS].items.extend(groups)

    def finish(self) -> None:
        assert self.footer is not None
        for ordinal, group in enumerate(self.footer[_ROW_GROUPS].items):
            group.pop(_ORDINAL, None) if ordinal > thrift.I16_MAX else group.set(_ORDINAL, thrift.I16, ordinal)
        content = thrift.encode(self.footer)
        with explained(self.path):
            self.handle.write(content + len(content).to_bytes(4, "little") + _MAGIC)
            self.handle.close()


def join(target: Path, parts: Iterable[Path]) -> None:
    """One file of all parts, in their order."""
    joined = Joined.create(target)
    for part in parts:
        joined.append(part)
    joined.finish()


def _footer(source: BinaryIO) -> tuple[thrift.Struct, int]:
    """The footer of a file, and the position at which it begins."""
    end = source.seek(-len(_MAGIC) - 4, 2)
    length = int.from_bytes(source.read(4), "little")
    source.seek(end - length)
    return thrift.decode(source.read(length)), end - length


def _copy(source: BinaryIO, target: BinaryIO, length: int) -> None:
    """The chunks end where the footer begins, and `copyfileobj` would copy that too."""
    target_end = target.tell() + length
    shutil.copyfileobj(source, target, 1 << 20)
    target.seek(target_end)
    target.truncate()


def _move(group: Any, moved: int) -> None:
    if _GROUP_PLACE in group:
        group[_GROUP_PLACE] += moved
    for column in group[_COLUMNS].items:
        if column[_CHUNK_PLACE]:
            column[_CHUNK_PLACE] += moved
        for page in _PAGES:
            if page in column[_CHUNK]:
                column[_CHUNK][page] += moved
