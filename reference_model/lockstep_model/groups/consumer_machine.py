"""A group of the consumer protocol with its consumers, which stall, crash, leave, return and commit late.

A consumer has one heartbeat in flight, as KafkaConsumer does. Requests and responses are delayed or lost. A heartbeat
without response is sent again with all fields, so the coordinator may see it twice. A member reports its owned
partitions once it has reconciled its assignment. ConsumerBounds limit group epochs and the member ids of each consumer.

A consumer commits a higher offset in a later epoch. So an offset that falls was overwritten from an older epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from itertools import combinations
from typing import NamedTuple

from lockstep_model.errors import Error
from lockstep_model.groups import consumer as protocol
from lockstep_model.groups.consumer import (
    JOIN,
    LEAVE,
    LEAVE_FOR_A_WHILE,
    Assignor,
    ConsumerGroup,
    ConsumerGroupHeartbeat,
    ConsumerGroupState,
    HeartbeatAnswer,
    Target,
)
from lockstep_model.groups.exploration import balanced, commits_rise
from lockstep_model.groups.generations import NOTHING, UNKNOWN_MEMBER, MemberId, Partitions
from lockstep_model.groups.offsets import OffsetCommit, Offsets, commit
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.groups.reconciliation import ConsumerMember, MemberState, partitions
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule, Transition

NO_DOUBLE_CLIENT_ASSIGNMENT = "I14 two consumers that are members never own one partition"
HELD_ONCE = "I14 no partition is assigned to, or not yet revoked by, two members"
OWNED_IS_HELD = "what a member owns, the coordinator holds for it"
VALID_EPOCHS = (
    "member epochs are not above the target's, nor that above the group's, nor assignment epochs above either"
)
VALID_STABLE_GROUP = "in a stable group every member has its target"
LEGAL_TARGET = "a target gives every partition to one member"
VALID_MEMBER_EPOCH = "a consumer with the target's epoch owns nothing that is another member's target"
EPOCHS_RISE = "epochs never go back"
INSTANCES_ARE_RELEASED = "an instance id changes hands only when it was released"
COMMITS_RISE = "a committed offset is never overwritten by a member of an older epoch"


class LateHeartbeats(Enum):
    """Which heartbeats may arrive after the member gave them up and sent others."""

    NONE = auto()
    """None: a connection keeps the order of requests, and a broken one delivers nothing."""
    FENCED = auto()
    """Heartbeats that the coordinator recognizes as old, by member epoch and owned partitions."""
    ANY = auto()
    """All: more than the protocol is safe for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerBounds:
    """Limits of the search: consumers by name, with a group instance id if static."""

    consumers: tuple[tuple[str, str | None], ...] = (("a", None), ("b", None))
    partitions: int = 2
    epochs: int = 3
    ids: int = 1
    steady: frozenset[str] = frozenset()
    """Consumers that do not crash, and whose heartbeats get their response at once."""
    commits: bool = False
    late: LateHeartbeats = LateHeartbeats.NONE
    hasty: bool = False
    """Consumers without a response send their owned partitions again even while they reconcile, as KafkaConsumer does
    (HeartbeatState.buildRequestData): more than the protocol is safe for."""
    slow_assignor: bool = False
    """Targets are computed some time after the group epoch rose, as they may be from 4.3 on."""


class ConsumerClient(NamedTuple):
    """A consumer's own state (ConsumerMembershipManager)."""

    member: MemberId = UNKNOWN_MEMBER
    epoch: int = JOIN
    owned: Partitions = NOTHING
    assignment: Partitions = NOTHING
    """The last assignment of the coordinator."""
    unheard: bool = True
    """The next heartbeat has all fields, because the last one had no response."""
    acknowledges: bool = False
    """The next heartbeat after reconciliation has the owned partitions, even if unchanged (LocalAssignment)."""
    asked: ConsumerGroupHeartbeat | None = None
    """Heartbeat in flight."""
    answer: HeartbeatAnswer | None = None
    """Response in flight."""
    late: ConsumerGroupHeartbeat | None = None
    """A heartbeat that was given up, and is still in flight."""
    ids: int = 0
    fenced: bool = False
    commit: OffsetCommit | None = None


GROUP, OFFSETS, FIRST_CONSUMER = range(3)


def consumer_machine(parameters: GroupParameters, bounds: ConsumerBounds) -> Machine:
    """A consumer group with these consumers, within these bounds."""
    consumers = [
        _Actions(name, instance, FIRST_CONSUMER + at, parameters, bounds)
        for at, (name, instance) in enumerate(bounds.consumers)
    ]
    return Machine(
        initial=(ConsumerGroup(), Offsets(), *(ConsumerClient() for _ in consumers)),
        rules=(*(rule for consumer in consumers for rule in consumer.rules()), *_assignor_rules(bounds)),
        invariants=(
            *(_no_double_assignment(one, other) for one, other in combinations(consumers, 2)),
            *(invariant for consumer in consumers for invariant in _consumer_invariants(consumer)),
            Invariant(name=HELD_ONCE, reads=(GROUP,), holds=_held_once),
            Invariant(name=VALID_EPOCHS, reads=(GROUP,), holds=_valid_epochs),
            Invariant(name=VALID_STABLE_GROUP, reads=(GROUP,), holds=_valid_stable_group),
            Invariant(name=LEGAL_TARGET, reads=(GROUP,), holds=lambda group: _legal_target(group, bounds)),
            Transition(name=EPOCHS_RISE, place=GROUP, holds=_epochs_rise),
            Transition(name=INSTANCES_ARE_RELEASED, place=GROUP, holds=_instances_are_released),
            Transition(name=COMMITS_RISE, place=OFFSETS, holds=commits_rise),
        ),
    )


def settled(state: tuple[object, ...]) -> bool:
    """Whether every member has its target assignment."""
    group = state[GROUP]
    return isinstance(group, ConsumerGroup) and group.state() in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY)


@dataclass(frozen=True, slots=True)
class _Actions:
    """Actions and timeouts of one consumer."""

    name: str
    instance: str | None
    place: int
    parameters: GroupParameters
    bounds: ConsumerBounds

    def rules(self) -> Iterator[Rule]:
        own, both = (self.place,), (self.place, GROUP)
        if self.name in self.bounds.steady:
            yield Rule(name=f"{self.name} heartbeats", reads=both, effect=self.heartbeats_at_once, when=_may_ask)
        else:
            yield Rule(name=f"{self.name} heartbeats", reads=own, effect=self.heartbeats, when=_may_ask)
            yield Rule(name=f"the heartbeat of {self.name} arrives", reads=both, effect=self.arrives, when=_has_asked)
            yield Rule(name=f"{self.name} hears", reads=own, effect=self.hears)
            yield Rule(name=f"{self.name} is not heard or answered", reads=own, effect=self.gives_up)
            yield Rule(name=f"{self.name} crashes", reads=own, effect=self.crashes)
            if self.bounds.late is not LateHeartbeats.NONE:
                yield Rule(name=f"an old heartbeat of {self.name} arrives", reads=both, effect=self.late_arrives)
        yield Rule(name=f"{self.name} reconciles", reads=own, effect=self.reconciles)
        yield Rule(name=f"{self.name} leaves", reads=both, effect=self.leaves, when=_is_in)
        yield Rule(name=f"the session of {self.name} expires", reads=(GROUP,), effect=self.session_expires)
        if self.bounds.commits:
            arrival = f"the commit of {self.name} arrives"
            yield Rule(name=f"{self.name} commits", reads=own, effect=self.commits, when=_is_in)
            yield Rule(name=arrival, reads=(self.place, GROUP, OFFSETS), effect=self.commit_arrives)

    def heartbeats_at_once(self, consumer: ConsumerClient, group: ConsumerGroup) -> Outcomes:
        for (asking,) in self.heartbeats(consumer):
            for answered, after in self.arrives(asking, group):
                for (heard,) in self.hears(answered):
                    yield heard, after

    def heartbeats(self, consumer: ConsumerClient) -> Outcomes:
        """A heartbeat with changed fields; with all fields to join, or after one without response."""
        if consumer.member == UNKNOWN_MEMBER:
            if consumer.ids == self.bounds.ids:
                return
            consumer = consumer._replace(member=f"{self.name}{consumer.ids}", ids=consumer.ids + 1)
        everything = consumer.epoch == JOIN or consumer.unheard
        reconciled = consumer.owned == consumer.assignment
        if everything and not reconciled and not self.bounds.hasty:
            return
        tells = everything or (consumer.acknowledges and reconciled)
        owned = consumer.owned if tells else None
        request = ConsumerGroupHeartbeat(
            consumer.member, consumer.epoch, self.instance, owned, "" if everything else None
        )
        acknowledges = consumer.acknowledges and not reconciled
        yield (consumer._replace(asked=request, unheard=False, acknowledges=acknowledges),)

    def arrives(self, consumer: ConsumerClient, group: ConsumerGroup) -> Outcomes:
        if consumer.asked is not None:
            for after, answer in self._handled(group, consumer.asked):
                yield consumer._replace(asked=None, answer=answer), after

    def late_arrives(self, consumer: ConsumerClient, group: ConsumerGroup) -> Outcomes:
        """An old heartbeat arrives; no consumer awaits its response."""
        if consumer.late is not None and (self.bounds.late is LateHeartbeats.ANY or _looks_old(consumer.late, group)):
            for after, _ in self._handled(group, consumer.late):
                yield consumer._replace(late=None), after

    def hears(self, consumer: ConsumerClient) -> Outcomes:
        if consumer.answer is not None:
            yield (_heard(consumer._replace(answer=None), consumer.answer),)

    def gives_up(self, consumer: ConsumerClient) -> Outcomes:
        """Request or response is lost or late: the next heartbeat has all fields (HeartbeatState.reset)."""
        if consumer.asked is not None or consumer.answer is not None:
            late = consumer.asked if self.bounds.late is not LateHeartbeats.NONE else None
            yield (consumer._replace(asked=None, answer=None, unheard=True, late=late or consumer.late),)

    def reconciles(self, consumer: ConsumerClient) -> Outcomes:
        """The consumer revokes partitions outside its assignment and adds the new ones."""
        if consumer.owned != consumer.assignment:
            yield (consumer._replace(owned=consumer.assignment),)

    def leaves(self, consumer: ConsumerClient, group: ConsumerGroup) -> Outcomes:
        """The consumer leaves without partitions; a static member may leave to return."""
        for epoch in (LEAVE,) if self.instance is None else (LEAVE, LEAVE_FOR_A_WHILE):
            request = ConsumerGroupHeartbeat(consumer.member, epoch, self.instance)
            for after, _ in self._handled(group, request):
                yield ConsumerClient(ids=consumer.ids, commit=consumer.commit), after

    def crashes(self, consumer: ConsumerClient) -> Outcomes:
        """The process crashes and is replaced; its OffsetCommit may still arrive."""
        yield (ConsumerClient(ids=consumer.ids, commit=consumer.commit),)

    def session_expires(self, group: ConsumerGroup) -> Outcomes:
        for member in group.members:
            after = protocol.session_expires(group, member.id) if member.id.startswith(self.name) else None
            if after is not None and after.epoch <= self.bounds.epochs:
                yield (after,)

    def commits(self, consumer: ConsumerClient) -> Outcomes:
        if consumer.commit is None:
            for partition in consumer.owned:
                offsets = ((partition, consumer.epoch),)
                request = OffsetCommit(offsets, consumer.member, consumer.epoch, self.instance)
                yield (consumer._replace(commit=request),)

    def commit_arrives(self, consumer: ConsumerClient, group: ConsumerGroup, offsets: Offsets) -> Outcomes:
        if consumer.commit is not None:
            result = commit(group, offsets, consumer.commit, parameters=self.parameters)
            yield consumer._replace(commit=None), group, result.offsets

    def _handled(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeat
    ) -> Iterator[tuple[ConsumerGroup, HeartbeatAnswer]]:
        """The coordinator's response, for each target that it may compute now."""
        seen = set()
        for assignor in _assignors(group, self.bounds):
            result = protocol.heartbeat(group, request, assignor=assignor, parameters=self.parameters)
            if result not in seen and result[0].epoch <= self.bounds.epochs:
                seen.add(result)
                yield result
            if assignor is not None and result[0].target_epoch == group.target_epoch:
                return  # no new target was due


def _assignors(group: ConsumerGroup, bounds: ConsumerBounds) -> Iterator[Assignor | None]:
    """One assignor for each balanced assignment of the members after a heartbeat."""
    if bounds.slow_assignor and group.target_epoch > 0:
        yield None
    for choice in range(_most_choices(bounds)):
        yield _choosing(choice, bounds)


def _choosing(choice: int, bounds: ConsumerBounds) -> Assignor:
    def chosen(members: tuple[ConsumerMember, ...]) -> Target:
        choices = balanced(tuple(member.id for member in members), bounds.partitions)
        return choices[choice % len(choices)]

    return chosen


@cache
def _most_choices(bounds: ConsumerBounds) -> int:
    ids = tuple(f"{name}{at}" for name, _ in bounds.consumers for at in range(bounds.ids))
    return max(len(balanced(ids[:members], bounds.partitions)) for members in range(1, len(ids) + 1))


def _assignor_rules(bounds: ConsumerBounds) -> Iterator[Rule]:
    def computed(group: ConsumerGroup) -> Outcomes:
        """A delayed target assignment is computed (computeDelayedTargetAssignment)."""
        if group.members:
            for choice in range(_most_choices(bounds)):
                yield (protocol.assign(group, _choosing(choice, bounds)),)

    if bounds.slow_assignor:
        yield Rule(name="a target is computed", reads=(GROUP,), effect=computed)


def _heard(consumer: ConsumerClient, answer: HeartbeatAnswer) -> ConsumerClient:
    """A response: the consumer takes its assignment, or revokes all and rejoins after an error."""
    if answer.error is Error.NONE:
        if answer.assignment in (None, consumer.assignment):
            return consumer._replace(epoch=answer.epoch)
        return consumer._replace(epoch=answer.epoch, assignment=answer.assignment, acknowledges=True)
    afresh = ConsumerClient(ids=consumer.ids, late=consumer.late, commit=consumer.commit)
    if answer.error in (Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID):
        return afresh._replace(fenced=True)
    return afresh._replace(member=consumer.member)  # fenced or unknown: it rejoins with its member id


def _looks_old(request: ConsumerGroupHeartbeat, group: ConsumerGroup) -> bool:
    """Whether a heartbeat with this epoch and these partitions cannot be the member's last one."""
    member = group.member(request.member)
    if member is None or request.epoch in (JOIN, member.epoch):
        return False
    unheard = request.epoch == member.previous_epoch
    return not unheard or request.owned is None or not request.owned <= partitions(member.assigned)


def _may_ask(consumer: ConsumerClient) -> bool:
    return consumer.asked is None and consumer.answer is None and not consumer.fenced


def _has_asked(consumer: ConsumerClient) -> bool:
    return consumer.asked is not None


def _is_in(consumer: ConsumerClient) -> bool:
    return consumer.epoch > JOIN


def _no_double_assignment(one: _Actions, other: _Actions) -> Invariant:
    def holds(mine: ConsumerClient, yours: ConsumerClient, group: ConsumerGroup) -> bool:
        both = group.member(mine.member) and group.member(yours.member)
        return not both or not mine.owned & yours.owned

    reads = (one.place, other.place, GROUP)
    return Invariant(name=NO_DOUBLE_CLIENT_ASSIGNMENT, reads=reads, holds=holds, when=lambda mine: bool(mine.owned))


def _consumer_invariants(actions: _Actions) -> Iterator[Invariant]:
    def owned_is_held(consumer: ConsumerClient, group: ConsumerGroup) -> bool:
        member = group.member(consumer.member)
        return member is None or all(member.holds(partition) for partition in consumer.owned)

    def valid_member_epoch(consumer: ConsumerClient, group: ConsumerGroup) -> bool:
        if group.member(consumer.member) is None or consumer.epoch != group.target_epoch:
            return True
        return all(not consumer.owned & its for member_id, its in group.target if member_id != consumer.member)

    reads = (actions.place, GROUP)
    yield Invariant(name=OWNED_IS_HELD, reads=reads, holds=owned_is_held)
    yield Invariant(name=VALID_MEMBER_EPOCH, reads=reads, holds=valid_member_epoch)


def _held_once(group: ConsumerGroup) -> bool:
    held = [partitions(member.assigned | member.revoking) for member in group.members]
    return all(not one & other for one, other in combinations(held, 2))


def _valid_epochs(group: ConsumerGroup) -> bool:
    return group.target_epoch <= group.epoch and all(
        member.epoch <= group.target_epoch
        and (member.epoch == LEAVE_FOR_A_WHILE or all(since <= member.epoch for _, since in member.assigned))
        and (member.state is MemberState.UNREVOKED_PARTITIONS or not member.revoking)
        for member in group.members
    )


def _valid_stable_group(group: ConsumerGroup) -> bool:
    if group.state() is not ConsumerGroupState.STABLE:
        return True
    return all(partitions(member.assigned) == group.target_of(member.id) for member in group.members)


def _legal_target(group: ConsumerGroup, bounds: ConsumerBounds) -> bool:
    """The target assigns each partition to one of its members; a member that left has none."""
    given = [partition for _, its in group.target for partition in its]
    all_given = set(given) == set(range(bounds.partitions))
    return len(given) == len(set(given)) and (all_given or group.state() is not ConsumerGroupState.STABLE)


def _epochs_rise(before: ConsumerGroup, after: ConsumerGroup) -> bool:
    return (
        before.epoch <= after.epoch
        and before.target_epoch <= after.target_epoch
        and all(
            now.epoch == LEAVE_FOR_A_WHILE or was.epoch <= now.epoch
            for was in before.members
            for now in after.members
            if was.id == now.id
        )
    )


def _instances_are_released(before: ConsumerGroup, after: ConsumerGroup) -> bool:
    """A static member returns with a new id only after the old one left with epoch -2."""
    for was in before.members:
        now = after.of_instance(was.instance)
        if now is not None and now.id != was.id and was.epoch != LEAVE_FOR_A_WHILE:
            return False
    return True
