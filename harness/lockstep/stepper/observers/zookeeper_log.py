"""Every change of the ZooKeeper tree, in zxid order, from a server's transaction log on disk.

A server logs each transaction before it responds to the client (FileTxnLog.commit). So no broker can act on a
transaction that cannot be read here, and none is missed, as intermediate versions would be by polling znodes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple

HEADER = struct.Struct(">4siq")
"""File header: magic word, version, database id."""
FRAME = struct.Struct(">qi")
"""Before each transaction: checksum and length."""
TRANSACTION = struct.Struct(">qiqqi")
"""Transaction header: session id, client xid, zxid, time, type."""
END = b"B"
"""End-of-record byte of a complete transaction. Files are preallocated with zeros."""


class Kind(IntEnum):
    """Transaction types that change the tree (ZooDefs.OpCode)."""

    CLOSE_SESSION = -11
    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    MULTI = 14
    CREATE_2 = 15


class Written(NamedTuple):
    """A znode was created, or its data was set."""

    path: str
    data: bytes
    version: int
    """The znode's data version: number of writes since its creation."""
    session: int = 0
    """Owner session of an ephemeral znode, which is deleted when that session closes; otherwise 0."""


class Removed(NamedTuple):
    """A znode was deleted."""

    path: str


class Closed(NamedTuple):
    """A session was closed or expired: its ephemeral znodes are deleted."""

    session: int


Change = Written | Removed | Closed


class Transaction(NamedTuple):
    """One transaction, with all changes that it makes atomically."""

    zxid: int
    changes: tuple[Change, ...]


class TransactionLog:
    """One server's transaction log, tailed. A server rolls to a new file from time to time, and after a restart."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "version-2"
        self._file: Path | None = None
        self._offset = 0

    def read(self) -> Iterator[Transaction]:
        """The transactions since the last read."""
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
    """The complete transactions, each with its size in bytes, up to the first that is not written completely."""
    while len(frame := log.read(FRAME.size)) == FRAME.size:
        checksum, length = FRAME.unpack(frame)
        written = log.read(length + len(END)) if length > 0 else b""
        if not written.endswith(END) or len(written) != length + len(END) or zlib.adler32(written[:-1]) != checksum:
            return
        session, _, zxid, _, kind = TRANSACTION.unpack_from(written)
        changes = _changes(kind, session, _Fields(written, TRANSACTION.size))
        yield FRAME.size + len(written), Transaction(zxid, tuple(changes))


def _changes(kind: int, session: int, fields: _Fields) -> Iterator[Change]:
    """The changes that a transaction makes to the tree; none if it failed."""
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
    """Reads the fields of a serialized record in order (Jute, ZooKeeper's serialization)."""

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
        """A byte array; empty if its length is -1 (null)."""
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
