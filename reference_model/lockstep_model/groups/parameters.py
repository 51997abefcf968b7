"""Differences between Kafka versions in group coordination and committed offsets."""

from __future__ import annotations

from dataclasses import dataclass, field

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupParameters:
    """One group coordinator. Defaults are those of Kafka 4.3."""

    new_coordinator: bool = True
    """The group coordinator of KIP-848, which has groups of both protocols: the only one from 4.0 on, in 3.9 only with
    `consumer` in group.coordinator.rebalance.protocols."""
    assignment_epochs: bool = True
    """OffsetCommit is accepted with an older member epoch, down to the one in which the partition was assigned
    (KIP-1251, from 4.3); before, only with the current member epoch."""
    epoch_per_revocation: bool = False
    """The member epoch rises after a revocation, even if the member has to revoke more at once (measured in 3.9 to 4.1,
    and not in 4.3)."""
    initial_epoch: int = 0
    """Group epoch before the first member raises it: 0 in 3.9 to 4.1, 1 in 4.3, so that a member that awaits its first
    target has epoch 1 and not the one with which it joins (ModernGroup). Searches begin with 0: the same, with epochs
    one less."""
    takes_back: bool = True
    """A partition that a member has not revoked yet can be assigned to it again (from 4.0); before, it had to be
    released first."""
    anonymous_transactions: bool = True
    """TxnOffsetCommit without a member id is not validated in a group of the consumer protocol (from 4.0)."""
    max_size: int = UNLIMITED
    """group.max.size, group.consumer.max.size"""
    dropped: frozenset[str] = field(default=frozenset())
    """Guards that a mutant leaves out; see `mutants`."""

    def guards(self, guard: str) -> bool:
        """Whether this guard is in force, as in all but the mutant of its name."""
        return guard not in self.dropped


def group_parameters_for(
    version: str, *, consumer_protocol: bool = False, max_size: int = UNLIMITED
) -> GroupParameters:
    """Parameters of a Kafka version, read in the classes of 3.9.2, 4.0.2, 4.1.2 and 4.3.1; 4.2 is taken as 4.1.

    `consumer_protocol` enables the consumer protocol where it is off by default: before 4.0, and with KRaft only.
    """
    release = tuple(int(part) for part in version.partition("-")[0].split(".")[:2])
    return GroupParameters(
        new_coordinator=consumer_protocol or release >= (4, 0),
        assignment_epochs=release >= (4, 3),
        epoch_per_revocation=release < (4, 3),
        initial_epoch=int(release >= (4, 3)),
        takes_back=release >= (4, 0),
        anonymous_transactions=release >= (4, 0),
        max_size=max_size,
    )
