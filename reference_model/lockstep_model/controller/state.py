"""The controller's state: one partition, the broker registrations, and the controller epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Brokers, Registration


def first(order: Iterable[BrokerId], candidates: Brokers) -> BrokerId:
    """The first candidate in this order, or NO_LEADER."""
    return next((replica for replica in order if replica in candidates), NO_LEADER)


class ZnodeWrite(NamedTuple):
    """One znode write of the ZooKeeper controller."""

    partition: Registration
    """The partition as LeaderAndIsr and UpdateMetadata requests give it to brokers."""
    shown: Registration | None = None
    """The partition as the znodes show it, if different."""


class Controller(NamedTuple):
    """State of the active controller; its decisions depend on nothing else."""

    partition: Registration = Registration(replicas=(), isr=frozenset())
    """No replicas while the partition does not exist."""
    brokers: tuple[tuple[BrokerId, BrokerRegistration], ...] = ()
    """Registrations of all brokers that ever registered, ordered by id."""
    epoch: int = 0
    """Controller epoch: the metadata quorum's leader epoch, in ZooKeeper mode /controller_epoch."""
    shown: Registration | None = None
    """ZooKeeper: the partition as the znodes show it, if different from what brokers were sent."""
    writing: tuple[ZnodeWrite, ...] = ()
    """ZooKeeper: pending znode writes of the event in progress; the controller handles no other event before them."""

    def broker(self, broker: BrokerId) -> BrokerRegistration | None:
        """This broker's registration, if it ever registered."""
        return next((registration for number, registration in self.brokers if number == broker), None)

    def active(self, broker: BrokerId) -> bool:
        """Whether a broker may lead and join an ISR: not fenced, not in controlled shutdown.

        ClusterControlManager.isActive.
        """
        return broker in self.active_brokers()

    def active_brokers(self) -> Brokers:
        """Brokers that are neither fenced nor in controlled shutdown."""
        return frozenset(number for number, broker in self.brokers if not broker.fenced and not broker.shutting_down)

    def with_broker(self, broker: BrokerId, registration: BrokerRegistration) -> Controller:
        """The state with this broker registration."""
        others = [(number, other) for number, other in self.brokers if number != broker]
        return self._replace(brokers=tuple(sorted([*others, (broker, registration)])))

    def marked(self, broker: BrokerId, **marks: Any) -> Controller:
        """The state with some fields of a broker's registration changed, if it is registered."""
        registration = self.broker(broker)
        return self if registration is None else self.with_broker(broker, registration._replace(**marks))

    def with_partition(self, partition: Registration) -> Controller:
        """The state with this partition."""
        return self._replace(partition=partition)

    def will_write(self, *writes: ZnodeWrite) -> Controller:
        """The state with these znode writes pending."""
        return self._replace(writing=writes)

    def written(self) -> Controller:
        """The state after the next pending write."""
        (partition, shown), *left = self.writing
        return self._replace(partition=partition, shown=shown, writing=tuple(left))

    def finished(self) -> Controller:
        """The state after all pending writes."""
        return self.will_write(*self.writing[-1:]).written() if self.writing else self
