"""What differs between versions of Kafka in how a coordinator treats groups and their offsets."""

from __future__ import annotations

from dataclasses import dataclass, field

UNLIMITED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupParameters:
    """One coordinator. What is not said is what Kafka 4.3 does by default."""

    new_coordinator: bool = True
    """The coordinator of KIP-848, which knows groups of both protocols: the only one in 4.0, and in 3.9 only where
    group.coordinator.rebalance.protocols has `consumer`."""
    assignment_epochs: bool = True
    """A commit with an older member epoch is taken down to the epoch in which its partition was assigned (KIP-1251,
    from 4.3); before, only the member's own epoch was."""
    epoch_per_revocation: bool = False
    """A member that has revoked what it was told to gains an epoch even if it is at once told to revoke more (seen in
    3.9 to 4.1, and not any more in 4.3)."""
    initial_epoch: int = 0
    """Of a group that comes into being with its first member, which raises it by one: 0 in 3.9 to 4.1, and 1 in 4.3, so
    that a member that waits for its first target is in epoch 1, and not in the one with which it joins (ModernGroup).
    What is explored begins with 0: it is the same, with epochs that are one less."""
    takes_back: bool = True
    """A partition that a member has not yet revoked can be given back to it (from 4.0); before, it had to be released
    first like one of another member."""
    anonymous_transactions: bool = True
    """A transactional commit that names no member is not checked in a group of the consumer protocol (from 4.0)."""
    max_size: int = UNLIMITED
    """group.max.size, group.consumer.max.size"""
    dropped: frozenset[str] = field(default=frozenset())
    """Guards that a mutant does without; see `mutants`."""

    def guards(self, guard: str) -> bool:
        """Whether this guard is there, which it is in all but the mutant that is named after it."""
        return guard not in self.dropped


def group_parameters_for(
    version: str, *, consumer_protocol: bool = False, max_size: int = UNLIMITED
) -> GroupParameters:
    """What this version does, as read in the classes of 3.9.2, 4.0.2, 4.1.2 and 4.3.1; 4.2 is taken to be like 4.1.

    `consumer_protocol` says that it is enabled where it is not by default: before 4.0, and with KRaft only.
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
