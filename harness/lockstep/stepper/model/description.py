"""Descriptions in words, for reports: a controller decision, a state, a belief. Brokers have the cluster's ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

import msgspec

from lockstep.stepper.model.controller_inference import Cause, Explained
from lockstep.stepper.model.state import (
    ABORTED,
    COMMITTED,
    AdmittedBatch,
    DelayedResponse,
    Operation,
    PartitionPlaces,
    PendingRequest,
    Response,
    Surroundings,
    TransactionalState,
)
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.metadata import PartitionMetadataResponse
from lockstep_model.partition.log import Epoch, Offset
from lockstep_model.partition.produce import Produce
from lockstep_model.partition.replica import UNKNOWN, Leadership, Replica
from lockstep_model.partition.replica_fetch import ReplicaFetch, ReplicaFetchResponse
from lockstep_model.registration import AlterPartition, BrokerId
from lockstep_model.replication.state import Broker, InFlightAlterPartition, InFlightFetch, Metadata
from lockstep_model.state_machine import State

SHOWN_WAYS = 12
"""The largest number of alternatives that a report lists for one part of the state."""
SHOWN_STATES = 5
"""The largest number of whole states that a report lists as examples."""

Values: TypeAlias = Sequence[tuple[Epoch, int]]
"""The leader epoch and the value of each record."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One possible condition of a part of the cluster, and the number of states of the belief that have it."""

    words: str
    states: int


class Believed(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the cluster, such as a broker or an open request, and its possible conditions."""

    part: str
    ways: tuple[Way, ...]
    """The most frequent first."""
    others: int = 0
    """How many conditions were left out."""


class Part(NamedTuple):
    """A part of a state as a report names it; an absent one, such as no open request, has the empty description."""

    name: str
    places: tuple[int, ...]
    say: Callable[..., str]

    def of(self, state: State) -> str:
        return self.say(*(state[place] for place in self.places))


class StateDescriber:
    """Describes parts of the model with the cluster's broker ids; without ids, with the model's broker numbers."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self._ids = dict(enumerate(ids))

    def broker(self, broker: BrokerId) -> int:
        return self._ids.get(broker, broker)

    def brokers(self, brokers: Iterable[BrokerId]) -> str:
        return str(sorted(map(self.broker, brokers)))

    def controller(self, controller: Controller) -> str:
        """The controller's registrations of the partition and of brokers."""
        partition = controller.partition
        gone = [broker for broker, registration in controller.brokers if registration.fenced]
        leaving = [broker for broker, registration in controller.brokers if registration.shutting_down]
        leads = f"leader {self.broker(partition.leader)}" if partition.leader >= 0 else "no leader"
        return (
            f"{leads} in epoch {partition.leader_epoch}, ISR {self.brokers(partition.isr)}, "
            f"partition epoch {partition.partition_epoch}"
            + (f", ELR {self.brokers(partition.elr)}" if partition.elr else "")
            + (f", adding {self.brokers(partition.adding)}" if partition.adding else "")
            + (f", removing {self.brokers(partition.removing)}" if partition.removing else "")
            + (f", gone {self.brokers(gone)}" if gone else "")
            + (f", leaving {self.brokers(leaving)}" if leaving else "")
        )

    def described(self, told: PartitionMetadataResponse) -> str:
        """A Metadata response: the partition and the live brokers."""
        partition = told.partition
        if partition.error not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
            return str(partition.error.name)
        leads = f"leader {self.broker(partition.leader)}" if partition.leader >= 0 else "no leader"
        return (
            f"{leads} in epoch {partition.leader_epoch}, replicas {list(map(self.broker, partition.replicas))}, "
            f"ISR {self.brokers(partition.isr)}"
            + (f", offline {self.brokers(partition.offline)}" if partition.offline else "")
            + f"; there are {self.brokers(told.brokers)}"
        )

    def decision(self, controller: Controller, explained: Explained) -> str:
        """A controller decision, with the causes that all its explanations share."""
        why = ", ".join(sorted(map(self.cause, explained.certain)))
        return f"{self.controller(controller)}{f' ({why})' if why else ''}"

    def cause(self, cause: Cause) -> str:
        return cause.kind if cause.broker is None else f"{cause.kind}: {self.broker(cause.broker)}"

    def belief(self, states: Sequence[State]) -> tuple[Believed, ...]:
        """The possible conditions of each part of the cluster, independently of the other parts."""
        told = (_believed(part, self._counted(part, states)) for part in self._parts(states[0]))
        return tuple(believed for believed in told if believed.ways)

    def examples(self, states: Sequence[State]) -> tuple[tuple[str, ...], ...]:
        """The first few states, each with all its parts."""
        return tuple(
            tuple(f"{part.name}: {words}" for part in self._parts(state) if (words := part.of(state)))
            for state in states[:SHOWN_STATES]
        )

    def _counted(self, part: Part, states: Sequence[State]) -> Counter[str]:
        """The number of states for each description of a part; equal parts of many states are described once."""
        ways: Counter[str] = Counter()
        for values, count in Counter(tuple(state[place] for place in part.places) for state in states).items():
            ways[part.say(*values)] += count
        return ways

    def _parts(self, state: State) -> list[Part]:
        """The parts of a state that a report describes, in its order."""
        metadata: Metadata = state[PartitionPlaces.METADATA]
        places, name = PartitionPlaces(len(metadata.known)), self.broker
        numbers = places.brokers
        return [
            Part("done by the harness", (PartitionPlaces.SURROUNDINGS, PartitionPlaces.METADATA), self._around),
            Part("the controller", (PartitionPlaces.METADATA,), self._metadata),
            *(Part(f"broker {name(b)}", (places.broker(b),), self.process) for b in numbers),
            *(Part(f"ISR asked for by {name(b)}", (places.altering(b),), self._altering) for b in numbers),
            *(
                Part(f"{name(follower)} fetching from {name(to)}", (places.fetching(follower, to),), self._fetching)
                for follower, to in places.pairs
            ),
            *(Part(f"request {slot}", (places.operation(slot),), self._operation) for slot in places.operations),
            Part("the transactional id", (places.transactions,), self._transactions),
        ]

    def _around(self, around: Surroundings, metadata: Metadata) -> str:
        leader = metadata.controller.partition.leader
        late = [follower for led, follower in around.late if led == leader]
        said = [
            *(f"{self.broker(f)} cannot fetch from {self.broker(to)}" for f, to in sorted(around.cut)),
            *([f"paused {self.brokers(around.paused)}"] if around.paused else []),
            *([f"{self.brokers(around.deaf)} hear nothing of the controller"] if around.deaf else []),
            *([f"the controller hears no ISR asked for by {self.brokers(around.mute)}"] if around.mute else []),
            *([f"the lag time may have passed for {self.brokers(late)}"] if late else []),
            *([f"timed out may be the requests {sorted(around.expired)}"] if around.expired else []),
        ]
        return "; ".join(said)

    def _metadata(self, metadata: Metadata) -> str:
        last = len(metadata.log) - 1
        behind = [broker for broker, known in enumerate(metadata.known) if known is not None and known < last]
        yet = f"; not known to {self.brokers(behind)} yet" if behind else ""
        return f"{self.controller(metadata.controller)}{yet}"

    def process(self, process: Broker) -> str:
        """A running broker's role and log, or a stopped broker's log on disk."""
        if not process.running:
            return f"does not run; on its disk {self._log(process.replica)}"
        return f"{self._role(process.replica)}; {self._log(process.replica)}"

    def _role(self, replica: Replica) -> str:
        if replica.leadership is not None:
            return f"leads in epoch {replica.leader_epoch}, {self._leadership(replica.leadership)}"
        if replica.leader_epoch < 0:
            return "has not been told of the partition"
        if replica.leader < 0:
            return f"knows no leader in epoch {replica.leader_epoch}"
        return f"follows {self.broker(replica.leader)} in epoch {replica.leader_epoch}"

    def _leadership(self, leadership: Leadership) -> str:
        seen = ", ".join(
            f"{self.broker(follower)} {f'is at {progress.end}' if progress.end != UNKNOWN else 'has not fetched'}"
            for follower, progress in leadership.followers
        )
        pending = f", has asked for {self.brokers(leadership.pending.isr)}" if leadership.pending else ""
        return f"with ISR {self.brokers(leadership.isr)}{pending}, {seen}"

    def _log(self, replica: Replica) -> str:
        """A log by its leader epochs: logs with equal epochs at equal offsets have equal records (log matching)."""
        log = replica.log
        runs = groupby(range(len(log.records)), key=lambda index: log.records[index].epoch)
        ends = [f"epoch {epoch} to {log.start + list(run)[-1] + 1}" for epoch, run in runs]
        epochs = f" ({', '.join(ends)})" if ends else ""
        return f"log {log.start} to {log.end}{epochs}, high watermark {replica.high_watermark}"

    def _altering(self, altering: InFlightAlterPartition) -> str:
        if altering is None:
            return ""
        if isinstance(altering, AlterPartition):
            return f"{self.brokers(altering.isr)} in epoch {altering.leader_epoch}, on its way to the controller"
        return f"{self.brokers(altering.request.isr)}, the controller's answer on its way back"

    def _fetching(self, fetching: InFlightFetch) -> str:
        match fetching:
            case ReplicaFetch():
                return f"asks at {fetching.offset} in epoch {fetching.leader_epoch}"
            case ReplicaFetchResponse():
                asked = fetching.request
                if fetching.diverging is not None:
                    return f"is told to go back to {fetching.diverging.end} of epoch {fetching.diverging.epoch}"
                if fetching.error:
                    return f"is answered {fetching.error.name}"
                return (
                    f"gets {len(fetching.records)} records at {asked.offset}, high watermark {fetching.high_watermark}"
                )
            case None:
                return ""

    def _operation(self, operation: Operation) -> str:
        match operation:
            case PendingRequest():
                return f"{_request(operation.request)} on its way to {self.broker(operation.broker)}"
            case AdmittedBatch():
                return f"{_request(operation.request)} admitted by {self.broker(operation.broker)}"
            case DelayedResponse():
                until = operation.waiting.until
                return f"{_request(operation.request)} appended by {self.broker(operation.broker)}, waits for {until}"
            case Response():
                return "answered"
            case None:
                return ""

    def _transactions(self, transactions: TransactionalState) -> str:
        transactional, sent = transactions.transactional, transactions.sent
        if transactional is None:
            return ""
        producer = f"producer {transactional.producer.id} epoch {transactional.producer.epoch}"
        marked = f", its marker at {sent.waiting.offset} of {self.broker(sent.broker)}" if sent is not None else ""
        late = f", {len(transactions.late)} more copies of its marker under way" if transactions.late else ""
        found = "; ".join(f"{one.state} with epoch {one.producer.epoch}" for one in transactions.logged)
        other = f", in its log {found}" if found else ""
        return f"{producer}, {transactional.state}{marked}{late}{other}"


def disk_in_words(start: Offset, records: Values, high_watermark: Offset) -> str:
    """A log's offsets and records, and its high watermark."""
    shown = f" ({records_in_words(records)})" if records else ""
    return f"log {start} to {start + len(records)}{shown}, high watermark {high_watermark}"


def records_in_words(records: Values) -> str:
    """Values of records, grouped by leader epoch: `1-2, 4 of epoch 0; 5-7, commit of epoch 1`."""
    epochs = groupby(records, key=lambda record: record[0])
    return "; ".join(f"{_ranges([value for _, value in run])} of epoch {epoch}" for epoch, run in epochs)


def _ranges(values: Sequence[int]) -> str:
    """Consecutive values as one range; a transaction marker as `commit` or `abort`."""
    runs = groupby(enumerate(values), key=lambda numbered: (numbered[1] < 0 and numbered, numbered[1] - numbered[0]))
    ends = [(first, first + sum(1 for _ in rest)) for _, run in runs for (_, first), *rest in [list(run)]]
    return ", ".join(_MARKERS.get(first, str(first)) if first == last else f"{first}-{last}" for first, last in ends)


_MARKERS = {COMMITTED: "commit", ABORTED: "abort"}


def _request(request: object) -> str:
    if isinstance(request, Produce):
        return f"write of {', '.join(map(str, request.values))} with acks={int(request.acks)}"
    return type(request).__name__


def _believed(part: Part, ways: Counter[str]) -> Believed:
    told = [Way(words=words, states=states) for words, states in ways.most_common() if words]
    return Believed(part=part.name, ways=tuple(told[:SHOWN_WAYS]), others=max(0, len(told) - SHOWN_WAYS))
