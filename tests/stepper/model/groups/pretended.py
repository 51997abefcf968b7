"""A coordinator that is one state of the model: it does at random what may happen unseen, and answers like Kafka."""

from __future__ import annotations

import random
from collections.abc import Iterator

from lockstep.stepper.driver.groups.consumers import Consumer
from lockstep.stepper.model.client_requests import as_asked
from lockstep.stepper.model.events import (
    CoordinatorElected,
    GroupAnswered,
    GroupAsked,
    GroupBegan,
    Named,
)
from lockstep.stepper.model.groups.hidden_transitions import machine
from lockstep.stepper.model.groups.responses import GroupCoordinator
from lockstep.stepper.model.groups.state import (
    OPERATIONS,
    GroupPlaces,
    GroupResponse,
    PendingGroupRequest,
    Reply,
    Request,
    Term,
    Times,
    before_anything,
)
from lockstep.stepper.model.groups.tracker import GroupTrackers
from lockstep.stepper.model.state import replaced
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.state_machine import State

BROKERS = 3
TIMES = Times(session_ms=6000, rebalance_ms=5000, initial_ms=0, consumer_session_ms=6000, write_ms=5000)
GROUP = "classic"


class PretendedGroup:
    """What is really the case, and who follows it."""

    def __init__(self, parameters: GroupParameters, believed: GroupParameters, *, seed: int = 0) -> None:
        self.draw = random.Random(seed)
        self.places = GroupPlaces(BROKERS)
        self.coordinator = 0
        self.now_ms = 0
        self._epoch = 0
        self._asked = 0
        self._asking: dict[int, tuple[Consumer, Request]] = {}
        self.state: State = before_anything(BROKERS, Term(0, 0, 0))
        self.machine = machine(GroupCoordinator(parameters, TIMES), self.state, BROKERS)
        self.groups = GroupTrackers(believed, (), as_asked)
        self.groups.tell(CoordinatorElected(leader=0, epoch=0, after_ms=0, before_ms=0))
        self.groups.tell(GroupBegan(group=GROUP, brokers=BROKERS, times=TIMES))
        self.happen(20)

    @property
    def belief(self) -> int:
        return len(self.groups.trackers[GROUP].belief)

    def ask(self, request: Request, broker: int | None = None, consumer: Consumer | None = None) -> Reply | None:
        """Send a request, and return the answer if it comes soon; those of others may come with it."""
        slot = next(slot for slot in range(OPERATIONS) if self.state[self.places.operation(slot)] is None)
        self._asked += 1
        number = self.coordinator if broker is None else broker
        asked = PendingGroupRequest(number, request, self.now_ms, f"member-{self._asked}")
        self._put({self.places.operation(slot): asked})
        if consumer is not None:
            self._asking[slot] = consumer, request
            consumer.open.add(slot)
        event = GroupAsked(group=GROUP, slot=slot, broker=number, request=Named.of(request), at_ms=self.now_ms)
        self.groups.tell(event)
        self.happen(60)
        return dict(self.answers()).get(slot)

    def answers(self) -> Iterator[tuple[int, Reply]]:
        """Tell all answers that are there."""
        for slot, place in enumerate(self.places.operations):
            operation = self.state[place]
            if isinstance(operation, GroupResponse):
                self._put({place: None})
                reply = operation.reply
                self.groups.tell(GroupAnswered(group=GROUP, slot=slot, reply=Named.of(reply), at_ms=self.now_ms))
                if slot in self._asking:
                    consumer, request = self._asking.pop(slot)
                    consumer.open.discard(slot)
                    consumer.learn(request, reply)
                yield slot, reply

    def happen(self, most: int) -> None:
        """Some things happen unseen."""
        for _ in range(most):
            enabled = [state for _, state in self.machine.enabled(self.state) if state != self.state]
            if not enabled:
                return
            self.state = self.draw.choice(enabled)

    def wait(self, ms: int) -> None:
        """Time passes, and timers may run out."""
        self.now_ms += ms
        self._put({GroupPlaces.AROUND: self.state[GroupPlaces.AROUND]._replace(now_ms=self.now_ms)})

    def elect(self, broker: int) -> None:
        """Another broker leads the group's partition; who coordinated may not have heard of it yet."""
        self._epoch += 1
        self.coordinator = broker
        around = self.state[GroupPlaces.AROUND]
        term = Term(broker, self._epoch, self.now_ms)
        self._put({GroupPlaces.AROUND: around._replace(terms=(*around.terms, term))})
        now = self.now_ms
        self.groups.tell(CoordinatorElected(leader=broker, epoch=self._epoch, after_ms=now, before_ms=now))

    def _put(self, parts: dict[int, object]) -> None:
        self.state = replaced(self.state, parts)
