"""Timers of Kafka that may have expired by the harness's clock.

They are lower bounds: a timer that may have expired need not have, for a slow machine may take any time longer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import permutations

from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId

MS = 1_000_000


@dataclass(kw_only=True)
class Timing:
    """The earliest start of each timer, in monotonic nanoseconds, and the timeouts of brokers and requests."""

    brokers: range
    session_ms: int
    lag_ms: int
    write_ms: int
    heard: dict[BrokerId, int] = field(default_factory=dict)
    """The last heartbeat that the controller is known to have got from a broker came after this time."""
    caught_up: dict[tuple[BrokerId, BrokerId], int] = field(default_factory=dict)
    """By (leader, follower): the follower was last known to be caught up with the leader's LEO after this time."""
    opened: dict[int, int] = field(default_factory=dict)
    """By slot: the time at which an open request was sent."""

    def decided(self, before: Controller, after: Controller, not_before: int) -> None:
        """A controller decision restarts timers.

        A broker that registered or was unfenced has a new session. A new leader, or a new leader epoch, counts every
        member of the ISR as caught up (Partition.makeLeader).
        """
        for broker, registration in after.brokers:
            known = before.broker(broker)
            if known is None or known.epoch != registration.epoch or (known.fenced and not registration.fenced):
                self.heard[broker] = not_before
        if _term(after) != _term(before):
            for follower in after.partition.isr:
                self.caught_up[after.partition.leader, follower] = not_before

    def committed(self, partition_isr: frozenset[BrokerId], leader: BrokerId, sent: int) -> None:
        """A write with acks=all was committed while it was the only one: the ISR reached the LEO after it was sent."""
        for follower in partition_isr:
            self.caught_up[leader, follower] = max(sent, self.caught_up.get((leader, follower), 0))

    def silent(self) -> frozenset[BrokerId]:
        """Brokers whose session may have timed out."""
        now = time.monotonic_ns()
        return frozenset(b for b in self.brokers if now - self.heard.get(b, 0) >= self.session_ms * MS)

    def late(self) -> frozenset[tuple[BrokerId, BrokerId]]:
        """Pairs (leader, follower) for which replica.lag.time.max.ms may have passed."""
        now = time.monotonic_ns()
        pairs = permutations(self.brokers, 2)
        return frozenset(pair for pair in pairs if now - self.caught_up.get(pair, 0) >= self.lag_ms * MS)

    def expired(self) -> frozenset[int]:
        """Slots of open requests whose timeout may have passed."""
        now = time.monotonic_ns()
        return frozenset(slot for slot, sent in self.opened.items() if now - sent >= self.write_ms * MS)


def _term(controller: Controller) -> tuple[BrokerId, int]:
    return controller.partition.leader, controller.partition.leader_epoch
