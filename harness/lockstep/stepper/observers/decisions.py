"""What the controller of a live cluster decided about one partition, however the cluster keeps its metadata."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from lockstep.closeable import Closeable
from lockstep_model.controller import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the controller knew after one change; brokers have their real ids."""

    position: int
    """Where in the order of all changes: the offset of its last record; in ZooKeeper mode a transaction id (zxid)."""
    controller: Controller
    """After it."""
    causes: tuple[str, ...]
    """The records or znodes that brought it, in words."""
    through: tuple[Controller, ...] = ()
    """After each of the causes but the last.

    One event's records are in one batch, and brokers see all of a batch or nothing. But KRaft's controller may put the
    records of several events that come close together into one batch, and then these tell them apart.
    """
    after_ns: int
    """It was not yet made then (monotonic clock)."""
    before_ns: int
    """It was made before this."""


class ControllerObserver(Closeable):
    """Follows what the controller decides about one partition."""

    @property
    @abstractmethod
    def current(self) -> Controller:
        """What the controller knew at the last poll."""

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether any poll was answered yet."""

    @abstractmethod
    def poll(self) -> list[Decision]:
        """What was decided since the last poll, oldest first; nothing while nobody can be asked."""

    @property
    def broker(self) -> int | None:
        """Which broker was the controller at the last poll, where brokers are: it tells itself what it decides."""
        return None
