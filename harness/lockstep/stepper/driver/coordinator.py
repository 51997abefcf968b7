"""Transaction coordinator: the brokers that may coordinate the transactional id of a walk."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.clients.wire.coordinators import KeyType, ask_coordinator
from lockstep.clients.wire.refusals import Refused
from lockstep.cluster.cluster import Cluster


class Coordinators:
    """Brokers that may be the coordinator, or may still take themselves for it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._everyone = frozenset(cluster.broker_ids)
        self._may_be: frozenset[int] = frozenset()

    def look_for(self, transactional_id: str, running: frozenset[int], paused: frozenset[int]) -> int | None:
        """Send FindCoordinator to the running brokers, and return the first coordinator found that is running.

        A paused broker may still take itself for the coordinator, so it stays a candidate.
        """
        for broker in sorted(running):
            address, access = self._cluster.direct(broker), self._cluster.access()
            try:
                found = ask_coordinator(address, KeyType.TRANSACTION, transactional_id, access=access)
            except (Refused, OSError):
                continue
            if found in running:
                self._may_be = paused | {found}
                return found
        return None

    @property
    def unknown(self) -> bool:
        """Whether any broker may be the coordinator."""
        return self._may_be == self._everyone

    def among(self, brokers: Iterable[int]) -> bool:
        """Whether one of these brokers may be the coordinator."""
        return not self._may_be.isdisjoint(brokers)

    def come_or_gone(self, brokers: Iterable[int]) -> None:
        """These brokers registered or were fenced: if one of them may be the coordinator, any broker may be it now."""
        if self.among(brokers):
            self._may_be = self._everyone
