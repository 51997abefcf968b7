"""Thrift's compact protocol, as far as the footer of a Parquet file uses it: any struct can be read, and written again.

Nothing is known here of what the fields mean: a struct is its fields by number, each with its type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
I16_MAX = (1 << 15) - 1

_STOP = 0
_VARINTS = (I16, I32, I64)
_LONG_LIST = 15


@dataclass(slots=True)
class Items:
    """The elements of a list, all of one type."""

    kind: int
    items: list[Any]


@dataclass(slots=True)
class Struct:
    """Fields by number."""

    kinds: dict[int, int] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)

    def __contains__(self, number: int) -> bool:
        return number in self.values

    def __getitem__(self, number: int) -> Any:
        return self.values[number]

    def __setitem__(self, number: int, value: Any) -> None:
        self.set(number, self.kinds[number], value)

    def set(self, number: int, kind: int, value: Any) -> None:
        self.kinds[number] = kind
        self.values[number] = value

    def pop(self, number: int, default: Any) -> Any:
        self.kinds.pop(number, None)
        return self.values.pop(number, default)


def decode(data: bytes) -> Struct:
    return _Reader(data).struct()


def encode(struct: Struct) -> bytes:
    out = bytearray()
    _write_struct(out, struct)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        struct = Struct()
        number = 0
        while (head := self._byte()) != _STOP:
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            is_bool = kind in (TRUE, FALSE)
            struct.set(number, TRUE if is_bool else kind, kind == TRUE if is_bool else self._value(kind))
        return struct

    def _value(self, kind: int) -> Any:
        if kind in _VARINTS:
            return self._signed()
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            head = self._byte()
            length = head >> 4 if head >> 4 != _LONG_LIST else self._unsigned()
            return Items(head & 15, [self._value(head & 15) for _ in range(length)])
        if kind in (TRUE, FALSE, BYTE):  # within a list a boolean is a byte
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        raise ValueError(f"a Parquet footer has no fields of Thrift's type {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)


def _write_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number in sorted(struct.values):
        kind, value = struct.kinds[number], struct.values[number]
        coded = (TRUE if value else FALSE) if kind == TRUE else kind
        if 0 < number - before <= 15:
            out.append((number - before) << 4 | coded)
        else:
            out.append(coded)
            _write_signed(out, number)
        if kind != TRUE:
            _write_value(out, kind, value)
        before = number
    out.append(_STOP)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _VARINTS:
        _write_signed(out, value)
    elif kind == BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        _write_list(out, value)
    elif kind == DOUBLE:
        out += value
    else:
        out.append(value)


def _write_list(out: bytearray, items: Items) -> None:
    length = len(items.items)
    if length < _LONG_LIST:
        out.append(length << 4 | items.kind)
    else:
        out.append(_LONG_LIST << 4 | items.kind)
        _write_unsigned(out, length)
    for item in items.items:
        _write_value(out, items.kind, item)


def _write_signed(out: bytearray, value: int) -> None:
    _write_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
