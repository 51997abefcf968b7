"""A classic group with its consumers, which stall, crash, leave, return and commit late.

Consumers use an eager assignor: they revoke all partitions before they rejoin. Responses are delayed or lost. A request
whose consumer gave up may still wait at the coordinator, and is then sent again. An OffsetCommit may arrive after its
member left the group. ClassicBounds limit generations and the member ids of each consumer.

A consumer commits a higher offset in a later generation, or after it replaced another member in the same generation. So
a committed offset that falls was overwritten by a member of an older generation, or by a replaced one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.groups import classic, generations
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.exploration import balanced, commits_rise
from lockstep_model.groups.generations import (
    NO_GENERATION,
    NOTHING,
    UNKNOWN_MEMBER,
    Answer,
    ClassicGroup,
    GroupState,
    JoinAnswer,
    MemberId,
    Partitions,
    ReleasedResponses,
    Step,
    SyncAnswer,
)
from lockstep_model.groups.offsets import OffsetCommit, Offsets, commit
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule, Transition

TWO_OWNERS = "I14 two members of the current generation never own one partition"
ZOMBIES_WERE_PUT_OUT = "a partition has two owners only if one of them was put out in time or replaced"
ASSIGNED_ONCE = "I14 no partition is assigned twice in a generation"
GENERATION_RISES = "generations never go back"
LEADER_IS_MEMBER = "a group with members has one of them to lead it, when it is stable"
COMMITS_RISE = "a committed offset is never overwritten by a member of an older generation"


class Phase(StrEnum):
    """State of a consumer in the rebalance protocol."""

    OUT = "is not in a generation"
    JOINING = "waits for a generation"
    JOINED = "is in a generation, and has not asked for its partitions"
    SYNCING = "waits for its partitions"
    MEMBER = "has its partitions"
    FENCED = "has ended, because another has its instance id"


class ClassicConsumer(NamedTuple):
    """A consumer's own state (ConsumerCoordinator)."""

    phase: Phase = Phase.OUT
    member: MemberId = UNKNOWN_MEMBER
    generation: int = NO_GENERATION
    owned: Partitions = NOTHING
    assigns_to: tuple[MemberId, ...] = ()
    """Members to assign partitions to, if it is the group leader."""
    ids: int = 0
    """How many member ids it got."""
    turn: int = 0
    """Number of removed members when it replaced another member of its instance id."""
    commit: OffsetCommit | None = None
    """OffsetCommit in flight."""


Mail: TypeAlias = frozenset[tuple[MemberId, Answer]]
"""Responses in flight by member id of the request, or by the new member id; one per member id at most."""
RemovedMembers: TypeAlias = frozenset[MemberId]
"""Members that timed out or were replaced; for the invariants only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicBounds:
    """Limits of the search: consumers by name, with a group instance id if static."""

    consumers: tuple[tuple[str, str | None], ...] = (("a", None), ("b", None))
    partitions: int = 2
    generations: int = 2
    ids: int = 1
    commits: bool = False


GROUP, MAIL, OUT, OFFSETS, FIRST_CONSUMER = range(5)


def classic_machine(parameters: GroupParameters, bounds: ClassicBounds) -> Machine:
    """A classic group with these consumers, within these bounds."""
    consumers = [
        _Actions(name, instance, FIRST_CONSUMER + at, parameters, bounds)
        for at, (name, instance) in enumerate(bounds.consumers)
    ]
    return Machine(
        initial=(ClassicGroup(), frozenset(), frozenset(), Offsets(), *(ClassicConsumer() for _ in consumers)),
        rules=(
            *(rule for consumer in consumers for rule in consumer.rules()),
            *_coordinator_rules(parameters, bounds),
        ),
        invariants=(
            *(pair for one, other in combinations(consumers, 2) for pair in _pair_invariants(one, other, parameters)),
            Invariant(name=ASSIGNED_ONCE, reads=(GROUP,), holds=_assigned_once),
            Invariant(name=LEADER_IS_MEMBER, reads=(GROUP,), holds=_leader_is_member),
            Transition(
                name=GENERATION_RISES, place=GROUP, holds=lambda before, after: before.generation <= after.generation
            ),
            Transition(name=COMMITS_RISE, place=OFFSETS, holds=commits_rise),
        ),
    )


def settled(state: tuple[object, ...]) -> bool:
    """Whether no rebalance is in progress."""
    group = state[GROUP]
    return isinstance(group, ClassicGroup) and group.state in (GroupState.STABLE, GroupState.EMPTY)


@dataclass(frozen=True, slots=True)
class _Actions:
    """Actions and timeouts of one consumer."""

    name: str
    instance: str | None
    place: int
    parameters: GroupParameters
    bounds: ClassicBounds

    def rules(self) -> Iterator[Rule]:
        yield Rule(name=f"{self.name} joins", reads=(self.place, GROUP, MAIL, OUT), effect=self.joins, when=_is_out)
        yield Rule(name=f"{self.name} hears", reads=(self.place, MAIL), effect=self.hears, when=_waits)
        yield Rule(name=f"{self.name} gives up", reads=(self.place, MAIL), effect=self.gives_up, when=_waits)
        yield Rule(name=f"{self.name} syncs", reads=(self.place, GROUP, MAIL), effect=self.syncs, when=_has_joined)
        yield Rule(name=f"{self.name} heartbeats", reads=(self.place, GROUP), effect=self.heartbeats, when=_is_in)
        yield Rule(name=f"{self.name} crashes", reads=(self.place, MAIL), effect=self.crashes)
        if self.instance is None:  # static members do not leave, they are expected back (KIP-345)
            yield Rule(name=f"{self.name} leaves", reads=(self.place, GROUP, MAIL), effect=self.leaves, when=_is_in)
        reads = (GROUP, MAIL, OUT)
        yield Rule(name=f"the session of {self.name} expires", reads=reads, effect=self.session_expires)
        if self.bounds.commits:
            yield Rule(name=f"{self.name} commits", reads=(self.place,), effect=self.commits)
            arrival = f"the commit of {self.name} arrives"
            yield Rule(name=arrival, reads=(self.place, GROUP, OFFSETS), effect=self.commit_arrives)

    def joins(self, consumer: ClassicConsumer, group: ClassicGroup, mail: Mail, out: RemovedMembers) -> Outcomes:
        """JoinGroup, first for a member id and then with it (KIP-394); a static member gets its id when it joins."""
        new = consumer.member == UNKNOWN_MEMBER
        if new and consumer.ids == self.bounds.ids:
            return
        request = JoinGroup(consumer.member, self.instance)
        new_id = f"{self.name}{consumer.ids}"
        outcome = classic.join(group, request, new_id=new_id, parameters=self.parameters)
        replaced = group.of_instance(self.instance) if new else None
        asked = consumer._replace(phase=Phase.JOINING, ids=consumer.ids + new)
        if replaced is not None and outcome.group.member(replaced.id) is None:
            out |= {replaced.id}
            asked = asked._replace(turn=len(out))
        if outcome.group.generation <= self.bounds.generations:
            mail = self._deliver(mail, consumer.member or new_id, outcome.answer, outcome.released)
            yield asked, outcome.group, mail, out

    def hears(self, consumer: ClassicConsumer, mail: Mail) -> Outcomes:
        """A JoinGroup or SyncGroup response arrives; responses from before a crash are ignored."""
        for member_id, answer in mail:
            if member_id == (consumer.member or f"{self.name}{consumer.ids - 1}"):
                after = _joined(consumer, answer) if isinstance(answer, JoinAnswer) else _synced(consumer, answer)
                yield after, mail - {(member_id, answer)}

    def gives_up(self, consumer: ClassicConsumer, mail: Mail) -> Outcomes:
        """The response is lost, or the request times out: the consumer will rejoin."""
        yield consumer._replace(phase=Phase.OUT), self._without(mail)

    def syncs(self, consumer: ClassicConsumer, group: ClassicGroup, mail: Mail) -> Outcomes:
        """SyncGroup; the group leader sends any balanced assignment."""
        for assignments in balanced(consumer.assigns_to, self.bounds.partitions):
            request = SyncGroup(consumer.member, consumer.generation, assignments, self.instance)
            outcome = classic.sync(group, request)
            after = consumer._replace(phase=Phase.SYNCING, assigns_to=())
            yield after, outcome.group, self._deliver(mail, consumer.member, outcome.answer, outcome.released)

    def heartbeats(self, consumer: ClassicConsumer, group: ClassicGroup) -> Outcomes:
        request = Heartbeat(consumer.member, consumer.generation, self.instance)
        error = classic.heartbeat(group, request, parameters=self.parameters)
        if error is not Error.NONE:
            yield _refused(consumer, error), group

    def crashes(self, consumer: ClassicConsumer, mail: Mail) -> Outcomes:
        """The process crashes and is replaced; its OffsetCommit may still arrive."""
        yield ClassicConsumer(ids=consumer.ids, commit=consumer.commit), self._without(mail)

    def leaves(self, consumer: ClassicConsumer, group: ClassicGroup, mail: Mail) -> Outcomes:
        request = LeaveGroup(((consumer.member, self.instance),))
        group, _, released = classic.leave(group, request, parameters=self.parameters)
        if group.generation <= self.bounds.generations:
            mail = self._deliver(mail, consumer.member, None, released)
            yield ClassicConsumer(ids=consumer.ids, commit=consumer.commit), group, mail

    def session_expires(self, group: ClassicGroup, mail: Mail, out: RemovedMembers) -> Outcomes:
        for member_id in (*group.ids(), *sorted(group.pending)):
            if member_id.startswith(self.name):
                step = generations.session_expires(group, member_id, parameters=self.parameters)
                yield from _put_out(group, mail, out, step, self.bounds)

    def commits(self, consumer: ClassicConsumer) -> Outcomes:
        """A member with partitions sends OffsetCommit, which may be delayed for any time."""
        if consumer.phase is Phase.MEMBER and consumer.commit is None:
            rank = consumer.generation * 10 + consumer.turn
            for partition in consumer.owned:
                offsets = ((partition, rank),)
                request = OffsetCommit(offsets, consumer.member, consumer.generation, self.instance)
                yield (consumer._replace(commit=request),)

    def commit_arrives(self, consumer: ClassicConsumer, group: ClassicGroup, offsets: Offsets) -> Outcomes:
        if consumer.commit is not None:
            result = commit(group, offsets, consumer.commit, parameters=self.parameters)
            yield consumer._replace(commit=None), group, result.offsets

    def _without(self, mail: Mail) -> Mail:
        return frozenset(item for item in mail if not item[0].startswith(self.name))

    def _deliver(self, mail: Mail, asker: MemberId, answer: Answer | None, released: ReleasedResponses) -> Mail:
        """The responses in flight with these; unread responses to the sender are dropped."""
        own: ReleasedResponses = ((asker, answer),) if answer is not None else ()
        return _send(self._without(mail), released + own)


def _joined(consumer: ClassicConsumer, answer: JoinAnswer) -> ClassicConsumer:
    if answer.error is Error.MEMBER_ID_REQUIRED:
        return consumer._replace(phase=Phase.OUT, member=answer.member)
    if answer.error is not Error.NONE:
        return _refused(consumer, answer.error)
    after = consumer._replace(member=answer.member, generation=answer.generation, phase=Phase.JOINED)
    return after._replace(assigns_to=() if answer.skip_assignment else answer.members)


def _synced(consumer: ClassicConsumer, answer: SyncAnswer) -> ClassicConsumer:
    if answer.error is not Error.NONE:
        return _refused(consumer, answer.error)
    return consumer._replace(phase=Phase.MEMBER, owned=answer.assignment)


def _refused(consumer: ClassicConsumer, error: Error) -> ClassicConsumer:
    """A consumer after an error: it revokes all partitions and rejoins, with a new id if its id is unknown.

    ConsumerCoordinator.
    """
    after = consumer._replace(phase=Phase.OUT, owned=NOTHING, generation=NO_GENERATION, assigns_to=())
    if error is Error.REBALANCE_IN_PROGRESS:
        return after
    return after._replace(member=UNKNOWN_MEMBER, phase=Phase.FENCED if error is Error.FENCED_INSTANCE_ID else Phase.OUT)


def _is_out(consumer: ClassicConsumer) -> bool:
    return consumer.phase is Phase.OUT


def _waits(consumer: ClassicConsumer) -> bool:
    return consumer.phase in (Phase.JOINING, Phase.SYNCING)


def _has_joined(consumer: ClassicConsumer) -> bool:
    return consumer.phase is Phase.JOINED


def _is_in(consumer: ClassicConsumer) -> bool:
    return consumer.phase in (Phase.JOINED, Phase.MEMBER)


def _coordinator_rules(parameters: GroupParameters, bounds: ClassicBounds) -> Iterator[Rule]:
    """Timeouts of the coordinator, and commits of a simple consumer."""

    def join_time_passes(group: ClassicGroup, mail: Mail, out: RemovedMembers) -> Outcomes:
        late = frozenset(member.id for member in group.members if not member.joining)  # static ones stay, and are late
        return _put_out(group, mail, out | late, generations.join_time_passes(group), bounds)

    def sync_time_passes(group: ClassicGroup, mail: Mail, out: RemovedMembers) -> Outcomes:
        return _put_out(group, mail, out, generations.sync_time_passes(group, parameters=parameters), bounds)

    def simple_commit(group: ClassicGroup, offsets: Offsets) -> Outcomes:
        """OffsetCommit without a member: in an empty group it continues from the committed offset, else from 0."""
        offset = max(offsets.of(0), 0) if group.state is GroupState.EMPTY else 0
        yield group, commit(group, offsets, OffsetCommit(((0, offset),)), parameters=parameters).offsets

    yield Rule(name="the time to join passes", reads=(GROUP, MAIL, OUT), effect=join_time_passes)
    yield Rule(name="the time to sync passes", reads=(GROUP, MAIL, OUT), effect=sync_time_passes)
    if bounds.commits:
        yield Rule(name="a simple consumer commits", reads=(GROUP, OFFSETS), effect=simple_commit)


def _put_out(
    before: ClassicGroup, mail: Mail, out: RemovedMembers, step: Step | None, bounds: ClassicBounds
) -> Outcomes:
    if step is not None and step.group.generation <= bounds.generations:
        gone = frozenset(before.ids()) - frozenset(step.group.ids())
        yield step.group, _send(mail, step.released), out | gone


def _send(mail: Mail, answers: ReleasedResponses) -> Mail:
    asked = {member_id for member_id, _ in answers}
    return frozenset(item for item in mail if item[0] not in asked) | frozenset(answers)


def _pair_invariants(one: _Actions, other: _Actions, parameters: GroupParameters) -> Iterator[Invariant]:
    def current(group: ClassicGroup, actions: _Actions, consumer: ClassicConsumer) -> bool:
        request = Heartbeat(consumer.member, consumer.generation, actions.instance)
        error = classic.heartbeat(group, request, parameters=parameters)
        return error in (Error.NONE, Error.REBALANCE_IN_PROGRESS)

    def one_owner(mine: ClassicConsumer, yours: ClassicConsumer, group: ClassicGroup) -> bool:
        both = current(group, one, mine) and current(group, other, yours)
        return not both or not mine.owned & yours.owned

    def was_put_out(mine: ClassicConsumer, yours: ClassicConsumer, out: RemovedMembers) -> bool:
        return not mine.owned & yours.owned or bool({mine.member, yours.member} & out)

    def owns(consumer: ClassicConsumer) -> bool:
        return bool(consumer.owned)

    yield Invariant(name=TWO_OWNERS, reads=(one.place, other.place, GROUP), holds=one_owner, when=owns)
    yield Invariant(name=ZOMBIES_WERE_PUT_OUT, reads=(one.place, other.place, OUT), holds=was_put_out, when=owns)


def _assigned_once(group: ClassicGroup) -> bool:
    return all(not one.assignment & other.assignment for one, other in combinations(group.members, 2))


def _leader_is_member(group: ClassicGroup) -> bool:
    return group.state is not GroupState.STABLE or group.member(group.leader) is not None
