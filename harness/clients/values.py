"""The bytes of a record: which run, which topic, which value; so a foreign or misplaced record gives itself away."""

from __future__ import annotations


def encode(run: str, topic: str, value: int) -> bytes:
    return f"{run}/{topic}/{value}".encode()


def decode(run: str, topic: str, payload: bytes | None) -> int | None:
    """The value id, or None when this run did not write these bytes to this topic."""
    prefix = f"{run}/{topic}/".encode()
    if payload is None or not payload.startswith(prefix):
        return None
    digits = payload[len(prefix) :]
    return int(digits) if digits.isdigit() else None
