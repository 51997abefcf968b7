"""What a controller knows: one partition, the brokers, and how often the controller has moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Brokers, Registration


def first(order: Iterable[BrokerId], candidates: Brokers) -> BrokerId:
    """The first in this order that is a candidate."""
    return next((replica for replica in order if replica in candidates), NO_LEADER)


class Written(NamedTuple):
    """What one write of ZooKeeper's controller leaves."""

    partition: Registration
    """As brokers are told of it."""
    shown: Registration | None = None
    """As the znodes show it, if otherwise."""


class Controller(NamedTuple):
    """The active controller's knowledge, which is all that its decisions depend on."""

    partition: Registration = Registration(replicas=(), isr=frozenset())
    """Without replicas while there is no such partition."""
    brokers: tuple[tuple[BrokerId, BrokerRegistration], ...] = ()
    """Every broker that ever registered, in the order of their ids."""
    epoch: int = 0
    """Which controller: the epoch of the metadata quorum, or of ZooKeeper's /controller_epoch."""
    shown: Registration | None = None
    """ZooKeeper: what the znodes show of the partition, where that is not what brokers are told."""
    writing: tuple[Written, ...] = ()
    """ZooKeeper: what the controller has yet to write of what it is doing, and before which it does nothing else."""

    def broker(self, broker: BrokerId) -> BrokerRegistration | None:
        """What is on record of this broker."""
        return next((registration for number, registration in self.brokers if number == broker), None)

    def active(self, broker: BrokerId) -> bool:
        """Whether it may lead and join an ISR: neither fenced nor shutting down (ClusterControlManager.isActive)."""
        return broker in self.active_brokers()

    def active_brokers(self) -> Brokers:
        """All that may lead and join an ISR."""
        return frozenset(number for number, broker in self.brokers if not broker.fenced and not broker.shutting_down)

    def with_broker(self, broker: BrokerId, registration: BrokerRegistration) -> Controller:
        """The same with this broker's registration."""
        others = [(number, other) for number, other in self.brokers if number != broker]
        return self._replace(brokers=tuple(sorted([*others, (broker, registration)])))

    def marked(self, broker: BrokerId, **marks: Any) -> Controller:
        """The same with some fields of this broker's registration changed, if it has one."""
        registration = self.broker(broker)
        return self if registration is None else self.with_broker(broker, registration._replace(**marks))

    def with_partition(self, partition: Registration) -> Controller:
        """The same with this partition."""
        return self._replace(partition=partition)

    def will_write(self, *writes: Written) -> Controller:
        """The same, with this to be written."""
        return self._replace(writing=writes)

    def written(self) -> Controller:
        """After the next write."""
        (partition, shown), *left = self.writing
        return self._replace(partition=partition, shown=shown, writing=tuple(left))

    def finished(self) -> Controller:
        """After all that it has yet to write."""
        return self.will_write(*self.writing[-1:]).written() if self.writing else self
