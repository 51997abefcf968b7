"""What may have happened by now, by the clock: only lower bounds, for a slow machine may take any time longer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import permutations

from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId

MS = 1_000_000


@dataclass(kw_only=True)
class Timing:
    """Since when each timer has run, at the earliest (monotonic nanoseconds)."""

    brokers: range
    session_ms: int
    lag_ms: int
    write_ms: int
    heard: dict[BrokerId, int] = field(default_factory=dict)
    """The controller has heard of the broker after this."""
    caught_up: dict[tuple[BrokerId, BrokerId], int] = field(default_factory=dict)
    """The leader has seen the follower at its end after this."""
    opened: dict[int, int] = field(default_factory=dict)
    """When the writes that are open were sent."""

    def decided(self, before: Controller, after: Controller, not_before: int) -> None:
        """A broker that is heard again begins a session, a new leader gives all that are in sync the lag time."""
        for broker, registration in after.brokers:
            known = before.broker(broker)
            if known is None or known.epoch != registration.epoch or (known.fenced and not registration.fenced):
                self.heard[broker] = not_before
        if _term(after) != _term(before):
            for follower in after.partition.isr:
                self.caught_up[after.partition.leader, follower] = not_before

    def committed(self, partition_isr: frozenset[BrokerId], leader: BrokerId, sent: int) -> None:
        """All that are in sync had a write that was the only one, after it was sent."""
        for follower in partition_isr:
            self.caught_up[leader, follower] = max(sent, self.caught_up.get((leader, follower), 0))

    def silent(self) -> frozenset[BrokerId]:
        """Whose session may be over."""
        now = time.monotonic_ns()
        return frozenset(b for b in self.brokers if now - self.heard.get(b, 0) >= self.session_ms * MS)

    def late(self) -> frozenset[tuple[BrokerId, BrokerId]]:
        """For which leader and follower the lag time may have passed."""
        now = time.monotonic_ns()
        pairs = permutations(self.brokers, 2)
        return frozenset(pair for pair in pairs if now - self.caught_up.get(pair, 0) >= self.lag_ms * MS)

    def expired(self) -> frozenset[int]:
        """Which writes may have waited for as long as they said."""
        now = time.monotonic_ns()
        return frozenset(slot for slot, sent in self.opened.items() if now - sent >= self.write_ms * MS)


def _term(controller: Controller) -> tuple[BrokerId, int]:
    return controller.partition.leader, controller.partition.leader_epoch
