"""The model's side of groups: the belief of each group, updated with each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from lockstep.stepper.model.belief import Belief
from lockstep.stepper.model.client_requests import Reading
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import (
    BrokerEnded,
    CoordinatorElected,
    GroupAnswered,
    GroupAsked,
    GroupBegan,
    GroupUnanswered,
    ShutdownBegan,
    Started,
)
from lockstep.stepper.model.groups.description import GroupStateDescriber, in_words
from lockstep.stepper.model.groups.hidden_transitions import machine
from lockstep.stepper.model.groups.responses import GroupCoordinator
from lockstep.stepper.model.groups.state import (
    Around,
    GroupPlaces,
    GroupResponse,
    Operation,
    ParkedGroupRequest,
    PendingGroupRequest,
    Reply,
    Request,
    Seat,
    Term,
    before_anything,
    namings,
    placeholder,
    renamed,
)
from lockstep_model.coordinators import CoordinatorState
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.registration import BrokerId
from lockstep_model.state_machine import Outcomes, Part


class GroupTrackers:
    """All groups of a walk. They share one coordinator, the leader of one partition of __consumer_offsets."""

    def __init__(self, parameters: GroupParameters, ids: Sequence[int], reading: Reading) -> None:
        self._parameters = parameters
        self._reading = reading
        self._describer = GroupStateDescriber(ids)
        self._term = Term(leader=-1, epoch=-1, after_ms=0)
        self.trackers: dict[str, GroupBeliefTracker] = {}

    def beliefs(self) -> dict[str, int]:
        """Belief size of each group."""
        return {group: len(tracker.belief) for group, tracker in self.trackers.items()}

    def tell(
        self,
        event: GroupBegan
        | CoordinatorElected
        | ShutdownBegan
        | BrokerEnded
        | Started
        | GroupAsked
        | GroupAnswered
        | GroupUnanswered,
    ) -> None:
        """Apply an event to the groups that it concerns. Raises `Divergence` if no state explains it."""
        match event:
            case GroupBegan():
                coordinator = GroupCoordinator(self._parameters, event.times)
                self.trackers[event.group] = GroupBeliefTracker(coordinator, event.brokers, self._term, self._describer)
            case CoordinatorElected():
                self._term = Term(event.leader, event.epoch, event.after_ms)
                for group in self.trackers.values():
                    group.elect(self._term, event.before_ms)
            case ShutdownBegan():
                for group in self.trackers.values():
                    group.leave(event.broker)
            case BrokerEnded() | Started():
                for group in self.trackers.values():
                    group.restart(event.broker)
            case GroupAsked():
                request = self._reading(event.request.back())
                self.trackers[event.group].ask(event.slot, event.broker, request, event.at_ms)
            case GroupAnswered():
                self.trackers[event.group].answer(event.slot, event.reply.back(), event.at_ms)
            case GroupUnanswered():
                self.trackers[event.group].give_up(event.slot)


class GroupBeliefTracker:
    """The belief of one group."""

    def __init__(self, coordinator: GroupCoordinator, brokers: int, term: Term, describer: GroupStateDescriber) -> None:
        self._describer = describer
        self._places = GroupPlaces(brokers)
        self._asked = 0
        initial = before_anything(brokers, term)
        self.belief = Belief(machine(coordinator, initial, brokers))

    def elect(self, term: Term, before_ms: int) -> None:
        """The controller elected a leader of the group's partition. Brokers apply it later, as a hidden transition.

        The clock is advanced first: until the election the old coordinator may have expired a member, and the new one
        loads that from the log.
        """
        self._clock(before_ms)

        def elected(around: Around) -> Outcomes:
            yield (around._replace(terms=(*around.terms, term)),)

        self.belief.change((GroupPlaces.AROUND,), elected)

    def leave(self, broker: BrokerId) -> None:
        """A broker was asked to shut down."""

        def leaving(around: Around) -> Outcomes:
            yield (around._replace(leaving=around.leaving | {broker}),)

        self.belief.change((GroupPlaces.AROUND,), leaving)

    def restart(self, broker: BrokerId) -> None:
        """A broker process ended or started: its memory is empty, and it has applied no election yet."""

        def anew(around: Around, _: Seat) -> Outcomes:
            yield around._replace(leaving=around.leaving - {broker}), Seat(CoordinatorState.STOPPED)

        self.belief.change((GroupPlaces.AROUND, self._places.seat(broker)), anew)

    def ask(self, slot: int, broker: BrokerId, request: Request, at_ms: int) -> None:
        """A consumer sent a request to a broker."""
        self._asked += 1
        asked = PendingGroupRequest(broker, request, at_ms, placeholder(self._asked))
        self._clock(at_ms)
        self.belief.change((self._places.operation(slot),), lambda _: [(asked,)])

    def answer(self, slot: int, seen: Reply, at_ms: int) -> None:
        """A consumer received this response. It may disclose a member id that was a placeholder so far."""
        self._clock(at_ms)
        place = self._places.operation(slot)

        def agrees(*state: Part) -> Outcomes:
            operation = state[place]
            if isinstance(operation, GroupResponse):
                for names in namings(operation.reply, seen):
                    yield tuple(renamed(part, names) for part in (*state[:place], None, *state[place + 1 :]))

        if not self.belief.change(self._all, agrees):
            self._diverge(in_words(seen), {_expected(operation) for (operation,) in self.belief.parts(place)})

    def give_up(self, slot: int) -> None:
        """The connection broke: the request may or may not have been handled. A member that joined stays joined."""
        self.belief.change((self._places.operation(slot),), lambda _: [(None,)])

    @property
    def _all(self) -> tuple[int, ...]:
        return tuple(range(len(self.belief.states[0])))

    def _clock(self, now_ms: int) -> None:
        def later(around: Around) -> Outcomes:
            yield (around._replace(now_ms=now_ms),)

        self.belief.change((GroupPlaces.AROUND,), later)

    def _diverge(self, seen: str, permitted: set[str]) -> NoReturn:
        raise Divergence(seen, tuple(sorted(permitted - {""})), self.belief.states, self._describer)


def _expected(operation: Operation) -> str:
    match operation:
        case GroupResponse():
            return in_words(operation.reply)
        case ParkedGroupRequest():
            return "no answer yet"
        case _:
            return ""
