"""Every change of a ZooKeeper server's tree, in its order, from the transaction log on its disk.

A server writes each transaction to its log before it answers whoever asked for it (FileTxnLog.commit). So nobody can
act by one that cannot be read here, and none is missed, as it would be by looking at the tree now and then.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEADER = struct.Struct(">4siq")
"""Of a file: its magic word, the version, the database."""
FRAME = struct.Struct(">qi")
"""Before each transaction: its checksum and its length."""
TRANSACTION = struct.Struct(">qiqqi")
"""The session and its count of requests, the zxid, the time, the kind."""
END = b"B"
"""After each transaction; files are made longer with zeros before they are written."""


class Kind(IntEnum):
    """Of a transaction (ZooDefs.OpCode); others leave the tree as it is."""

    CLOSE_SESSION = -11
    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    MULTI = 14
    CREATE_2 = 15


class Written(NamedTuple):
    """A znode was made or written."""

    path: str
    data: bytes
    version: int
    """How often it was written since it was made."""
    session: int = 0
    """With whose end it goes, if it is ephemeral."""


class Removed(NamedTuple):
    """A znode is gone."""

    path: str


class Closed(NamedTuple):
    """A session is over, and what was made in it for as long as it lasts is gone."""

    session: int


Change = Written | Removed | Closed


class Transaction(NamedTuple):
    """What changed at once."""

    zxid: int
    changes: tuple[Change, ...]


class TransactionLog:
    """One server's log, read as it grows; a server begins another file now and then, and when it starts."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "version-2"
        self._file: Path | None = None
        self._offset = 0

    def read(self) -> Iterator[Transaction]:
        """What was written since it was last read."""
        for file in sorted(self._directory.glob("log.*"), key=_first_zxid):
            if self._file is not None and _first_zxid(file) < _first_zxid(self._file):
                continue
            if file != self._file:
                self._file, self._offset = file, HEADER.size
            with file.open("rb") as log:
                log.seek(self._offset)
                for length, transaction in _transactions(log):
                    self._offset += length
                    yield transaction


def _first_zxid(file: Path) -> int:
    return int(file.suffix[1:], 16)


def _transactions(log: BinaryIO) -> Iterator[tuple[int, Transaction]]:
    """Each with the bytes that it takes, up to the first that is not whole yet."""
    while len(frame := log.read(FRAME.size)) == FRAME.size:
        checksum, length = FRAME.unpack(frame)
        written = log.read(length + len(END)) if length > 0 else b""
        if not written.endswith(END) or len(written) != length + len(END) or zlib.adler32(written[:-1]) != checksum:
            return
        session, _, zxid, _, kind = TRANSACTION.unpack_from(written)
        changes = _changes(kind, session, _Fields(written, TRANSACTION.size))
        yield FRAME.size + len(written), Transaction(zxid, tuple(changes))


def _changes(kind: int, session: int, fields: _Fields) -> Iterator[Change]:
    """What a transaction does to the tree; one that failed does nothing."""
    match kind:
        case Kind.CREATE | Kind.CREATE_2:
            path, data = fields.text(), fields.buffer()
            fields.skip_acl()
            yield Written(path, data, 0, session if fields.flag() else 0)
        case Kind.SET_DATA:
            yield Written(fields.text(), fields.buffer(), fields.integer())
        case Kind.DELETE:
            yield Removed(fields.text())
        case Kind.CLOSE_SESSION:
            yield Closed(session)
        case Kind.MULTI:
            for _ in range(fields.integer()):
                part = fields.integer()
                yield from _changes(part, session, _Fields(fields.buffer()))


class _Fields:
    """The fields of a record, one after the other (Jute)."""

    def __init__(self, record: bytes, offset: int = 0) -> None:
        self._record = record
        self._offset = offset

    def integer(self) -> int:
        value: int
        (value,) = struct.unpack_from(">i", self._record, self._offset)
        self._offset += 4
        return value

    def flag(self) -> bool:
        self._offset += 1
        return self._record[self._offset - 1] != 0

    def buffer(self) -> bytes:
        """Without any, its length is -1."""
        length = max(self.integer(), 0)
        self._offset += length
        return self._record[self._offset - length : self._offset]

    def text(self) -> str:
        return self.buffer().decode()

    def skip_acl(self) -> None:
        for _ in range(self.integer()):
            self.integer()  # permissions
            self.buffer()  # scheme
            self.buffer()  # id
