"""The controller's registrations of one partition and of brokers, and the requests that change them."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

BrokerId: TypeAlias = int
Brokers: TypeAlias = frozenset[BrokerId]

NO_LEADER: BrokerId = -1


class Registration(NamedTuple):
    """A partition's state at the controller, as brokers get it by metadata or LeaderAndIsr (PartitionRegistration)."""

    replicas: tuple[BrokerId, ...]
    """In the order of the assignment; the first is the preferred leader."""
    isr: Brokers
    leader: BrokerId = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    """Rises with every change of the partition; in ZooKeeper mode the version of its state znode."""
    elr: Brokers = frozenset()
    last_known_elr: tuple[BrokerId, ...] = ()
    recovering: bool = False
    """LeaderRecoveryState.RECOVERING: the leader was elected uncleanly, and has not changed the ISR since (KIP-704)."""
    adding: Brokers = frozenset()
    removing: Brokers = frozenset()


class BrokerRegistration(NamedTuple):
    """A broker's registration at the controller (BrokerRegistration)."""

    epoch: int
    """The broker epoch: offset of its RegisterBrokerRecord, in ZooKeeper mode the czxid of the broker's znode."""
    fenced: bool = False
    """Its session expired, or it has not caught up with the metadata log; in ZooKeeper mode it has no znode."""
    shutting_down: bool = False
    """In controlled shutdown: a record in KRaft, only in the controller's memory in ZooKeeper mode."""
    incarnation: int = 0
    """incarnationId (KRaft only): each broker process has its own, and gets a new broker epoch."""


class AlterPartition(NamedTuple):
    """AlterPartition: the leader proposes a new ISR to the controller (KIP-497)."""

    broker: BrokerId
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    isr: Brokers
    epochs: tuple[tuple[BrokerId, int], ...] = ()
    """Broker epochs of the ISR members, as far as the leader knows them (KIP-903)."""
    recovering: bool = False


class Register(NamedTuple):
    """A broker registers with the controller (BrokerRegistrationRequest; in ZooKeeper mode it creates its znode)."""

    broker: BrokerId
    epoch: int
    """The new broker epoch: the offset of the record to write, or the czxid of the znode."""
    incarnation: int = 0
    previous_epoch: int = -1
    """previousBrokerEpoch: broker epoch of its last clean shutdown (KIP-966); -1 after an unclean shutdown."""
