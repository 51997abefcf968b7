"""The group coordinator of the reference model: every permitted outcome of a request and of an expired timer.

Where Kafka leaves a choice, each choice is one outcome: the classic group's next leader when the leader has left, and
the target assignment of a KIP-848 group, as long as no member has two partitions more than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

from lockstep.stepper.model.groups.state import (
    Memory,
    PendingGroupRequest,
    Plain,
    Reply,
    Stored,
    Timer,
    TimerKind,
    Times,
)
from lockstep_model.errors import Error
from lockstep_model.groups import classic, consumer, generations, offsets
from lockstep_model.groups.consumer import ConsumerGroup, Target
from lockstep_model.groups.generations import (
    NOTHING,
    UNKNOWN_MEMBER,
    Answer,
    Chooser,
    ClassicGroup,
    GroupState,
    MemberId,
)
from lockstep_model.groups.offsets import Group
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.groups.reconciliation import ConsumerMember, MemberState

PARTITIONS = 3
"""Partitions of the topic to which all members subscribe."""


class CoordinatorOutcome(NamedTuple):
    """One permitted outcome: the coordinator's group metadata afterwards, and the responses it sends."""

    memory: Memory
    reply: Reply | None = None
    """The response; None if the request is parked, or if a timer expired and there was no request."""
    released: tuple[tuple[MemberId, Answer], ...] = ()
    """Responses to JoinGroup and SyncGroup requests of members that were parked before."""
    waiting: MemberId = UNKNOWN_MEMBER
    """The member whose request is parked, if there is no response yet."""


class GroupCoordinator(NamedTuple):
    """The group coordinator of one Kafka version, with its timeouts."""

    parameters: GroupParameters
    times: Times

    def handle(self, memory: Memory, asked: PendingGroupRequest) -> set[CoordinatorOutcome]:
        """Every permitted outcome of a request."""
        return set(self._handle(memory, asked))

    def _handle(self, memory: Memory, asked: PendingGroupRequest) -> Iterator[CoordinatorOutcome]:
        request = asked.request
        match request:
            case offsets.OffsetCommit():
                committed = offsets.commit(memory.group, memory.offsets, request, parameters=self.parameters)
                after = memory._replace(group=committed.group, offsets=committed.offsets)
                yield CoordinatorOutcome(after, Plain(committed.error))
            case offsets.OffsetFetch():
                fetched = offsets.fetch(memory.group, memory.offsets, request, parameters=self.parameters)
                yield CoordinatorOutcome(memory, fetched if fetched.error is Error.NONE else Plain(fetched.error))
            case consumer.ConsumerGroupHeartbeat():
                yield from self._consumer_heartbeat(memory, request, asked.at_ms)
            case _:
                group = memory.group if isinstance(memory.group, ClassicGroup) else ClassicGroup()
                for choose in _orders(group, asked.name):
                    yield self._classic(memory, group, asked, choose)

    def _classic(
        self, memory: Memory, group: ClassicGroup, asked: PendingGroupRequest, choose: Chooser
    ) -> CoordinatorOutcome:
        request, at_ms = asked.request, asked.at_ms
        match request:
            case classic.JoinGroup():
                new_id = asked.name
                handled = classic.join(group, request, new_id=new_id, parameters=self.parameters, choose=choose)
                return self._joined(memory, handled, request.member or new_id, at_ms)
            case classic.SyncGroup():
                return self._joined(memory, classic.sync(group, request), request.member, at_ms)
            case classic.Heartbeat():
                error = classic.heartbeat(group, request, parameters=self.parameters)
                heard = {Timer(TimerKind.SESSION, request.member): at_ms + self.times.session_ms}
                alive = error in (Error.NONE, Error.REBALANCE_IN_PROGRESS)
                return CoordinatorOutcome(memory.with_timers(heard) if alive else memory, Plain(error))
            case classic.LeaveGroup():
                after, (error,), released = classic.leave(group, request, parameters=self.parameters, choose=choose)
                if error is not Error.NONE:
                    return CoordinatorOutcome(memory, Plain(error))
                return CoordinatorOutcome(self._after_classic(memory, after, released, at_ms), Plain(error), released)
            case _:
                raise TypeError(f"the reference model has no answer to {request}")

    def _joined(
        self, memory: Memory, handled: classic.ClassicResult, member: MemberId, at_ms: int
    ) -> CoordinatorOutcome:
        """The outcome of a JoinGroup or SyncGroup: an error, a response, or a parked request with a new session."""
        answer = handled.answer
        if answer is not None and answer.error not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            known = memory.group is not None
            after = self._after_classic(memory, handled.group, handled.released, at_ms) if known else memory
            return CoordinatorOutcome(after, Plain(answer.error), handled.released)
        heard = ((member, answer),) if answer is not None else ()
        after = self._after_classic(memory, handled.group, (*handled.released, *heard), at_ms)
        session = {Timer(TimerKind.SESSION, member): at_ms + self.times.session_ms}
        return CoordinatorOutcome(after.with_timers(session), answer, handled.released, member)

    def _after_classic(
        self, memory: Memory, group: ClassicGroup, answers: Iterable[tuple[MemberId, Answer]], at_ms: int
    ) -> Memory:
        """Group metadata after a change of a classic group.

        A member that is sent a response begins a new session. The join timer runs during PreparingRebalance, the sync
        timer while members of the generation have not sent SyncGroup.
        """
        before = memory.group if isinstance(memory.group, ClassicGroup) else ClassicGroup()
        present = {*group.ids(), *group.pending}
        due = {timer: when for timer, when in memory.due if timer.kind is not TimerKind.SESSION}
        due |= {timer: when for timer, when in memory.due if timer.member in present}
        answered = [member for member, answer in answers if answer.error is Error.NONE and member in present]
        due.update({Timer(TimerKind.SESSION, member): at_ms + self.times.session_ms for member in answered})
        if group.state is not GroupState.PREPARING_REBALANCE:
            due.pop(Timer(TimerKind.JOIN), None)
        elif before.state is not GroupState.PREPARING_REBALANCE:
            longest_ms = self.times.rebalance_ms if group.members else 0  # the members' maximum (rebalanceTimeoutMs)
            wait_ms = self.times.initial_ms if group.initial else longest_ms
            due[Timer(TimerKind.JOIN)] = at_ms + wait_ms
        if not group.unsynced:
            due.pop(Timer(TimerKind.SYNC), None)
        elif group.generation != before.generation:
            due[Timer(TimerKind.SYNC)] = at_ms + self.times.rebalance_ms
        return memory._replace(group=group, due=tuple(sorted(due.items())))

    def _consumer_heartbeat(
        self, memory: Memory, request: consumer.ConsumerGroupHeartbeat, at_ms: int
    ) -> Iterator[CoordinatorOutcome]:
        """ConsumerGroupHeartbeat (KIP-848): one outcome for each target assignment that the assignor may choose.

        A group that only offset commits had created becomes a consumer group (getOrMaybeCreateConsumerGroup).
        """
        group = memory.group if isinstance(memory.group, ConsumerGroup) else ConsumerGroup()
        for assignor in _assignors(self.parameters):
            after, answer = consumer.heartbeat(group, request, assignor=assignor, parameters=self.parameters)
            if answer.error is not Error.NONE:
                yield CoordinatorOutcome(memory, Plain(answer.error))
                return
            yield CoordinatorOutcome(self._after_consumer(memory, after, request.member, at_ms), answer)

    def _after_consumer(self, memory: Memory, group: ConsumerGroup, heard: MemberId | None, at_ms: int) -> Memory:
        """Group metadata after a change of a consumer group. Members that must revoke have a rebalance timer."""
        members = {member.id: member for member in group.members}
        due = {timer: when for timer, when in memory.due if timer.member in members}
        if heard in members:
            due[Timer(TimerKind.SESSION, heard)] = at_ms + self.times.consumer_session_ms
        for member in members.values():
            revocation = Timer(TimerKind.REVOCATION, member.id)
            if member.state is not MemberState.UNREVOKED_PARTITIONS:
                due.pop(revocation, None)
            else:
                due.setdefault(revocation, at_ms + self.times.rebalance_ms)
        return memory._replace(group=group, due=tuple(sorted(due.items())))

    def expire(self, memory: Memory, now_ms: int) -> set[CoordinatorOutcome]:
        """Every outcome of a timer that may have expired by now."""
        return {
            outcome
            for timer, due_ms in memory.due
            if due_ms <= now_ms
            for outcome in self._expire(memory, timer, due_ms)
        }

    def _expire(self, memory: Memory, timer: Timer, due_ms: int) -> Iterator[CoordinatorOutcome]:
        if isinstance(memory.group, ConsumerGroup):
            times_out = consumer.session_expires if timer.kind is TimerKind.SESSION else consumer.rebalance_time_passes
            without = times_out(memory.group, timer.member)
            if without is not None:
                yield CoordinatorOutcome(self._after_consumer(memory, without, None, due_ms))
        elif isinstance(memory.group, ClassicGroup):
            for choose in _orders(memory.group):
                step = self._classic_expires(memory.group, timer, choose)
                if step is not None:
                    after = self._after_classic(memory, step.group, step.released, due_ms)
                    if timer.kind is TimerKind.JOIN and step.group.state is GroupState.PREPARING_REBALANCE:
                        after = after.with_timers({timer: due_ms + self.times.rebalance_ms})
                    yield CoordinatorOutcome(after, released=step.released)

    def _classic_expires(self, group: ClassicGroup, timer: Timer, choose: Chooser) -> generations.Step | None:
        match timer.kind:
            case TimerKind.SESSION:
                return generations.session_expires(group, timer.member, parameters=self.parameters, choose=choose)
            case TimerKind.JOIN:
                return generations.join_time_passes(group, choose=choose)
            case _:
                return generations.sync_time_passes(group, parameters=self.parameters, choose=choose)

    def load(self, stored: Stored, at_ms: int) -> Iterator[Memory]:
        """Group metadata of a coordinator that has just loaded the group. Every member begins a new session."""
        memory = Memory(offsets=stored.offsets)
        if isinstance(stored.group, ConsumerGroup):
            sessions = {
                Timer(TimerKind.SESSION, member.id): at_ms + self.times.consumer_session_ms
                for member in stored.group.members
            }
            yield self._after_consumer(memory.with_timers(sessions), stored.group, None, at_ms)
        elif stored.group is None:
            yield memory
        else:
            if stored.group.generation == 0 and not stored.offsets.committed:  # the old one may not have written it
                yield memory
            sessions = {
                Timer(TimerKind.SESSION, member): at_ms + self.times.session_ms for member in stored.group.ids()
            }
            yield memory._replace(group=stored.group).with_timers(sessions)


def stored_after(stored: Stored, memory: Memory) -> Stored:
    """The group in __consumer_offsets when the coordinator holds this metadata.

    A classic group is written when its rebalance is complete (Stable or Empty), not before.
    """
    group = memory.group
    if isinstance(group, ClassicGroup):
        if group.state not in (GroupState.STABLE, GroupState.EMPTY):
            return stored._replace(offsets=memory.offsets)
        group = group._replace(pending=frozenset(), unsynced=frozenset())
    return Stored(group, memory.offsets)


def waiting_members(group: Group | None) -> Iterator[tuple[MemberId, bool]]:
    """Members with a parked request, and whether that request is a JoinGroup."""
    if isinstance(group, ClassicGroup):
        for member in group.members:
            if member.joining or member.syncing:
                yield member.id, member.joining


def as_reply(answer: Answer) -> Reply:
    """The response as it is compared with the observed one: of an error response only the error code counts."""
    return answer if answer.error is Error.NONE else Plain(answer.error)


def _orders(group: ClassicGroup, *others: MemberId) -> Iterator[Chooser]:
    """Every iteration order that Kafka's hash map of members may have: it decides which member is picked."""
    for order in permutations({*group.ids(), *others}):
        yield _first_of(order)


def _first_of(order: tuple[MemberId, ...]) -> Chooser:
    ranks = {member: rank for rank, member in enumerate(order)}
    return lambda names: min(names, key=lambda name: (ranks.get(name, 0), name))


def _assignors(parameters: GroupParameters) -> Iterator[consumer.Assignor | None]:
    if parameters.assignment_epochs:  # 4.3 may delay a new target (group.consumer.min.assignment.interval.ms)
        yield None
    for number in range(len(_targets(("a", "b")))):
        yield _assignor(number)


def _assignor(number: int) -> Callable[[tuple[ConsumerMember, ...]], Target]:
    def assign(members: tuple[ConsumerMember, ...]) -> Target:
        targets = _targets(tuple(member.id for member in members))
        return targets[number % len(targets)]

    return assign


@cache
def _targets(members: tuple[MemberId, ...]) -> tuple[Target, ...]:
    """Every target assignment in which the members' partition counts differ by at most one."""
    if not members:
        return ((),)
    found = []
    for owners in product(members, repeat=PARTITIONS):
        target = {member: frozenset(i for i, owner in enumerate(owners) if owner == member) for member in members}
        sizes = [len(partitions) for partitions in target.values()]
        if max(sizes) - min(sizes) <= 1:
            found.append(tuple(sorted((member, partitions or NOTHING) for member, partitions in target.items())))
    return tuple(found)
