"""The bytes of a record: which run, which topic, which value; so a foreign or misplaced record gives itself away."""

from __future__ import annotations

VALUE_DIGITS_MAX = 18  # of a 64-bit integer


def encode(run: str, topic: str, value: int) -> bytes:
    return f"{run}/{topic}/{value}".encode()


def decode(run: str, topic: str, payload: bytes | None) -> int | None:
    """The value id, or None when this run did not write these bytes to this topic."""
    digits = (payload or b"").rpartition(b"/")[2]
    if not digits.isdigit() or len(digits) > VALUE_DIGITS_MAX:
        return None
    value = int(digits)
    return value if encode(run, topic, value) == payload else None
