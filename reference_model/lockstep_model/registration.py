"""What the controller has on record of one partition and of its brokers, and what brokers ask it to change."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

BrokerId: TypeAlias = int
Brokers: TypeAlias = frozenset[BrokerId]

NO_LEADER: BrokerId = -1


class Registration(NamedTuple):
    """One partition, as the controller has it and as brokers learn of it (PartitionRegistration)."""

    replicas: tuple[BrokerId, ...]
    """In the order of the assignment; the first is the preferred leader."""
    isr: Brokers
    leader: BrokerId = NO_LEADER
    leader_epoch: int = 0
    partition_epoch: int = 0
    """The version of the znode in ZooKeeper mode."""
    elr: Brokers = frozenset()
    last_known_elr: tuple[BrokerId, ...] = ()
    recovering: bool = False
    """The leader was elected uncleanly, and has not yet changed the ISR (LeaderRecoveryState)."""
    adding: Brokers = frozenset()
    removing: Brokers = frozenset()


class BrokerRegistration(NamedTuple):
    """One broker, as the controller has it."""

    epoch: int
    """Which registration: the offset of its record, in ZooKeeper mode the czxid of the broker's znode."""
    fenced: bool = False
    """Its session is over, or it has not yet caught up; in ZooKeeper mode, that it has no znode."""
    shutting_down: bool = False
    """In controlled shutdown: ZooKeeper's controller only remembers it, KRaft's has it on record."""
    incarnation: int = 0
    """Which process (KRaft only): a new one has a new incarnation, and gets a new epoch."""


class AlterPartition(NamedTuple):
    """A leader asks for another ISR (KIP-497)."""

    broker: BrokerId
    broker_epoch: int
    leader_epoch: int
    partition_epoch: int
    isr: Brokers
    epochs: tuple[tuple[BrokerId, int], ...] = ()
    """The broker epochs of the members, as far as the leader knows them (KIP-903)."""
    recovering: bool = False


class Register(NamedTuple):
    """A broker comes to the cluster (BrokerRegistration, in ZooKeeper mode its znode)."""

    broker: BrokerId
    epoch: int
    """What its epoch will be: the offset of the record to write, the czxid of the znode."""
    incarnation: int = 0
    previous_epoch: int = -1
    """The epoch under which it last shut down cleanly, as its disk says (KIP-966); -1 after any other end."""
