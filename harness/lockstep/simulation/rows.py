"""Operations that belong to no partition, a handful each: what the skeleton says of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from lockstep.history.schema import Outcome


class OperationRow(NamedTuple):
    """One row of the operations, before it has a number; `partitions` are those assigned or revoked by it."""

    process: int
    kind: str
    invoke_ns: int
    return_ns: int
    outcome: Outcome = Outcome.OK
    error: str | None = None
    transactional_id: str | None = None
    group: str | None = None
    generation: int | None = None
    partitions: tuple[int, ...] = ()


class ProcessRow(NamedTuple):
    """One client."""

    process: int
    role: str
    acks: int | None = None
    idempotent: bool | None = None
    retries: int | None = None
    in_flight: int | None = None
    isolation: str | None = None
    group_protocol: str | None = None
    commit_mode: str | None = None


class Clients:
    """Gives every client its number."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = count(1)
        self.rows: list[ProcessRow] = []

    def add(self, role: str, **settings: object) -> int:
        number = next(self._numbers)
        self.rows.append(ProcessRow(number, role, **settings))  # type: ignore[arg-type]
        return number
