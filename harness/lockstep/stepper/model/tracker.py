"""Tracker: applies the events of a cluster to the belief, and raises `Divergence` when no state explains one.

An event is an action of the harness (a broker is killed, a request is sent) or an observation (a response, a controller
decision, a log on disk). The tracker never talks to a cluster. Brokers have the model's numbers, from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, combinations, pairwise
from typing import Any, NoReturn

from lockstep.stepper.model.belief import Belief
from lockstep.stepper.model.canonical import history, renewed, renewed_request
from lockstep.stepper.model.client_requests import FetchResponse, Handled, Reading, as_asked, handle, in_words
from lockstep.stepper.model.controller_inference import (
    Cause,
    Explained,
    Explanation,
    Occasions,
    explanations,
    in_common,
)
from lockstep.stepper.model.description import StateDescriber, disk_in_words
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import (
    Began,
    BrokerEnded,
    Configured,
    CoordinatorElected,
    Decided,
    Events,
    Exchanged,
    Found,
    GaveUp,
    GroupAnswered,
    GroupAsked,
    GroupBegan,
    GroupUnanswered,
    Identified,
    MetadataTold,
    RequestSent,
    ResponseArrived,
    ShutdownBegan,
    Started,
    Surrounded,
)
from lockstep.stepper.model.groups.tracker import GroupTrackers
from lockstep.stepper.model.hidden_transitions import machine
from lockstep.stepper.model.metadata_responses import MetadataCaches
from lockstep.stepper.model.state import (
    DelayedResponse,
    Operation,
    PartitionPlaces,
    PendingRequest,
    Response,
    Surroundings,
    TransactionalState,
    before_creation,
)
from lockstep.stepper.model.transactions import sent_again
from lockstep_model.controller import Controller
from lockstep_model.metadata import PartitionMetadataResponse
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.in_sync import lag_passes, shrink
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.replica import restart
from lockstep_model.registration import AlterPartition, BrokerId, Brokers, Registration
from lockstep_model.replication.state import (
    AlterPartitionResponse,
    Broker,
    InFlightAlterPartition,
    InFlightFetch,
    Metadata,
    knowing,
)
from lockstep_model.state_machine import Outcomes, Part
from lockstep_model.transactions.coordinator import InitProducerId, Producer, init_producer_id

NO_PARTITION = Registration(replicas=(), isr=frozenset())


class BeliefTracker:
    """The belief about one partition, and its update for each kind of event."""

    def __init__(self, parameters: Parameters, began: Began, *, reading: Reading = as_asked) -> None:
        self.parameters = parameters
        self._possible: tuple[Parameters, ...] = (parameters,)
        """The settings that a broker may apply while min.insync.replicas changes; the last is the one set last."""
        self._reading = reading
        self.describer = StateDescriber(began.ids)
        self.explained: list[Explained] = []
        """The causes of each controller decision, in order, including decisions that were never observed."""
        self._starting: set[BrokerId] = set()
        """Brokers whose process the harness has started."""
        self.places = PartitionPlaces(len(began.controller.brokers))
        nothing = began.controller.with_partition(NO_PARTITION)
        self._nothing = before_creation(nothing)
        self.belief = Belief(machine(self._nothing, parameters))
        self.metadata_caches = MetadataCaches(parameters, began.controller)
        self.groups = GroupTrackers(parameters.groups, began.ids, reading)
        creation = Occasions(assignment=began.controller.partition.replicas)
        self._decide(began.controller, creation)

    def tell(self, event: Events) -> None:
        """Apply one event; raises `Divergence` if no state of the belief explains it."""
        match event:
            case Surrounded():
                self._surround(event.surroundings)
            case BrokerEnded():
                self._end(event)
                self.groups.tell(event)
            case Found():
                self._find(event)
            case Started():
                self._start(event.broker)
                self.metadata_caches.started(event.broker)
                self.groups.tell(event)
            case Decided():
                self._decide(event.controller, event.occasions)
                self.metadata_caches.decided(event.controller)
            case Configured():
                self._configure(event.min_isr)
            case MetadataTold():
                self._describe(event.broker, event.told)
            case Exchanged():
                self._exchange(event)
            case RequestSent():
                self._ask(event)
            case ResponseArrived():
                self._answer(event.slot, event.reply.back())
            case GaveUp():
                self._give_up(event.slot)
            case Identified():
                self._identify(event.producer)
            case Began():
                raise TypeError("a partition is created once")
            case (
                GroupBegan()
                | CoordinatorElected()
                | ShutdownBegan()
                | GroupAsked()
                | GroupAnswered()
                | GroupUnanswered()
            ):
                self.groups.tell(event)

    # Actions of the harness

    def _surround(self, surroundings: Surroundings) -> None:
        """Replace the surroundings: links that are cut, brokers that are paused, timeouts that may have passed."""

        def surrounded(before: Surroundings, metadata: Metadata, transactions: TransactionalState) -> Outcomes:
            hit = surroundings.disturbances > before.disturbances
            after = transactions.disturbed() if hit else transactions
            reloads = surroundings.reloads - before.reloads
            told = after.told_to_reload(reloads, metadata.controller.partition.leader_epoch)
            after = told.settled() if surroundings.steady else sent_again(self.parameters, told)
            return [(surroundings, metadata, after)]

        self.belief.change(
            (PartitionPlaces.SURROUNDINGS, PartitionPlaces.METADATA, self.places.transactions), surrounded
        )

    def _end(self, event: BrokerEnded) -> None:
        """A broker's process has ended.

        A clean shutdown checkpoints the high watermark; after any other end the checkpoint may hold an older one.
        Fetch requests to the broker and fetch responses to it are lost with its connections.
        """
        broker = event.broker
        self._starting.discard(broker)
        silenced = unheard(self.places, broker)

        def ended(metadata: Metadata, process: Broker, *_: InFlightFetch) -> Outcomes:
            for stopped in _stopped(process, event):
                yield knowing(metadata, broker, None), stopped, *(None for _ in silenced)

        self.belief.change((PartitionPlaces.METADATA, self.places.broker(broker), *silenced), ended)

    def _start(self, broker: BrokerId) -> None:
        """A broker's process was started. It does nothing before its registration is observed (`_registered`)."""
        self.belief.change((self.places.altering(broker),), lambda _: [(None,)])
        self._starting.add(broker)

    def _identify(self, producer: Producer) -> None:
        """A new transactional id has got its first producer id and epoch (InitProducerId)."""
        known, _ = init_producer_id(None, InitProducerId(), self.parameters, fresh=producer.id)
        self.belief.change((self.places.transactions,), lambda _: [(TransactionalState(known),)])

    def _configure(self, min_isr: tuple[int, ...]) -> None:
        """min.insync.replicas changes: each broker may apply any of these values until all are known to have the last.

        Brokers and the controller learn of a config change independently of each other.
        """
        self._possible = tuple(replace(self.parameters, min_isr=value) for value in min_isr)
        self.parameters = self._possible[-1]
        self.belief.go_on_with(machine(self._nothing, *self._possible))

    # Observations

    def _decide(self, seen: Controller, occasions: Occasions) -> None:
        """The controller's partition and broker registrations were observed; some chain of causes must lead to them."""
        if not self._go_on(seen, occasions):
            self._diverge(f"the controller knows {self.describer.controller(seen)}", self._decisions(occasions))

    def _go_on(self, seen: Controller, occasions: Occasions) -> bool:
        """Advance every state to the observed registrations by each explanation; returns whether there is any.

        A granted AlterPartition may be one that the leader sent unobserved, so ISR shrinks are tried as well.
        """
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
        went_on = self.belief.change((PartitionPlaces.SURROUNDINGS, PartitionPlaces.METADATA, *reads), explained)
        if went_on:
            self.explained.append(in_common(found))
        return went_on

    def _shrinking(
        self,
        around: Surroundings,
        gone: Brokers,
        processes: tuple[Broker, ...],
        altering: tuple[InFlightAlterPartition, ...],
    ) -> Iterator[tuple[tuple[Broker, ...], tuple[InFlightAlterPartition, ...]]]:
        """Leaders that may have sent an AlterPartition without lagging followers (Partition.maybeShrinkIsr).

        The broker's timer runs every half of replica.lag.time.max.ms. Only followers that have left the ISR matter.
        """
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
        altering: list[InFlightAlterPartition],
        way: Explanation,
        registered: Controller,
    ) -> tuple[Part, ...]:
        """The parts of a state after this explanation.

        Granted AlterPartition requests have a response under way, and the decisions are in the metadata log for brokers
        to learn. In ZooKeeper mode each written partition state is sent to brokers, in KRaft the last image is enough.
        """
        told = [after for before, after in pairwise(way.controllers) if before.partition != after.partition]
        seen = [*told[:-1], way.controllers[-1]] if self.parameters.mode is Mode.ZK else way.controllers[-1:]
        news = [controller for controller in seen if controller != metadata.controller]
        for cause, after in zip(way.causes, way.controllers[1:], strict=True):
            if cause.granted is not None:
                asked = altering[cause.granted.broker]
                assert isinstance(asked, AlterPartition)
                altering[cause.granted.broker] = AlterPartitionResponse(asked, after.partition)
        metadata = metadata._replace(log=(*metadata.log, *news))
        for cause, after in zip(way.causes, way.controllers[1:], strict=True):
            for broker in self._heard_of(cause, after, registered):
                if metadata.known[broker] is None:
                    metadata = knowing(metadata, broker, self._told_first(metadata, after))
        known = [self._registered(process, registered) for process in processes]
        sent = (renewed_request(slot, process.replica) for slot, process in zip(altering, known, strict=True))
        return history(self.parameters, metadata, known), *known, *sent

    def _heard_of(self, cause: Cause, after: Controller, registered: Controller) -> Iterator[BrokerId]:
        """Brokers to which the controller propagates metadata from this cause on.

        That is a broker that registers and, in ZooKeeper mode, also every live broker when a controller takes over
        (KafkaController.onControllerFailover).
        """
        if cause.registered is not None:
            yield cause.registered
        elif self.parameters.mode is Mode.ZK:
            for broker, known in after.brokers:
                now = registered.broker(broker)
                if broker in self._starting and not known.fenced and now is not None and now.epoch == known.epoch:
                    yield broker

    def _told_first(self, metadata: Metadata, registered: Controller) -> int:
        """The position in the metadata log at which a newly registered broker starts.

        A KRaft broker replays the log up to its registration. In ZooKeeper mode the first LeaderAndIsr may carry the
        state of the moment when the controller noticed the broker, or any later one.
        """
        if self.parameters.mode is Mode.KRAFT:
            return len(metadata.log) - 1
        return metadata.log.index(registered) if registered in metadata.log else 0

    def _registered(self, process: Broker, seen: Controller) -> Broker:
        """The broker has the broker epoch of its observed registration; one that was just started begins to serve.

        In KRaft BrokerServer.startup installs the metadata publishers after the broker has caught up with its own
        registration. In ZooKeeper mode a broker serves as soon as it has its znode, whether the controller has noticed
        the znode or not.
        """
        broker = process.replica.broker
        registration = seen.broker(broker)
        if registration is None or registration.epoch == process.replica.broker_epoch:
            return process
        process = process._replace(replica=renewed(process.replica._replace(broker_epoch=registration.epoch)))
        return process._replace(running=True) if broker in self._starting else process

    def _decisions(self, occasions: Occasions) -> set[str]:
        """For the report of a divergence: the causes that could have moved the controller, in words."""
        slots = {
            slot for (slot,) in (one for b in self.places.brokers for one in self.belief.parts(self.places.altering(b)))
        }
        name, names = self.describer.broker, self.describer.brokers
        asked = [slot for slot in slots if isinstance(slot, AlterPartition)]
        isrs = {f"{name(slot.broker)} asks for the ISR {names(slot.isr)}" for slot in asked}
        silent = {f"the session of {name(broker)} ends" for broker in occasions.silent}
        leaving = {f"{name(broker)} leaves" for broker in occasions.leaving}
        return isrs | silent | leaving

    def _find(self, found: Found) -> None:
        """The log and the checkpointed high watermark of a stopped broker were read; keep the states that agree."""
        place = self.places.broker(found.broker)

        def agrees(process: Broker) -> Outcomes:
            return [(process,)] if on_disk(process) == (found.start, found.records, found.high_watermark) else []

        if not self.belief.change((place,), agrees):
            permitted = {disk_in_words(*on_disk(process)) for (process,) in self.belief.parts(place)}
            self._diverge(disk_in_words(found.start, found.records, found.high_watermark), permitted)

    def _exchange(self, event: Exchanged) -> None:
        """A client sent a request and got the response, with no other observation between the two."""
        asked = PendingRequest(event.broker, self._reading(event.request.back()), event.reply.back())

        def handled(asked: PendingRequest, process: Broker) -> Outcomes:
            for replica, after in self._handled(process, asked):
                if isinstance(after, PendingRequest | Response):
                    yield (process._replace(replica=replica),)

        place = (self.places.broker(event.broker),)
        if isinstance(asked.reply, FetchResponse) and self.belief.change(place, partial(handled, asked)):
            asked = asked._replace(begun=True)  # the fetch has read its offsets, and reads its records after that
        if not self.belief.change(place, partial(handled, asked)):
            self._diverge(in_words(asked.reply), self._replies(asked))

    def _ask(self, event: RequestSent) -> None:
        """A client sent a request. If its response is already known, only states that lead to it are followed."""
        reply = None if event.reply is None else event.reply.back()
        asked = PendingRequest(event.broker, self._reading(event.request.back()), reply)
        self.belief.change((self.places.operation(event.slot),), lambda _: [(asked,)])

    def _answer(self, slot: int, reply: Any) -> None:
        """The response to an open request has arrived; keep the states in which the broker has sent it."""
        place = self.places.operation(slot)

        def agrees(operation: Operation) -> Outcomes:
            return [(None,)] if operation == Response(reply) else []

        if not self.belief.change((place,), agrees):
            operations = self.belief.would_be((place,), _whatever_is_answered, place)
            answers = {in_words(operation.reply) for operation in operations if isinstance(operation, Response)}
            waits = (
                {"no answer yet"} if any(isinstance(operation, DelayedResponse) for operation in operations) else set()
            )
            self._diverge(in_words(reply), answers | waits)

    def _replies(self, asked: PendingRequest) -> set[str]:
        """For the report of a divergence: the responses that the states before it permit, in words."""
        processes = self.belief.parts(self.places.broker(asked.broker))
        return {
            in_words(after.reply) if isinstance(after, Response) else "no answer yet"
            for (process,) in processes
            for _, after in self._handled(process, asked._replace(reply=None))
        }

    def _handled(self, process: Broker, asked: PendingRequest) -> Iterator[Handled]:
        """The outcomes of a request at a broker, under each setting that the broker may apply."""
        if process.running:
            for parameters in self._possible:
                yield from handle(parameters, process.replica, asked)

    def _describe(self, broker: BrokerId, told: PartitionMetadataResponse) -> None:
        """A Metadata response was received; the broker must have learned of decisions that yield it."""
        epochs = [process.replica.leader_epoch for (process,) in self.belief.parts(self.places.broker(broker))]
        self.metadata_caches.leads_or_follows(broker, min(epochs))
        if not self.metadata_caches.tells(broker, told):
            permitted = map(self.describer.described, self.metadata_caches.permitted(broker))
            self._diverge(self.describer.described(told), set(permitted))

    def _give_up(self, slot: int) -> None:
        """The connection of an open request broke. The broker may have handled the request, or may yet handle it."""

        def unknown(operation: Operation) -> Outcomes:
            return [(None,), (operation,)] if isinstance(operation, PendingRequest) else [(None,)]

        self.belief.change((self.places.operation(slot),), unknown)

    def _diverge(self, seen: str, permitted: set[str]) -> NoReturn:
        raise Divergence(seen, tuple(sorted(permitted)), self.belief.states, self.describer)


def _whatever_is_answered(operation: Operation) -> Outcomes:
    """The same request without its known response, so that every permitted response is reached."""
    return [(operation if operation is None or isinstance(operation, Response) else operation._replace(reply=None),)]


def unheard(places: PartitionPlaces, broker: BrokerId) -> tuple[int, ...]:
    """The places of fetch requests to a broker and of fetch responses to it: they end with its process."""
    others = [other for other in places.brokers if other != broker]
    fetches = [places.fetching(other, broker) for other in others]
    answers = [places.fetching(broker, other) for other in others]
    return *fetches, *answers


def _stopped(process: Broker, event: BrokerEnded) -> Iterator[Broker]:
    """A broker's disk after its process has ended: each possible log end and checkpointed high watermark.

    A clean shutdown keeps both. SIGKILL keeps the log, but the checkpoint may be old. A power loss may cut the log at
    any offset, for Kafka does not flush by default.
    """
    replica, log = process.replica, process.replica.log
    lowest = replica.high_watermark if event.clean else log.start
    for end in range(log.start if event.cut else log.end, log.end + 1):
        for high_watermark in range(min(lowest, end), min(replica.high_watermark, end) + 1):
            after = restart(replica, replica.broker_epoch, end=end, high_watermark=high_watermark)
            yield Broker(after, running=False, clean=event.clean)


def _some_of(brokers: Sequence[BrokerId]) -> Iterator[tuple[BrokerId, ...]]:
    return chain.from_iterable(combinations(brokers, size) for size in range(1, len(brokers) + 1))


def on_disk(process: Broker) -> tuple[Offset, tuple[tuple[Epoch, int], ...], Offset]:
    """Log start offset, records as (leader epoch, value), and the high watermark with which the broker will start."""
    log = process.replica.log
    return log.start, tuple((record.epoch, record.value) for record in log.records), process.replica.high_watermark
