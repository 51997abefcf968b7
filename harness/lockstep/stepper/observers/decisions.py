"""Decisions of a live cluster's controller about one partition, in the same form for KRaft and ZooKeeper mode."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from lockstep.closeable import Closeable
from lockstep_model.controller import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The controller's state after one metadata change. Brokers have their real ids."""

    position: int
    """Position in the total order of metadata changes: the offset of its last record, in ZooKeeper mode the zxid."""
    controller: Controller
    """The controller's state after the change."""
    causes: tuple[str, ...]
    """The metadata records or znode writes of the change, in words."""
    through: tuple[Controller, ...] = ()
    """The controller's state after each cause but the last.

    All records of one controller event are in one batch, and a broker applies a batch as a whole. But the KRaft
    controller may put the records of several events into one batch; these states tell the events apart.
    """
    after_ns: int
    """The decision was made later than this (monotonic clock)."""
    before_ns: int
    """The decision was made earlier than this."""


class ControllerObserver(Closeable):
    """Observes the controller's decisions about one partition."""

    @property
    @abstractmethod
    def current(self) -> Controller:
        """The controller's state as of the last poll."""

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether any poll has returned metadata so far."""

    @abstractmethod
    def poll(self) -> list[Decision]:
        """The decisions since the last poll, oldest first; empty while no controller responds."""

    @property
    def broker(self) -> int | None:
        """In ZooKeeper mode the broker that was controller at the last poll. No link carries its decisions to it."""
        return None
