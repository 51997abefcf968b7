"""What the machines of both protocols share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from reference_model.groups.generations import MemberId, Partitions
from reference_model.groups.offsets import Offsets


def balanced(members: tuple[MemberId, ...], partitions: int) -> Iterator[tuple[tuple[MemberId, Partitions], ...]]:
    """All assignments in which nobody has more than one partition more than another."""
    seen = set()
    for order in permutations(members):
        for dealt in permutations(range(partitions)):
            hands = {member: frozenset(dealt[at :: len(order)]) for at, member in enumerate(order)}
            assignment = tuple(sorted(hands.items()))
            if assignment not in seen:
                seen.add(assignment)
                yield assignment


def commits_rise(before: Offsets, after: Offsets) -> bool:
    """Whether no committed offset went back."""
    return all(after.of(partition) >= offset for partition, offset in before.committed)
