"""ZooKeeper's transaction log: all that is whole is read, once and in order, and nothing else."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from lockstep.stepper.observers.znodes import Tree
from lockstep.stepper.observers.zookeeper_log import (
    END,
    FRAME,
    HEADER,
    TRANSACTION,
    Closed,
    Kind,
    Removed,
    Transaction,
    TransactionLog,
    Written,
)

SESSION = 77
ACL = struct.pack(">ii", 1, 31) + struct.pack(">i", 5) + b"world" + struct.pack(">i", 6) + b"anyone"


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def create(path: str, data: str, *, ephemeral: bool = False) -> bytes:
    return text(path) + text(data) + ACL + bytes([ephemeral]) + struct.pack(">i", 1)


def set_data(path: str, data: str, version: int) -> bytes:
    return text(path) + text(data) + struct.pack(">i", version)


def multi(*parts: tuple[int, bytes]) -> bytes:
    records = (struct.pack(">ii", kind, len(record)) + record for kind, record in parts)
    return struct.pack(">i", len(parts)) + b"".join(records)


def framed(zxid: int, kind: int, record: bytes = b"") -> bytes:
    written = TRANSACTION.pack(SESSION, 1, zxid, 0, kind) + record
    return FRAME.pack(zlib.adler32(written), len(written)) + written + END


def file(data: Path, first: int, *transactions: bytes) -> Path:
    (data / "version-2").mkdir(exist_ok=True)
    log = data / "version-2" / f"log.{first:x}"
    log.write_bytes(HEADER.pack(b"ZKLG", 2, 0) + b"".join(transactions) + bytes(64))
    return log


def test_transactions_are_read_once_and_in_their_order(tmp_path: Path) -> None:
    begun = framed(14, Kind.CREATE, create("/a", "1"))
    file(tmp_path, 14, begun)
    log = TransactionLog(tmp_path)
    assert list(log.read()) == [Transaction(14, (Written("/a", b"1", 0),))]
    assert list(log.read()) == []
    file(tmp_path, 14, begun, framed(15, Kind.SET_DATA, set_data("/a", "2", 1)))
    file(tmp_path, 16, framed(16, Kind.DELETE, text("/a")))
    assert list(log.read()) == [Transaction(15, (Written("/a", b"2", 1),)), Transaction(16, (Removed("/a"),))]
    assert list(log.read()) == []


def test_what_is_not_whole_yet_is_read_when_it_is(tmp_path: Path) -> None:
    first, second = framed(1, Kind.DELETE, text("/a")), framed(2, Kind.DELETE, text("/b"))
    damaged = second[:-3] + b"?" + second[-2:]
    log = TransactionLog(tmp_path)
    for partly in (second[:-1], second[:20], second[:5], damaged):
        file(tmp_path, 1, first, partly)
        assert [transaction.zxid for transaction in log.read()] in ([1], [])
    file(tmp_path, 1, first, second)
    assert list(log.read()) == [Transaction(2, (Removed("/b"),))]


def test_of_a_multi_what_failed_changes_nothing(tmp_path: Path) -> None:
    check, error = (13, text("/epoch") + struct.pack(">i", 3)), (-1, struct.pack(">i", -103))
    done = multi(check, (Kind.SET_DATA, set_data("/a", "2", 4)))
    file(tmp_path, 1, framed(1, Kind.MULTI, done), framed(2, Kind.MULTI, multi(error, error)))
    assert [transaction.changes for transaction in TransactionLog(tmp_path).read()] == [(Written("/a", b"2", 4),), ()]


def test_what_is_ephemeral_goes_with_its_session(tmp_path: Path) -> None:
    file(
        tmp_path,
        1,
        framed(1, Kind.CREATE, create("/kept", "")),
        framed(2, Kind.CREATE_2, create("/mine", "1", ephemeral=True)),
        framed(3, Kind.SET_DATA, set_data("/mine", "2", 1)),
        framed(4, Kind.CLOSE_SESSION),
    )
    tree, seen = Tree(), []
    for transaction in TransactionLog(tmp_path).read():
        tree.follow(transaction)
        seen.append({path: (znode.data, znode.version, znode.czxid) for path, znode in tree.znodes.items()})
    kept = {"/kept": (b"", 0, 1)}
    assert seen == [kept, kept | {"/mine": (b"1", 0, 2)}, kept | {"/mine": (b"2", 1, 2)}, kept]
    assert Closed(SESSION) == transaction.changes[0]
