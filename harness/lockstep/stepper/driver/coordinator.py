"""Who coordinates the transactions of the client that takes part in a walk."""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.clients.wire.coordinators import KeyType, ask_coordinator
from lockstep.clients.wire.refusals import Refused
from lockstep.cluster.cluster import Cluster


class Coordinators:
    """The brokers that may be it, or may think so."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._everyone = frozenset(cluster.broker_ids)
        self._may_be: frozenset[int] = frozenset()

    def look_for(self, transactional_id: str, running: frozenset[int], paused: frozenset[int]) -> int | None:
        """Ask once. Who is paused may take itself for the coordinator, too."""
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
        """Whether it may be anybody."""
        return self._may_be == self._everyone

    def among(self, brokers: Iterable[int]) -> bool:
        """Whether one of these may be it."""
        return not self._may_be.isdisjoint(brokers)

    def come_or_gone(self, brokers: Iterable[int]) -> None:
        """These are there again, or no longer: if it may have been one of them, it may be anybody from now on."""
        if self.among(brokers):
            self._may_be = self._everyone
