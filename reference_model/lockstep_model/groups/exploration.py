"""Assignments and the commit invariant, shared by the state machines of both group protocols."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import TypeAlias

from lockstep_model.groups.generations import MemberId, Partitions
from lockstep_model.groups.offsets import Offsets

Assignment: TypeAlias = tuple[tuple[MemberId, Partitions], ...]


@cache
def balanced(members: tuple[MemberId, ...], partitions: int) -> tuple[Assignment, ...]:
    """All assignments in which the members' partition counts differ by one at most."""
    assignments = {
        tuple(sorted((member, frozenset(dealt[at :: len(order)])) for at, member in enumerate(order)))
        for order in permutations(members)
        for dealt in permutations(range(partitions))
    }
    return tuple(sorted(assignments, key=lambda assignment: [sorted(hand) for _, hand in assignment]))


def commits_rise(before: Offsets, after: Offsets) -> bool:
    """Whether no committed offset of the group fell."""
    return all(after.of(partition) >= offset for partition, offset in before.committed)
