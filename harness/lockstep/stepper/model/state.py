"""A state of the belief: one partition of the reference model, its brokers, and the requests in flight.

Each state explains everything observed so far. All states of a belief have the same `Surroundings`, which the harness
controls. They differ in what cannot be observed: how far each follower has fetched, which metadata each broker has
applied, and which requests and responses are under way.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from lockstep_model.controller import Controller
from lockstep_model.partition.log import Epoch, Record
from lockstep_model.partition.produce import DelayedProduce, Produce, Reply
from lockstep_model.partition.producer_state import Marker, ProducerId, Verification
from lockstep_model.partition.replica import Replica
from lockstep_model.registration import BrokerId
from lockstep_model.replication.state import Broker, Metadata
from lockstep_model.state_machine import State
from lockstep_model.transactions.coordinator import TransactionMetadata

Request: TypeAlias = Any
"""A client request as the reference model represents it (Produce, Fetch, ListOffsets, InitProducerId and so on)."""

OPERATIONS = 4
"""The number of client requests that may be open at once."""

COMMITTED, ABORTED = -1, -2
"""In place of a record's value: the type of a transaction marker."""


class Surroundings(NamedTuple):
    """Faults that the harness has injected, and timeouts that may have passed by its clock."""

    cut: frozenset[tuple[BrokerId, BrokerId]] = frozenset()
    """Pairs (follower, leader) whose replication link is cut."""
    paused: frozenset[BrokerId] = frozenset()
    """Brokers whose process is suspended, and that are still registered until their session ends."""
    deaf: frozenset[BrokerId] = frozenset()
    """Brokers to which the controller's metadata does not get through."""
    late: frozenset[tuple[BrokerId, BrokerId]] = frozenset()
    """Pairs (leader, follower) for which replica.lag.time.max.ms may have passed since the follower was caught up."""
    expired: frozenset[int] = frozenset()
    """Open operations whose request timeout may have passed."""
    steady: bool = False
    """The transaction coordinator is certain to succeed: no fault, no controller decision since it last did."""
    disturbances: int = 0
    """How often a fault hit a broker that may be the transaction coordinator. Each time it may have lost its leadership
    of the __transaction_state partition, or the response to a marker."""
    reloads: int = 0
    """How often a metadata update made the coordinator load __transaction_state again in the same leader epoch
    (`Parameters.coordinator_reloads`, KAFKA-15468)."""
    mute: frozenset[BrokerId] = frozenset()
    """Brokers whose AlterPartition requests are held back: they may be outdated when they reach the controller."""


class PendingRequest(NamedTuple):
    """A request under way to a broker, or queued there and not yet handled."""

    broker: BrokerId
    request: Request
    reply: Any = None
    """The response, if it is already known: then only outcomes that lead to it are followed."""
    begun: bool = False
    """Fetch only: the broker has read its high watermark and log start offset, and has yet to read the records."""


class AdmittedBatch(NamedTuple):
    """A transactional batch that passed verification with the coordinator (KIP-890), and is not yet appended."""

    broker: BrokerId
    request: Produce
    reply: Reply | None = None


class DelayedResponse(NamedTuple):
    """A write with acks=all that the leader has appended, and whose response waits for the high watermark
    (DelayedProduce)."""

    broker: BrokerId
    incarnation: int
    request: Produce
    waiting: DelayedProduce
    reply: Reply | None = None


class Response(NamedTuple):
    """The response to a client's request, under way or received."""

    reply: Any


Operation: TypeAlias = PendingRequest | AdmittedBatch | DelayedResponse | Response | None


class MarkerSent(NamedTuple):
    """A transaction marker that the partition leader has appended, and whose WriteTxnMarkers response the coordinator
    has not got."""

    marker: Marker
    broker: BrokerId
    incarnation: int
    leader_epoch: int
    waiting: DelayedProduce
    lost: bool = False
    """The response may have been lost: then the coordinator sends the marker again, even to the same leader."""


class LateMarker(NamedTuple):
    """A duplicate of a marker, sent because the coordinator loaded __transaction_state again (KAFKA-15468).

    The copies cannot be told apart. Each is retried until a response arrives, and the coordinator accepts that
    response, for all copies have the same coordinator epoch.
    """

    marker: Marker
    since: Epoch
    """The partition's leader epoch when the reload was decided: leaders of older epochs are not sent this copy."""
    sent: MarkerSent | None = None
    """None until a leader has appended it."""


class Standing(NamedTuple):
    """A leader's verification entry for one producer (KIP-890 part 1; VerificationStateEntry)."""

    broker: BrokerId
    incarnation: int
    producer_id: ProducerId
    verification: Verification


class TransactionalState(NamedTuple):
    """One transactional id: the coordinator's metadata, markers under way, and verification entries of leaders."""

    transactional: TransactionMetadata | None = None
    """Transaction metadata of the current coordinator; None before the first InitProducerId."""
    logged: tuple[TransactionMetadata, ...] = ()
    """Metadata that a new coordinator may load from __transaction_state instead: the last that was replicated, and
    every later append that failed to replicate in time. Empty if there was no such failure."""
    moved: bool = False
    """The coordinator may have moved, or have loaded its log again, since the last metadata was written."""
    sent: MarkerSent | None = None
    """The marker that the current leader, or an earlier one, has appended for the decided transaction."""
    late: tuple[LateMarker, ...] = ()
    """Duplicate markers, oldest first."""
    reloads: tuple[Epoch, ...] = ()
    """Reloads that the coordinator has yet to make, each with the partition's leader epoch when it was decided.

    The moment at which the coordinator learns of one cannot be observed."""
    standing: tuple[Standing, ...] = ()
    """At most one verification entry per broker."""

    def wrote(self, transactional: TransactionMetadata | None) -> TransactionalState:
        """The coordinator has replicated this metadata, so that a new coordinator can load nothing older."""
        if transactional == self.transactional:
            return self
        return self._replace(transactional=transactional, logged=(), moved=False)

    def failed(
        self, transactional: TransactionMetadata | None, believed: TransactionMetadata | None
    ) -> TransactionalState:
        """An append to __transaction_state failed to replicate in time, and may be in the log all the same.

        The coordinator continues with `believed`; a new coordinator may load `transactional`.
        """
        assert self.transactional is not None
        assert transactional is not None
        logged = (*(self.logged or (self.transactional,)), transactional)
        return self._replace(transactional=believed, logged=logged)

    def disturbed(self) -> TransactionalState:
        """A fault hit the coordinator: it may have moved, and the response to a marker may be lost."""
        return self._replace(moved=True, sent=self.sent and self.sent._replace(lost=True))

    def told_to_reload(self, times: int, epoch: Epoch) -> TransactionalState:
        """The coordinator will load its log so many times again; then its metadata is only what the log holds."""
        return self._replace(reloads=(*self.reloads, *(epoch,) * times), moved=self.moved or times > 0)

    def settled(self) -> TransactionalState:
        """All reloads have been made, and all duplicate markers have arrived."""
        return self._replace(reloads=(), late=())

    def without_late(self, place: int) -> TransactionalState:
        """The coordinator has got the response to one duplicate marker."""
        return self._replace(late=self.late[:place] + self.late[place + 1 :])

    def with_late(self, place: int, sent: MarkerSent) -> TransactionalState:
        """A leader has appended one duplicate marker."""
        copy = self.late[place]._replace(sent=sent)
        return self._replace(late=(*self.late[:place], copy, *self.late[place + 1 :]))

    def overtaken(self, epoch: int) -> TransactionalState:
        """A leader has appended with this producer epoch: duplicate markers of an older one will be refused.

        The error is INVALID_PRODUCER_EPOCH (ProducerAppendInfo.checkProducerEpoch).
        """
        late = tuple(copy for copy in self.late if copy.sent is not None or copy.marker.epoch >= epoch)
        return self._replace(late=late)

    def verification(self, replica: Replica, producer_id: ProducerId) -> Verification | None:
        """The leader's verification entry, if the producer has appended nothing since (UnifiedLog.append clears it)."""
        key = (replica.broker, replica.broker_epoch, producer_id)
        found = next((one.verification for one in self.standing if one[:3] == key), None)
        ended = found is not None and any(
            batch.producer_id == producer_id and offset >= found.guard for offset, batch in replica.log.batches()
        )
        return None if ended else found

    def verifying(
        self, replica: Replica, producer_id: ProducerId, verification: Verification | None
    ) -> TransactionalState:
        """With this verification entry at the leader; one per broker is enough, as there is one transactional id."""
        if verification is None or verification == self.verification(replica, producer_id):
            return self
        others = (one for one in self.standing if one.broker != replica.broker)
        mine = Standing(replica.broker, replica.broker_epoch, producer_id, verification)
        return self._replace(standing=tuple(sorted((*others, mine))))


def marker_record(epoch: Epoch, marker: Marker) -> Record:
    """A transaction marker as a record that a leader of this epoch appends."""
    return Record(epoch, COMMITTED if marker.commit else ABORTED, marker)


class PartitionPlaces:
    """The index of each part in a state.

    The order is: surroundings, metadata, one part per broker, its AlterPartition, one fetcher per (follower, leader),
    the client operations, the transactional id.
    """

    SURROUNDINGS = 0
    METADATA = 1

    def __init__(self, brokers: int) -> None:
        self.brokers = range(brokers)
        self.operations = range(OPERATIONS)

    def broker(self, broker: BrokerId) -> int:
        return 2 + broker

    def altering(self, broker: BrokerId) -> int:
        return 2 + len(self.brokers) + broker

    def fetching(self, follower: BrokerId, leader: BrokerId) -> int:
        return 2 + (2 + follower) * len(self.brokers) + leader

    def operation(self, slot: int) -> int:
        return 2 + (2 + len(self.brokers)) * len(self.brokers) + slot

    @property
    def transactions(self) -> int:
        return self.operation(OPERATIONS)

    @property
    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every two brokers, the first as the follower."""
        return list(permutations(self.brokers, 2))


def before_creation(controller: Controller) -> State:
    """The initial state: all brokers run and are registered, and the partition does not exist yet."""
    numbers = [number for number, _ in controller.brokers]
    brokers = [Broker(Replica(number, registration.epoch)) for number, registration in controller.brokers]
    slots = (None,) * (len(numbers) + len(numbers) ** 2 + OPERATIONS)
    return (
        Surroundings(),
        Metadata(log=(controller,), known=(0,) * len(numbers)),
        *brokers,
        *slots,
        TransactionalState(),
    )


def acts(around: Surroundings, broker: Broker) -> bool:
    """Whether a broker's process runs and is not paused."""
    return broker.running and broker.replica.broker not in around.paused


def replaced(state: State, parts: dict[int, Any]) -> State:
    """The state with the parts at these indexes replaced."""
    return tuple(parts.get(place, part) for place, part in enumerate(state))
