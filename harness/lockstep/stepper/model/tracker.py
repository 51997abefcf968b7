"""The reference model's side of lockstep: it is told what is done to a cluster and what is seen of it, and follows.

It knows no cluster. Brokers have the model's numbers, from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, combinations, pairwise
from typing import Any, NoReturn

from lockstep.stepper.groups.tracker import Groups
from lockstep.stepper.model.belief import Belief
from lockstep.stepper.model.canonical import history, renewed, renewed_request
from lockstep.stepper.model.client_requests import Handled, Reading, Told, as_asked, handle, in_words
from lockstep.stepper.model.controller_inference import (
    Cause,
    Explained,
    Explanation,
    Occasions,
    explanations,
    in_common,
)
from lockstep.stepper.model.description import Wording, disk_in_words
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import Answered as AnsweredLate
from lockstep.stepper.model.events import (
    Began,
    Configured,
    CoordinatorElected,
    Decided,
    Ended,
    Events,
    Exchanged,
    Found,
    GaveUp,
    GroupAnswered,
    GroupAsked,
    GroupBegan,
    GroupUnanswered,
    Identified,
    Leaves,
    MetadataTold,
    Sent,
    Started,
    Surrounded,
)
from lockstep.stepper.model.hidden_transitions import machine
from lockstep.stepper.model.metadata_responses import Telling
from lockstep.stepper.model.state import (
    Answered,
    Asked,
    Operation,
    Places,
    Surroundings,
    Transactions,
    Waits,
    before_creation,
)
from lockstep.stepper.model.transactions import sent_again
from lockstep_model.controller import Controller
from lockstep_model.metadata import Described
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.in_sync import lag_passes, shrink
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.replica import restart
from lockstep_model.registration import AlterPartition, BrokerId, Brokers, Registration
from lockstep_model.replication.state import Altering, Broker, Fetching, Metadata, knowing
from lockstep_model.replication.state import Answered as Altered
from lockstep_model.state_machine import Outcomes, Part
from lockstep_model.transactions.coordinator import InitProducerId, Producer, init_producer_id

NO_PARTITION = Registration(replicas=(), isr=frozenset())


class Following:
    """A belief, and how it changes with what the model is told."""

    def __init__(self, parameters: Parameters, began: Began, *, reading: Reading = as_asked) -> None:
        self.parameters = parameters
        self._possible: tuple[Parameters, ...] = (parameters,)
        """What each may go by while a setting changes; the last of them is what was set last."""
        self._reading = reading
        self.wording = Wording(began.ids)
        self.explained: list[Explained] = []
        """Why the controller decided what it did, one for each of its decisions, those that were not seen included."""
        self._starting: set[BrokerId] = set()
        """Whose process has been started."""
        self.places = Places(len(began.controller.brokers))
        nothing = began.controller.with_partition(NO_PARTITION)
        self._nothing = before_creation(nothing)
        self.belief = Belief(machine(self._nothing, parameters))
        self.telling = Telling(parameters, began.controller)
        self.groups = Groups(parameters.groups, began.ids, reading)
        creation = Occasions(assignment=began.controller.partition.replicas)
        self._decide(began.controller, creation)

    def tell(self, event: Events) -> None:
        """Something was done or seen; raises `Divergence` if it cannot be explained."""
        match event:
            case Surrounded():
                self._surround(event.surroundings)
            case Ended():
                self._end(event)
                self.groups.tell(event)
            case Found():
                self._find(event)
            case Started():
                self._start(event.broker)
                self.telling.started(event.broker)
                self.groups.tell(event)
            case Decided():
                self._decide(event.controller, event.occasions)
                self.telling.decided(event.controller)
            case Configured():
                self._configure(event.min_isr)
            case MetadataTold():
                self._describe(event.broker, event.told)
            case Exchanged():
                self._exchange(event)
            case Sent():
                self._ask(event)
            case AnsweredLate():
                self._answer(event.slot, event.reply.back())
            case GaveUp():
                self._give_up(event.slot)
            case Identified():
                self._identify(event.producer)
            case Began():
                raise TypeError("a partition is created once")
            case GroupBegan() | CoordinatorElected() | Leaves() | GroupAsked() | GroupAnswered() | GroupUnanswered():
                self.groups.tell(event)

    # What is done

    def _surround(self, surroundings: Surroundings) -> None:
        """Something is certain from now on: who is cut off or paused, what time has passed."""

        def surrounded(before: Surroundings, metadata: Metadata, transactions: Transactions) -> Outcomes:
            hit = surroundings.disturbances > before.disturbances
            after = transactions.disturbed() if hit else transactions
            reloads = surroundings.reloads - before.reloads
            told = after.told_to_reload(reloads, metadata.controller.partition.leader_epoch)
            after = told.settled() if surroundings.steady else sent_again(self.parameters, told)
            return [(surroundings, metadata, after)]

        self.belief.change((Places.SURROUNDINGS, Places.METADATA, self.places.transactions), surrounded)

    def _end(self, event: Ended) -> None:
        """A broker's process has ended; cleanly, its high watermark is on its disk, otherwise any older one may be.

        With it ends what was on its way to it: fetches, and answers of others.
        """
        broker = event.broker
        self._starting.discard(broker)
        silenced = unheard(self.places, broker)

        def ended(metadata: Metadata, process: Broker, *_: Fetching) -> Outcomes:
            for stopped in _stopped(process, event):
                yield knowing(metadata, broker, None), stopped, *(None for _ in silenced)

        self.belief.change((Places.METADATA, self.places.broker(broker), *silenced), ended)

    def _start(self, broker: BrokerId) -> None:
        """A broker's process runs again: it does nothing before it has registered, which is seen (`_registered`)."""
        self.belief.change((self.places.altering(broker),), lambda _: [(None,)])
        self._starting.add(broker)

    def _identify(self, producer: Producer) -> None:
        """There is a transactional id now; nobody asked about it before."""
        known, _ = init_producer_id(None, InitProducerId(), self.parameters, fresh=producer.id)
        self.belief.change((self.places.transactions,), lambda _: [(Transactions(known),)])

    def _configure(self, min_isr: tuple[int, ...]) -> None:
        """A setting changes: everybody may have heard of it or not, each by himself, until all are known to have."""
        self._possible = tuple(replace(self.parameters, min_isr=value) for value in min_isr)
        self.parameters = self._possible[-1]
        self.belief.go_on_with(machine(self._nothing, *self._possible))

    # What is seen

    def _decide(self, seen: Controller, occasions: Occasions) -> None:
        """The controller was seen to know this."""
        if not self._go_on(seen, occasions):
            self._diverge(f"the controller knows {self.wording.controller(seen)}", self._decisions(occasions))

    def _go_on(self, seen: Controller, occasions: Occasions) -> bool:
        """The controller goes on to what was seen; returns whether it may have."""
        brokers = self.places.brokers
        found: set[Explanation] = set()

        def explained(around: Surroundings, metadata: Metadata, *parts: Any) -> Outcomes:
            before = parts[: len(brokers)], parts[len(brokers) :]
            gone = metadata.controller.partition.isr - seen.partition.isr
            for processes, altering in [before, *self._shrinking(around, gone, *before)]:
                asked = tuple(slot for slot in altering if isinstance(slot, AlterPartition))
                for parameters in self._possible:
                    for way in explanations(parameters, metadata.controller, seen, occasions, asked):
                        found.add(way)
                        yield around, *self._after(metadata, processes, list(altering), way, seen)

        reads = (*map(self.places.broker, brokers), *map(self.places.altering, brokers))
        went_on = self.belief.change((Places.SURROUNDINGS, Places.METADATA, *reads), explained)
        if went_on:
            self.explained.append(in_common(found))
        return went_on

    def _shrinking(
        self, around: Surroundings, gone: Brokers, processes: tuple[Broker, ...], altering: tuple[Altering, ...]
    ) -> Iterator[tuple[tuple[Broker, ...], tuple[Altering, ...]]]:
        """A leader may have asked for an ISR without those that lag, as it does every half of the lag time."""
        for leader, process in enumerate(processes):
            if process.running and leader not in around.paused and altering[leader] is None:
                late = sorted(follower for follower in gone if (leader, follower) in around.late)
                for lagging in _some_of(late):
                    replica = reduce(lag_passes, lagging, process.replica)
                    asking = shrink(self.parameters, replica)
                    if asking != replica and asking.leadership is not None:
                        asked = asking.leadership.pending
                        yield (
                            (*processes[:leader], process._replace(replica=asking), *processes[leader + 1 :]),
                            (*altering[:leader], asked, *altering[leader + 1 :]),
                        )

    def _after(
        self,
        metadata: Metadata,
        processes: Iterable[Broker],
        altering: list[Altering],
        way: Explanation,
        registered: Controller,
    ) -> tuple[Part, ...]:
        """What stands where the controller went this way: leaders are answered, and brokers may learn of it."""
        told = [after for before, after in pairwise(way.controllers) if before.partition != after.partition]
        seen = [*told[:-1], way.controllers[-1]] if self.parameters.mode is Mode.ZK else way.controllers[-1:]
        news = [controller for controller in seen if controller != metadata.controller]
        for cause, after in zip(way.causes, way.controllers[1:], strict=True):
            if cause.granted is not None:
                asked = altering[cause.granted.broker]
                assert isinstance(asked, AlterPartition)
                altering[cause.granted.broker] = Altered(asked, after.partition)
        metadata = metadata._replace(log=(*metadata.log, *news))
        for cause, after in zip(way.causes, way.controllers[1:], strict=True):
            for broker in self._heard_of(cause, after, registered):
                if metadata.known[broker] is None:
                    metadata = knowing(metadata, broker, self._told_first(metadata, after))
        known = [self._registered(process, registered) for process in processes]
        sent = (renewed_request(slot, process.replica) for slot, process in zip(altering, known, strict=True))
        return history(self.parameters, metadata, known), *known, *sent

    def _heard_of(self, cause: Cause, after: Controller, registered: Controller) -> Iterator[BrokerId]:
        """Whom a controller tells of the partition from then on.

        Who registers and, in ZooKeeper mode, all that are there when it takes over (onControllerFailover).
        """
        if cause.registered is not None:
            yield cause.registered
        elif self.parameters.mode is Mode.ZK:
            for broker, known in after.brokers:
                now = registered.broker(broker)
                if broker in self._starting and not known.fenced and now is not None and now.epoch == known.epoch:
                    yield broker

    def _told_first(self, metadata: Metadata, registered: Controller) -> int:
        """Where what a new broker is told begins: in ZooKeeper mode with what stood when it registered."""
        if self.parameters.mode is Mode.KRAFT:
            return len(metadata.log) - 1
        return metadata.log.index(registered) if registered in metadata.log else 0

    def _registered(self, process: Broker, seen: Controller) -> Broker:
        """A broker knows its epoch; one that has just started will learn of what was decided up to that, or later.

        BrokerServer.startup installs its publishers when it has caught up with its own registration. In ZooKeeper mode
        a broker serves when it has its znode, whether the controller has noticed that or not.
        """
        broker = process.replica.broker
        registration = seen.broker(broker)
        if registration is None or registration.epoch == process.replica.broker_epoch:
            return process
        process = process._replace(replica=renewed(process.replica._replace(broker_epoch=registration.epoch)))
        return process._replace(running=True) if broker in self._starting else process

    def _decisions(self, occasions: Occasions) -> set[str]:
        """What may have moved the controller otherwise."""
        slots = {
            slot for (slot,) in (one for b in self.places.brokers for one in self.belief.parts(self.places.altering(b)))
        }
        name, names = self.wording.broker, self.wording.brokers
        asked = [slot for slot in slots if isinstance(slot, AlterPartition)]
        isrs = {f"{name(slot.broker)} asks for the ISR {names(slot.isr)}" for slot in asked}
        silent = {f"the session of {name(broker)} ends" for broker in occasions.silent}
        leaving = {f"{name(broker)} leaves" for broker in occasions.leaving}
        return isrs | silent | leaving

    def _find(self, found: Found) -> None:
        """What is on a disk tells how far its broker had come."""
        place = self.places.broker(found.broker)

        def agrees(process: Broker) -> Outcomes:
            return [(process,)] if on_disk(process) == (found.start, found.records, found.high_watermark) else []

        if not self.belief.change((place,), agrees):
            permitted = {disk_in_words(*on_disk(process)) for (process,) in self.belief.parts(place)}
            self._diverge(disk_in_words(found.start, found.records, found.high_watermark), permitted)

    def _exchange(self, event: Exchanged) -> None:
        """A client asks a broker, and has the answer before anything else is seen."""
        asked = Asked(event.broker, self._reading(event.request.back()), event.reply.back())

        def handled(asked: Asked, process: Broker) -> Outcomes:
            for replica, after in self._handled(process, asked):
                if isinstance(after, Asked | Answered):
                    yield (process._replace(replica=replica),)

        place = (self.places.broker(event.broker),)
        if isinstance(asked.reply, Told) and self.belief.change(place, partial(handled, asked)):
            asked = asked._replace(begun=True)  # it has looked at its offsets, and reads after that
        if not self.belief.change(place, partial(handled, asked)):
            self._diverge(in_words(asked.reply), self._replies(asked))

    def _ask(self, event: Sent) -> None:
        """A client asks a broker; where the answer is known already, only what leads to it is of interest."""
        reply = None if event.reply is None else event.reply.back()
        asked = Asked(event.broker, self._reading(event.request.back()), reply)
        self.belief.change((self.places.operation(event.slot),), lambda _: [(asked,)])

    def _answer(self, slot: int, reply: Any) -> None:
        """The client has this answer."""
        place = self.places.operation(slot)

        def agrees(operation: Operation) -> Outcomes:
            return [(None,)] if operation == Answered(reply) else []

        if not self.belief.change((place,), agrees):
            operations = self.belief.would_be((place,), _whatever_is_answered, place)
            answers = {in_words(operation.reply) for operation in operations if isinstance(operation, Answered)}
            waits = {"no answer yet"} if any(isinstance(operation, Waits) for operation in operations) else set()
            self._diverge(in_words(reply), answers | waits)

    def _replies(self, asked: Asked) -> set[str]:
        """What might be answered to a request, by anyone who explains what was seen before it."""
        processes = self.belief.parts(self.places.broker(asked.broker))
        return {
            in_words(after.reply) if isinstance(after, Answered) else "no answer yet"
            for (process,) in processes
            for _, after in self._handled(process, asked._replace(reply=None))
        }

    def _handled(self, process: Broker, asked: Asked) -> Iterator[Handled]:
        """What may become of a request to a broker."""
        if process.running:
            for parameters in self._possible:
                yield from handle(parameters, process.replica, asked)

    def _describe(self, broker: BrokerId, told: Described) -> None:
        """A client was told of the partition and of who is there."""
        epochs = [process.replica.leader_epoch for (process,) in self.belief.parts(self.places.broker(broker))]
        self.telling.leads_or_follows(broker, min(epochs))
        if not self.telling.tells(broker, told):
            permitted = map(self.wording.described, self.telling.permitted(broker))
            self._diverge(self.wording.described(told), set(permitted))

    def _give_up(self, slot: int) -> None:
        """The client will never know: its connection broke. The request may have been handled, or may yet be."""

        def unknown(operation: Operation) -> Outcomes:
            return [(None,), (operation,)] if isinstance(operation, Asked) else [(None,)]

        self.belief.change((self.places.operation(slot),), unknown)

    def _diverge(self, seen: str, permitted: set[str]) -> NoReturn:
        raise Divergence(seen, tuple(sorted(permitted)), self.belief.states, self.wording)


def _whatever_is_answered(operation: Operation) -> Outcomes:
    """A request of which nobody knows how it is answered."""
    return [(operation if operation is None or isinstance(operation, Answered) else operation._replace(reply=None),)]


def unheard(places: Places, broker: BrokerId) -> tuple[int, ...]:
    """Where there is what only a broker's process would hear of."""
    others = [other for other in places.brokers if other != broker]
    fetches = [places.fetching(other, broker) for other in others]
    answers = [places.fetching(broker, other) for other in others]
    return *fetches, *answers


def _stopped(process: Broker, event: Ended) -> Iterator[Broker]:
    """What may be left of a broker without its process."""
    replica, log = process.replica, process.replica.log
    lowest = replica.high_watermark if event.clean else log.start
    for end in range(log.start if event.cut else log.end, log.end + 1):
        for high_watermark in range(min(lowest, end), min(replica.high_watermark, end) + 1):
            after = restart(replica, replica.broker_epoch, end=end, high_watermark=high_watermark)
            yield Broker(after, running=False, clean=event.clean)


def _some_of(brokers: Sequence[BrokerId]) -> Iterator[tuple[BrokerId, ...]]:
    return chain.from_iterable(combinations(brokers, size) for size in range(1, len(brokers) + 1))


def on_disk(process: Broker) -> tuple[Offset, tuple[tuple[Epoch, int], ...], Offset]:
    """Where a log starts, its records and the high watermark with which its broker will start."""
    log = process.replica.log
    return log.start, tuple((record.epoch, record.value) for record in log.records), process.replica.high_watermark
