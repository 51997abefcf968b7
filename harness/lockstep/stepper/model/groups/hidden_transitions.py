"""Hidden transitions of a group: what brokers do between two observations, as rules of the reference model.

Brokers learn that they became or ceased to be leader of the group's partition of __consumer_offsets, the new
coordinator loads the group from the log, requests are handled, and session and rebalance timers expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from lockstep.stepper.model.groups.responses import (
    CoordinatorOutcome,
    GroupCoordinator,
    as_reply,
    stored_after,
    waiting_members,
)
from lockstep.stepper.model.groups.state import (
    Around,
    GroupPlaces,
    GroupResponse,
    Memory,
    Operation,
    ParkedGroupRequest,
    PendingGroupRequest,
    Plain,
    Seat,
    Stored,
)
from lockstep_model.coordinators import CoordinatorState, heartbeat_refusal, refusal, sync_refusal
from lockstep_model.errors import Error
from lockstep_model.groups.classic import Heartbeat, SyncGroup
from lockstep_model.groups.generations import Answer, JoinAnswer, MemberId
from lockstep_model.registration import BrokerId
from lockstep_model.state_machine import Machine, Outcomes, Rule, State

Operations = tuple[Operation, ...]


def machine(coordinator: GroupCoordinator, initial: State, brokers: int) -> Machine:
    """The state machine of all hidden transitions, from this initial state."""
    return Machine(initial=initial, rules=tuple(_GroupTransitions(coordinator, GroupPlaces(brokers)).all()))


class _GroupTransitions:
    """One rule per broker and kind of transition, and one per broker and request slot."""

    def __init__(self, coordinator: GroupCoordinator, places: GroupPlaces) -> None:
        self.coordinator = coordinator
        self.places = places

    def all(self) -> Iterator[Rule]:
        around, stored = GroupPlaces.AROUND, GroupPlaces.STORED
        for b in self.places.brokers:
            seat, operations = self.places.seat(b), self.places.operations
            yield Rule(
                name=f"{b} hears who coordinates", reads=(around, seat, *operations), effect=partial(self.hears, b)
            )
            yield Rule(name=f"{b} shuts down", reads=(around, seat, *operations), effect=partial(self.stops, b))
            yield Rule(name=f"{b} has loaded the group", reads=(around, seat, stored), effect=self.loads)
            reads = around, seat, stored, *operations
            yield Rule(name=f"a timer of {b} runs out", reads=reads, effect=partial(self.expires, b))
            for slot, place in enumerate(operations):
                others = tuple(other for other in operations if other != place)
                yield Rule(
                    name=f"{b} handles request {slot}",
                    reads=(place, around, seat, stored, *others),
                    effect=partial(self.handles, b),
                    when=lambda operation: isinstance(operation, PendingGroupRequest),
                )

    def hears(self, b: BrokerId, around: Around, seat: Seat, *operations: Operation) -> Outcomes:
        """A broker applies an election of the group's partition (GroupCoordinator.onElection, onResignation).

        A coordinator that is re-elected in a later leader epoch keeps its group metadata, or loads the group again.
        Of several elections of other brokers one is enough: the broker resigns in the same way after each.
        """
        later = range(seat.known + 1, len(around.terms))
        own = [known for known in later if around.terms[known].leader == b]
        others = [known for known in later if around.terms[known].leader != b]
        for known in own:
            if seat.coordinating is CoordinatorState.ACTIVE:
                yield around, seat._replace(known=known), *operations
            after = Seat(CoordinatorState.LOADING, known)
            yield around, after, *_sent_away(b, seat, operations, Error.NOT_COORDINATOR)
        if others and seat.coordinating is not CoordinatorState.ELSEWHERE:
            after = Seat(CoordinatorState.ELSEWHERE, others[0])
            yield around, after, *_sent_away(b, seat, operations, Error.NOT_COORDINATOR)

    def stops(self, b: BrokerId, around: Around, seat: Seat, *operations: Operation) -> Outcomes:
        """Shutdown: a broker answers every parked JoinGroup and SyncGroup with COORDINATOR_NOT_AVAILABLE."""
        if b in around.leaving and seat.coordinating is not CoordinatorState.STOPPED:
            stopped = Seat(CoordinatorState.STOPPED, seat.known)
            yield around, stopped, *_sent_away(b, seat, operations, Error.COORDINATOR_NOT_AVAILABLE)

    def loads(self, around: Around, seat: Seat, stored: Stored) -> Outcomes:
        """A new coordinator has read the group from __consumer_offsets, and becomes active."""
        if seat.coordinating is CoordinatorState.LOADING:
            for memory in self.coordinator.load(stored, around.terms[seat.known].after_ms):
                yield around, Seat(CoordinatorState.ACTIVE, seat.known, memory), stored

    def expires(self, b: BrokerId, around: Around, seat: Seat, stored: Stored, *operations: Operation) -> Outcomes:
        """A session, join, sync or revocation timer of the coordinator expires."""
        if seat.memory is None:
            return
        for outcome in self.coordinator.expire(seat.memory, around.now_ms):
            written = stored_after(stored, outcome.memory) if _may_write(b, around) else stored
            released = _released(b, operations, outcome.released)
            yield around, seat._replace(memory=outcome.memory), written, *released

    def handles(
        self, b: BrokerId, operation: Operation, around: Around, seat: Seat, stored: Stored, *others: Operation
    ) -> Outcomes:
        """A broker handles a group request: as coordinator, or with an error if it is none or is still loading."""
        assert isinstance(operation, PendingGroupRequest)
        if operation.broker != b:
            return
        if seat.memory is None:
            yield GroupResponse(Plain(self.refusal(operation, seat.coordinating))), around, seat, stored, *others
            return
        for outcome in self.coordinator.handle(seat.memory, operation):
            yield from self.done(b, operation, around, seat, stored, others, outcome)

    def refusal(self, asked: PendingGroupRequest, coordinating: CoordinatorState) -> Error:
        """The error of a broker that is not the active coordinator. It depends on the request's API."""
        match asked.request:
            case Heartbeat():
                return heartbeat_refusal(coordinating)
            case SyncGroup():
                return sync_refusal(coordinating, new_coordinator=self.coordinator.parameters.new_coordinator)
            case _:
                return refusal(coordinating)

    def done(
        self,
        b: BrokerId,
        asked: PendingGroupRequest,
        around: Around,
        seat: Seat,
        stored: Stored,
        others: Operations,
        outcome: CoordinatorOutcome,
    ) -> Outcomes:
        """The response to a handled request.

        Where handling it appends to __consumer_offsets, that write may fail: another broker has been elected leader,
        or replication takes longer than offsets.commit.timeout.ms. The change may then be in memory all the same.
        """
        after = seat._replace(memory=outcome.memory)
        released = _released(b, others, outcome.released)
        written = stored_after(stored, outcome.memory)
        waits = ParkedGroupRequest(b, outcome.waiting, joins=not isinstance(asked.request, SyncGroup))
        reply = waits if outcome.reply is None else GroupResponse(outcome.reply)
        if written == stored or _may_write(b, around):
            yield reply, around, after, written, *released
        if written != stored:
            for error in self.write_errors(asked, around, seat):
                yield GroupResponse(Plain(error)), around, seat, stored, *others
                yield (
                    GroupResponse(Plain(error)),
                    around,
                    after,
                    written if _may_write(b, around) else stored,
                    *released,
                )

    def write_errors(self, asked: PendingGroupRequest, around: Around, seat: Seat) -> Iterator[Error]:
        """Errors that the coordinator may return because its write to __consumer_offsets failed."""
        if seat.known < len(around.terms) - 1:
            yield Error.NOT_COORDINATOR
        if around.now_ms - asked.at_ms >= self.coordinator.times.write_ms:
            yield Error.COORDINATOR_NOT_AVAILABLE


def _may_write(b: BrokerId, around: Around) -> bool:
    """Whether a broker's appends get replicated: only those of the latest elected leader do."""
    return around.terms[-1].leader == b


def _released(b: BrokerId, operations: Iterable[Operation], released: Iterable[tuple[MemberId, Answer]]) -> Operations:
    """The operations after parked JoinGroup and SyncGroup requests of these members were completed."""
    answers: dict[Operation, GroupResponse] = {
        ParkedGroupRequest(b, member, isinstance(answer, JoinAnswer)): GroupResponse(as_reply(answer))
        for member, answer in released
    }
    return tuple(answers.get(operation, operation) for operation in operations)


def _sent_away(b: BrokerId, seat: Seat, operations: Iterable[Operation], error: Error) -> Operations:
    """The operations after a former coordinator failed its parked requests (GroupCoordinator.onGroupUnloaded)."""
    memory = seat.memory or Memory()
    waiting = {ParkedGroupRequest(b, member, joins) for member, joins in waiting_members(memory.group)}
    return tuple(GroupResponse(Plain(error)) if operation in waiting else operation for operation in operations)
