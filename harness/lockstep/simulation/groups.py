"""A consumer group: joins, leaves and deaths of members are drawn; generations and assignments come from the model.

The group is one of the classic protocol with eager rebalances: all give up what they have, then the next generation
begins.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from lockstep.history.schema import Role
from lockstep.simulation.rows import Clients, OperationRow
from lockstep.simulation.timeline import KAFKA, MS, SECOND
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup, heartbeat, join, leave, sync
from lockstep_model.groups.generations import (
    UNKNOWN_MEMBER,
    ClassicGroup,
    GroupState,
    JoinAnswer,
    MemberId,
    join_time_passes,
    session_expires,
)
from lockstep_model.groups.offsets import OffsetCommit, Offsets, commit
from lockstep_model.groups.parameters import group_parameters_for

GROUP = "billing"
PARAMETERS = group_parameters_for(KAFKA)

_SESSION_NS = 400 * MS
_CHANGES = (4, 40)
_CHANGE_NS = 12 * SECOND


class LateCommit(NamedTuple):
    """An offset commit of a member that the coordinator has removed from the group, and its error."""

    time_ns: int
    error: str


class Tenure(NamedTuple):
    """One member owns a partition in one generation."""

    partition: int
    process: int
    generation: int
    start_ns: int
    end_ns: int
    commits_at_end: bool
    """Whether the member commits once more before the partition is revoked."""
    late: LateCommit | None = None


@dataclass(slots=True, kw_only=True)
class Membership:
    """The group while its history is drawn."""

    chance: random.Random
    clients: Clients
    partitions: int
    group: ClassicGroup = field(default_factory=ClassicGroup)
    processes: dict[MemberId, int] = field(default_factory=dict)
    operations: list[OperationRow] = field(default_factory=list)
    tenures: list[Tenure] = field(default_factory=list)
    since_ns: int = 0

    def begin(self, members: int, time_ns: int) -> None:
        for _ in range(members):
            self._joins(time_ns)
        step = join_time_passes(self.group)
        assert step is not None
        self.group = step.group
        self._generation_begins(time_ns)

    def change(self, time_ns: int, kind: str) -> None:
        """A member joins, leaves or dies; the next generation begins a moment later."""
        gone = self.chance.choice(sorted(self.processes))
        generation = self.group.generation
        if kind == "join":
            self._joins(time_ns)
        elif kind == "leave":
            self.group, errors, _ = leave(self.group, LeaveGroup(((gone, None),)), parameters=PARAMETERS)
            assert errors == (Error.NONE,)
        else:
            step = session_expires(self.group, gone, parameters=PARAMETERS)
            assert step is not None
            self.group = step.group
        begins_ns = time_ns + self.chance.randrange(20 * MS, 200 * MS)
        died = gone if kind == "crash" else None
        self._end_generation(time_ns, generation, died, begins_ns)
        if kind != "join":
            del self.processes[gone]
        self._generation_begins(begins_ns)

    def finish(self, time_ns: int) -> None:
        self._end_generation(time_ns, self.group.generation, None, time_ns)

    def _joins(self, time_ns: int) -> None:
        process = self.clients.add(
            Role.READER, isolation="read_committed", group_protocol="classic", commit_mode="manual"
        )
        member = f"member-{process}"
        outcome = join(self.group, JoinGroup(UNKNOWN_MEMBER), new_id=member, parameters=PARAMETERS)
        assert isinstance(outcome.answer, JoinAnswer)
        assert outcome.answer.error is Error.MEMBER_ID_REQUIRED
        self.group = join(outcome.group, JoinGroup(member), new_id=member, parameters=PARAMETERS).group
        self.processes[member] = process
        self.operations.append(
            OperationRow(process, "subscribe", time_ns, time_ns + self.chance.randrange(20_000, 90_000), group=GROUP)
        )

    def _generation_begins(self, time_ns: int) -> None:
        """All join again, and the leader's assignment makes it stable: ranges, as RangeAssignor deals them out."""
        for member in sorted(self.processes):
            mine = self.group.member(member)
            if self.group.state is GroupState.PREPARING_REBALANCE and mine is not None and not mine.joining:
                self.group = join(self.group, JoinGroup(member), new_id=member, parameters=PARAMETERS).group
        assert self.group.state is GroupState.COMPLETING_REBALANCE, self.group
        shares = _ranges(self.partitions, self.group.ids())
        generation = self.group.generation
        for member in sorted(self.group.ids(), key=lambda one: one == self.group.leader):
            given = tuple(shares.items()) if member == self.group.leader else ()
            self.group = sync(self.group, SyncGroup(member, generation, given)).group
        assert self.group.state is GroupState.STABLE
        for known in self.group.members:
            share = tuple(sorted(known.assignment))
            self._did(self.processes[known.id], "assign", time_ns, generation, share)
        self.since_ns = time_ns + MS

    def _end_generation(self, time_ns: int, generation: int, died: MemberId | None, next_ns: int) -> None:
        """Record which member owned which partitions in the generation that ends.

        A member that died has been silent since its last heartbeat, and wakes up too late to commit.
        """
        for member, share in _owned(self.processes, self.operations, generation).items():
            dead = member == died
            until_ns = max(self.since_ns, time_ns - _SESSION_NS) if dead else time_ns
            late = self._late(member, generation, next_ns) if dead else None
            for partition in share:
                self.tenures.append(
                    Tenure(
                        partition, self.processes[member], generation, self.since_ns, until_ns, not dead,
                        late if partition == share[0] else None,
                    )
                )  # fmt: skip
            if not dead:
                self._did(self.processes[member], "revoke", time_ns, generation, share)

    def _late(self, member: MemberId, generation: int, next_ns: int) -> LateCommit:
        refused = commit(
            self.group, Offsets(), OffsetCommit(((0, 0),), member, generation), parameters=PARAMETERS
        ).error
        assert refused is not Error.NONE
        assert heartbeat(self.group, Heartbeat(member, generation), parameters=PARAMETERS) is not Error.NONE
        return LateCommit(next_ns + self.chance.randrange(5 * MS, 50 * MS), refused.name)

    def _did(self, process: int, kind: str, time_ns: int, generation: int, partitions: tuple[int, ...]) -> None:
        self.operations.append(
            OperationRow(
                process,
                kind,
                time_ns,
                time_ns + self.chance.randrange(50_000, 900_000),
                group=GROUP,
                generation=generation,
                partitions=partitions,
            )
        )


def _owned(
    processes: dict[MemberId, int], operations: list[OperationRow], generation: int
) -> dict[MemberId, tuple[int, ...]]:
    """The partitions that each member was assigned in this generation."""
    names = {process: member for member, process in processes.items()}
    return {
        names[row.process]: row.partitions
        for row in operations
        if row.kind == "assign" and row.generation == generation and row.process in names
    }


def _ranges(partitions: int, members: tuple[MemberId, ...]) -> dict[MemberId, frozenset[int]]:
    each, more = divmod(partitions, len(members))
    shares: dict[MemberId, frozenset[int]] = {}
    first = 0
    for index, member in enumerate(sorted(members)):
        size = each + (index < more)
        shares[member] = frozenset(range(first, first + size))
        first += size
    return shares


def draw_group(
    chance: random.Random, clients: Clients, partitions: int, start_ns: int, end_ns: int
) -> tuple[list[Tenure], list[OperationRow]]:
    """Which member owned which partition when, in order, and the members' operations other than polls and commits."""
    membership = Membership(chance=chance, clients=clients, partitions=partitions)
    membership.begin(3, start_ns)
    fewest, most = _CHANGES
    number = min(max((end_ns - start_ns) // _CHANGE_NS, fewest), most)
    length_ns = (end_ns - start_ns) // (number + 1)
    for index in range(number):
        time_ns = start_ns + (index + 1) * length_ns + int(chance.uniform(-0.2, 0.2) * length_ns)
        few, many = len(membership.processes) < 3, len(membership.processes) > 4
        kind = (
            "crash" if index == 0 else "join" if few else chance.choice(("leave", "crash", *([] if many else ["join"])))
        )
        membership.change(time_ns, kind)
    membership.finish(end_ns)
    return membership.tenures, membership.operations
