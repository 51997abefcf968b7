"""The reference model's side of lockstep: it is told what is done to a cluster and what is seen of it, and follows.

It knows no cluster. Brokers have the model's numbers, from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.lockstep.belief import Belief
from harness.lockstep.events import Answered as AnsweredLate
from harness.lockstep.events import Began, Decided, Ended, Events, Exchanged, GaveUp, Started, Surrounded
from harness.lockstep.explaining import Explanation, Occasions, explanations
from harness.lockstep.handling import Reading, as_asked, handle
from harness.lockstep.world import Answered, Asked, Places, Surroundings, before_creation, replaced
from reference_model.cluster import Answered as Altered
from reference_model.cluster import Broker, Metadata, knowing, tidied
from reference_model.controller import Controller
from reference_model.machine import State
from reference_model.parameters import Mode, Parameters
from reference_model.registration import AlterPartition, BrokerId, Registration
from reference_model.replica import restart

NO_PARTITION = Registration(replicas=(), isr=frozenset())


class Divergence(Exception):
    """No state of the model explains what was seen."""

    def __init__(self, seen: str, permitted: tuple[str, ...], before: list[State]) -> None:
        super().__init__(seen)
        self.seen = seen
        self.permitted = permitted
        """What would have been explained, in words."""
        self.before = before
        """The belief just before."""


class Following:
    """A belief, and how it changes with what the model is told."""

    def __init__(self, parameters: Parameters, began: Began, *, reading: Reading = as_asked) -> None:
        self.parameters = parameters
        self._reading = reading
        self.places = Places(len(began.controller.brokers))
        nothing = began.controller.with_partition(NO_PARTITION)
        self.belief = Belief(parameters, before_creation(nothing))
        creation = Occasions(assignment=began.controller.partition.replicas)
        self._decide(began.controller, creation)

    def tell(self, event: Events) -> None:
        """Something was done or seen; raises `Divergence` if it cannot be explained."""
        match event:
            case Surrounded():
                self._surround(event.surroundings)
            case Ended():
                self._end(event.broker, clean=event.clean)
            case Started():
                self._start(event.broker)
            case Decided():
                self._decide(event.controller, event.occasions)
            case Exchanged():
                self._ask(event)
            case AnsweredLate():
                self._answer(event.slot, event.reply.back())
            case GaveUp():
                self._give_up(event.slot)
            case Began():
                raise TypeError("a partition is created once")

    # What is done

    def _surround(self, surroundings: Surroundings) -> None:
        """Something is certain from now on: who is cut off or paused, what time has passed."""
        self.belief.change(lambda state: [replaced(state, {Places.SURROUNDINGS: surroundings})])

    def _end(self, broker: BrokerId, *, clean: bool) -> None:
        """A broker's process has ended; cleanly, its high watermark is on its disk, otherwise any older one may be."""

        def ended(state: State) -> Iterator[State]:
            process: Broker = state[self.places.broker(broker)]
            metadata = knowing(state[Places.METADATA], broker, None)
            for stopped in _stopped(process, clean=clean):
                yield replaced(
                    state,
                    {**unheard(self.places, broker), Places.METADATA: metadata, self.places.broker(broker): stopped},
                )

        self.belief.change(ended)

    def _start(self, broker: BrokerId) -> None:
        """A broker's process runs again, and will learn of what the controller has decided so far, or of later."""

        def running(state: State) -> Iterator[State]:
            process: Broker = state[self.places.broker(broker)]
            metadata: Metadata = state[Places.METADATA]
            metadata = tidied(knowing(metadata, broker, len(metadata.log) - 1))
            parts = {Places.METADATA: metadata, self.places.broker(broker): process._replace(running=True)}
            yield replaced(state, {**parts, self.places.altering(broker): None})

        self.belief.change(running)

    # What is seen

    def _decide(self, seen: Controller, occasions: Occasions) -> None:
        """The controller was seen to know this."""
        known: dict[Any, list[Explanation]] = {}

        def explained(state: State) -> Iterator[State]:
            controller, asked = state[Places.METADATA].controller, self._asked(state)
            if (controller, asked) not in known:
                known[controller, asked] = list(explanations(self.parameters, controller, seen, occasions, asked))
            for explanation in known[controller, asked]:
                yield self._after(state, explanation)

        self._expect(explained, f"the controller knows {words(seen)}", lambda: self._decisions(occasions))

    def _asked(self, state: State) -> tuple[AlterPartition, ...]:
        slots = (state[self.places.altering(broker)] for broker in self.places.brokers)
        return tuple(slot for slot in slots if isinstance(slot, AlterPartition))

    def _after(self, state: State, explanation: Explanation) -> State:
        """A state in which the controller did this: leaders are answered, and brokers may learn of it."""
        metadata: Metadata = state[Places.METADATA]
        seen = explanation.controllers[1:] if self.parameters.mode is Mode.ZK else explanation.controllers[-1:]
        news = [controller for controller in seen if controller != metadata.controller]
        parts: dict[int, Any] = {Places.METADATA: tidied(metadata._replace(log=(*metadata.log, *news)))}
        for cause, after in zip(explanation.causes, explanation.controllers[1:], strict=True):
            if cause.granted is not None:
                parts[self.places.altering(cause.granted.broker)] = Altered(cause.granted, after.partition)
            if cause.registered is not None:
                place = self.places.broker(cause.registered)
                parts[place] = _registered(state[place], after)
        return replaced(state, parts)

    def _decisions(self, occasions: Occasions) -> set[str]:
        """What may have moved the controller otherwise."""
        asked = {request for state in self.belief.states for request in self._asked(state)}
        isrs = {f"{request.broker} asks for the ISR {sorted(request.isr)}" for request in asked}
        silent = {f"the session of {broker} ends" for broker in occasions.silent}
        leaving = {f"{broker} leaves" for broker in occasions.leaving}
        return isrs | silent | leaving

    def _ask(self, exchanged: Exchanged) -> None:
        """A client asks a broker; where the answer is known already, only what leads to it is of interest."""
        request = self._reading(exchanged.request.back())
        reply = None if exchanged.reply is None else exchanged.reply.back()
        operation = Asked(exchanged.broker, request, reply)
        self.belief.change(lambda state: [replaced(state, {self.places.operation(exchanged.slot): operation})])

    def _answer(self, slot: int, reply: Any) -> None:
        """The client has this answer."""
        place = self.places.operation(slot)

        def agrees(state: State) -> Iterable[State]:
            return [replaced(state, {place: None})] if state[place] == Answered(reply) else []

        self._expect(agrees, f"{reply}", lambda: self._replies(place))

    def _replies(self, place: int) -> set[str]:
        """What else might be answered to a request, by anyone who explains what was seen before it."""
        permitted = set()
        for state in self.belief.states:
            operation = state[place]
            if isinstance(operation, Asked):
                replica = state[self.places.broker(operation.broker)].replica
                permitted |= {
                    str(after.reply if isinstance(after, Answered) else after.waiting)
                    for _, after in handle(self.parameters, replica, operation._replace(reply=None))
                }
            elif operation is not None:
                permitted.add(str(operation))
        return permitted

    def _give_up(self, slot: int) -> None:
        """The client will never know: its connection broke. The request may have been handled, or may yet be."""
        place = self.places.operation(slot)

        def unknown(state: State) -> Iterable[State]:
            given_up = [replaced(state, {place: None})]
            return [*given_up, state] if isinstance(state[place], Asked) else given_up

        self.belief.change(unknown)

    def _expect(self, effect: Callable[[State], Iterable[State]], seen: str, permitted: Callable[[], set[str]]) -> None:
        before = self.belief.states
        after = [later for state in before for later in effect(state)]
        if not after:
            raise Divergence(seen, tuple(sorted(permitted())), before)
        self.belief.replace(after)


def unheard(places: Places, broker: BrokerId) -> dict[int, None]:
    """With a process ends what is on its way to it: fetches, and answers of others."""
    others = [other for other in places.brokers if other != broker]
    fetches = [places.fetching(other, broker) for other in others]
    answers = [places.fetching(broker, other) for other in others]
    return dict.fromkeys([*fetches, *answers])


def _stopped(process: Broker, *, clean: bool) -> Iterator[Broker]:
    replica = process.replica
    lowest = replica.high_watermark if clean else replica.log.start
    for high_watermark in range(lowest, replica.high_watermark + 1):
        after = restart(replica, replica.broker_epoch, end=replica.log.end, high_watermark=high_watermark)
        yield Broker(after, running=False, clean=clean)


def _registered(process: Broker, controller: Controller) -> Broker:
    registration = controller.broker(process.replica.broker)
    assert registration is not None
    return process._replace(replica=process.replica._replace(broker_epoch=registration.epoch))


def words(controller: Controller) -> str:
    """What a controller knows, for people."""
    partition = controller.partition
    gone = [broker for broker, registration in controller.brokers if registration.fenced]
    return (
        f"leader {partition.leader} in epoch {partition.leader_epoch}, ISR {sorted(partition.isr)}, "
        f"partition epoch {partition.partition_epoch}"
        + (f", ELR {sorted(partition.elr)}" if partition.elr else "")
        + (f", gone {gone}" if gone else "")
    )
