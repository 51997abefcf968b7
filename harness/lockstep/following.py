"""The reference model's side of lockstep: it is told what is done to a cluster and what is seen of it, and follows.

It knows no cluster. Brokers have the model's numbers, from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.lockstep.belief import Belief
from harness.lockstep.explaining import Explanation, Occasions, explanations
from harness.lockstep.world import Answered, Asked, Places, Request, Surroundings, Waits, before_creation, replaced
from reference_model.cluster import Answered as Altered
from reference_model.cluster import Broker, Metadata, knowing, tidied
from reference_model.controller import Controller
from reference_model.machine import State
from reference_model.parameters import Mode, Parameters
from reference_model.registration import AlterPartition, BrokerId
from reference_model.replica import restart


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
    """A belief, and what is certain around it."""

    def __init__(self, parameters: Parameters, controller: Controller) -> None:
        self.parameters = parameters
        self.places = Places(len(controller.brokers))
        self.belief = Belief(parameters, before_creation(controller))
        self.around = Surroundings()
        self.occasions = Occasions()

    # What is done

    def surround(self, **changes: Any) -> None:
        """Something is certain from now on: who is cut off or paused, what time has passed."""
        around = self.around._replace(**changes)
        if around != self.around:
            self.around = around
            self.belief.change(lambda state: [replaced(state, {Places.SURROUNDINGS: around})])

    def kill(self, broker: BrokerId, *, clean: bool = False) -> None:
        """A broker's process has ended; cleanly, its high watermark is on its disk, otherwise any older one may be."""

        def ended(state: State) -> Iterator[State]:
            process: Broker = state[self.places.broker(broker)]
            metadata = knowing(state[Places.METADATA], broker, None)
            for stopped in _stopped(process, clean=clean):
                yield replaced(
                    state, {**self._unheard(broker), Places.METADATA: metadata, self.places.broker(broker): stopped}
                )

        self.belief.change(ended)

    def start(self, broker: BrokerId) -> None:
        """A broker's process runs again, and will learn of what the controller has decided so far, or of later."""

        def running(state: State) -> Iterator[State]:
            process: Broker = state[self.places.broker(broker)]
            metadata: Metadata = state[Places.METADATA]
            metadata = tidied(knowing(metadata, broker, len(metadata.log) - 1))
            parts = {Places.METADATA: metadata, self.places.broker(broker): process._replace(running=True)}
            yield replaced(state, {**parts, self.places.altering(broker): None})

        self.belief.change(running)

    def _unheard(self, broker: BrokerId) -> dict[int, Any]:
        """With a process ends what is on its way to it: fetches, and answers of others."""
        others = [other for other in self.places.brokers if other != broker]
        fetches = [self.places.fetching(other, broker) for other in others]
        answers = [self.places.fetching(broker, other) for other in others]
        return dict.fromkeys([*fetches, *answers])

    # What is seen

    def decide(self, seen: Controller) -> None:
        """The controller was seen to know this."""
        known: dict[Any, list[Explanation]] = {}

        def explained(state: State) -> Iterator[State]:
            metadata: Metadata = state[Places.METADATA]
            slots = (state[self.places.altering(broker)] for broker in self.places.brokers)
            asked = tuple(slot for slot in slots if isinstance(slot, AlterPartition))
            key = metadata.controller, asked
            if key not in known:
                known[key] = list(explanations(self.parameters, metadata.controller, seen, self.occasions, asked))
            for explanation in known[key]:
                yield self._after(state, explanation)

        self._expect(explained, f"the controller knows {words(seen)}", self._decisions)

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

    def _decisions(self) -> set[str]:
        """What the controller might have done instead, as far as one cause goes."""
        permitted = set()
        for state in self.belief.states:
            slots = (state[self.places.altering(broker)] for broker in self.places.brokers)
            permitted |= {
                f"{slot.broker} asks for the ISR {sorted(slot.isr)}"
                for slot in slots
                if isinstance(slot, AlterPartition)
            }
        silent = {f"the session of {broker} may end" for broker in self.occasions.silent}
        return permitted | silent | {str(wish) for wish in self.occasions.wishes}

    def ask(self, slot: int, broker: BrokerId, request: Request, reply: Any = None) -> None:
        """A client asks a broker; where the answer is known already, only what leads to it is of interest."""
        operation = Asked(broker, request, reply)
        self.belief.change(lambda state: [replaced(state, {self.places.operation(slot): operation})])

    def answer(self, slot: int, reply: Any) -> None:
        """The client has this answer."""
        place = self.places.operation(slot)

        def agrees(state: State) -> Iterable[State]:
            return [replaced(state, {place: None})] if state[place] == Answered(reply) else []

        self._expect(
            agrees,
            f"{reply}",
            lambda: {str(part.reply) for part in self.belief.parts(place) if isinstance(part, Answered)},
        )

    def forget(self, slot: int) -> None:
        """The client will never know: its connection broke. The request may have been handled, or may yet be."""
        place = self.places.operation(slot)

        def unknown(state: State) -> Iterable[State]:
            operation = state[place]
            given_up = [replaced(state, {place: None})]
            return given_up if operation is None or isinstance(operation, Answered | Waits) else [*given_up, state]

        self.belief.change(unknown)

    def _expect(self, effect: Callable[[State], Iterable[State]], seen: str, permitted: Callable[[], set[str]]) -> None:
        before = self.belief.states
        after = [later for state in before for later in effect(state)]
        if not after:
            raise Divergence(seen, tuple(sorted(permitted())), before)
        self.belief.replace(after)


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
