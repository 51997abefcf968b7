"""Situation: the condition of brokers, partition and open requests from which the next action follows."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.stepper.driver.groups.situation import GroupSituation


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The situation from which a walk draws its next action. Brokers have their real ids."""

    brokers: tuple[int, ...]
    running: frozenset[int]
    """Brokers that run and are not paused."""
    paused: frozenset[int]
    ended: frozenset[int]
    """Brokers whose process has ended."""
    replicas: tuple[int, ...]
    """In assignment order."""
    leader: int
    """-1 if the partition has no leader."""
    leader_epoch: int
    isr: frozenset[int]
    elr: frozenset[int]
    cut: frozenset[tuple[int, int]]
    """Pairs of a follower and a leader from which it cannot fetch."""
    written: int
    open_writes: int
    may_leave_open: bool
    """Whether another request may be left outstanding."""
    belief: int
    """Belief size."""
    min_isr: int = 2
    coordinating: bool = False
    """Whether a request to the transaction coordinator is outstanding."""
    identified: bool = False
    """Whether the transactional producer has its producer id and epoch."""
    adds_partitions: bool = True
    """Whether the producer must send AddPartitionsToTxn. With transaction version 2 (4.0) Produce adds partitions."""
    groups: GroupSituation | None = None

    @property
    def led(self) -> bool:
        return self.leader in self.running

    @property
    def will_be_led(self) -> bool:
        """Whether a broker runs that may be elected: a member of ISR or ELR, or if both are empty any broker."""
        return bool((self.isr | self.elr or frozenset(self.brokers)) - self.paused - self.ended)
