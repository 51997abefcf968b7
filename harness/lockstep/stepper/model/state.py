"""What a state of the belief consists of: the partition as the reference model has it, and what is done to it.

One state explains everything that was seen so far. All states of a belief agree in what the harness itself does, the
`Surroundings`, and differ in what nobody can see: who has fetched what, who has learned what the controller decided.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from lockstep_model.controller import Controller
from lockstep_model.partition.log import Epoch, Record
from lockstep_model.partition.produce import Produce, Reply, Waiting
from lockstep_model.partition.producer_state import Marker, ProducerId, Verification
from lockstep_model.partition.replica import Replica
from lockstep_model.registration import BrokerId
from lockstep_model.replication.state import Broker, Metadata
from lockstep_model.state_machine import State
from lockstep_model.transactions.coordinator import Transactional

Request: TypeAlias = Any
"""One of the requests that the reference model knows."""

OPERATIONS = 4
"""How many requests of clients may be open at once."""

COMMITTED, ABORTED = -1, -2
"""Instead of a value, what a marker says."""


class Surroundings(NamedTuple):
    """What the harness knows for certain, because it did it or because its clock says so."""

    cut: frozenset[tuple[BrokerId, BrokerId]] = frozenset()
    """Who cannot fetch from whom."""
    paused: frozenset[BrokerId] = frozenset()
    deaf: frozenset[BrokerId] = frozenset()
    """Who hears nothing of the controller."""
    late: frozenset[tuple[BrokerId, BrokerId]] = frozenset()
    """For which leader and follower the lag time may have passed."""
    expired: frozenset[int] = frozenset()
    """Operations that have waited for as long as they said they would."""
    steady: bool = False
    """Nothing was broken or decided since a coordinator of transactions last did what it was asked for."""
    disturbances: int = 0
    """How often somebody was hit that may coordinate transactions: what it waited for may have been lost each time."""
    reloads: int = 0
    """How often the coordinator was told to load its log again (`Parameters.coordinator_reloads`)."""
    mute: frozenset[BrokerId] = frozenset()
    """Whose AlterPartition does not arrive: what a leader asks for may be old when it does."""


class Asked(NamedTuple):
    """A request on its way to a broker, or there and not yet looked at."""

    broker: BrokerId
    request: Request
    reply: Any = None
    """What was answered, where that is known already: other ways for it to go are of no interest."""
    begun: bool = False
    """Whether the broker has looked at its offsets for a fetch, and is yet to read."""


class Admitted(NamedTuple):
    """A transactional batch that its leader may append, for all that the coordinator says."""

    broker: BrokerId
    request: Produce
    reply: Reply | None = None


class Waits(NamedTuple):
    """A write that the broker has appended, and answers when it is committed (acks=all)."""

    broker: BrokerId
    incarnation: int
    request: Produce
    waiting: Waiting
    reply: Reply | None = None


class Answered(NamedTuple):
    """The answer, on its way back or there."""

    reply: Any


Operation: TypeAlias = Asked | Admitted | Waits | Answered | None


class MarkerSent(NamedTuple):
    """A marker that the partition has taken, and that the coordinator does not know to be replicated."""

    marker: Marker
    broker: BrokerId
    incarnation: int
    leader_epoch: int
    waiting: Waiting
    lost: bool = False
    """Whether the answer may have been: then it is sent again, even to the same leader."""


class LateMarker(NamedTuple):
    """One more copy of a marker, as the coordinator has loaded its log again: nobody can tell which was the first.

    It is sent until it is answered, and the answer counts, for it has the same coordinator epoch.
    """

    marker: Marker
    since: Epoch
    """The partition's leader epoch when the coordinator was told: who led before it is not sent this copy."""
    sent: MarkerSent | None = None
    """None while no leader has taken it."""


class Standing(NamedTuple):
    """What stands at one leader for a producer whose transaction it has asked about."""

    broker: BrokerId
    incarnation: int
    producer_id: ProducerId
    verification: Verification


class Transactions(NamedTuple):
    """One transactional id: what its coordinator has on record, and what leaders have of it besides their logs."""

    transactional: Transactional | None = None
    """What whoever coordinates goes by."""
    logged: tuple[Transactional, ...] = ()
    """What the next one may find in the log instead: the last that was replicated, and what could not be since."""
    moved: bool = False
    """Whether another broker may coordinate since it was last asked for something."""
    sent: MarkerSent | None = None
    late: tuple[LateMarker, ...] = ()
    """Oldest first."""
    reloads: tuple[Epoch, ...] = ()
    """How often the coordinator is yet to load its log again, by the partition's leader epoch when it was told to.

    Nobody sees when it hears of that."""
    standing: tuple[Standing, ...] = ()

    def wrote(self, transactional: Transactional | None) -> Transactions:
        """With this on record, and nothing else that could be found."""
        if transactional == self.transactional:
            return self
        return self._replace(transactional=transactional, logged=(), moved=False)

    def failed(self, transactional: Transactional | None, believed: Transactional | None) -> Transactions:
        """This may be in the log though it could not be replicated; the coordinator goes on with what it believes."""
        assert self.transactional is not None
        assert transactional is not None
        logged = (*(self.logged or (self.transactional,)), transactional)
        return self._replace(transactional=believed, logged=logged)

    def disturbed(self) -> Transactions:
        """Whoever coordinates may have lost what it waited for, or be another one."""
        return self._replace(moved=True, sent=self.sent and self.sent._replace(lost=True))

    def told_to_reload(self, times: int, epoch: Epoch) -> Transactions:
        """The coordinator will load its log again, and then knows only what is in it."""
        return self._replace(reloads=(*self.reloads, *(epoch,) * times), moved=self.moved or times > 0)

    def settled(self) -> Transactions:
        """The coordinator has loaded its log as often as it was told to, and all copies have come."""
        return self._replace(reloads=(), late=())

    def without_late(self, place: int) -> Transactions:
        """One of the late copies is answered."""
        return self._replace(late=self.late[:place] + self.late[place + 1 :])

    def with_late(self, place: int, sent: MarkerSent) -> Transactions:
        """One of the late copies was taken by a leader."""
        copy = self.late[place]._replace(sent=sent)
        return self._replace(late=(*self.late[:place], copy, *self.late[place + 1 :]))

    def overtaken(self, epoch: int) -> Transactions:
        """A leader has taken something with this producer epoch: what comes later with an older one is refused."""
        late = tuple(copy for copy in self.late if copy.sent is not None or copy.marker.epoch >= epoch)
        return self._replace(late=late)

    def verification(self, replica: Replica, producer_id: ProducerId) -> Verification | None:
        """What stands at this leader: a batch or marker that it appended since has ended it (UnifiedLog.append)."""
        key = (replica.broker, replica.broker_epoch, producer_id)
        found = next((one.verification for one in self.standing if one[:3] == key), None)
        ended = found is not None and any(
            batch.producer_id == producer_id and offset >= found.guard for offset, batch in replica.log.batches()
        )
        return None if ended else found

    def verifying(self, replica: Replica, producer_id: ProducerId, verification: Verification | None) -> Transactions:
        """With what stands at this leader now; one producer is enough to remember, for there is one client."""
        if verification is None or verification == self.verification(replica, producer_id):
            return self
        others = (one for one in self.standing if one.broker != replica.broker)
        mine = Standing(replica.broker, replica.broker_epoch, producer_id, verification)
        return self._replace(standing=tuple(sorted((*others, mine))))


def marker_record(epoch: Epoch, marker: Marker) -> Record:
    """A marker as it stands in a log of this leader epoch."""
    return Record(epoch, COMMITTED if marker.commit else ABORTED, marker)


class Places:
    """Where the parts stand in a state."""

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
    """All brokers run, and the partition is not there yet: what the controller has on record is only the brokers."""
    numbers = [number for number, _ in controller.brokers]
    brokers = [Broker(Replica(number, registration.epoch)) for number, registration in controller.brokers]
    slots = (None,) * (len(numbers) + len(numbers) ** 2 + OPERATIONS)
    return (Surroundings(), Metadata(log=(controller,), known=(0,) * len(numbers)), *brokers, *slots, Transactions())


def acts(around: Surroundings, broker: Broker) -> bool:
    """Whether a broker does anything at all."""
    return broker.running and broker.replica.broker not in around.paused


def replaced(state: State, parts: dict[int, Any]) -> State:
    """The same state with other parts at some places."""
    return tuple(parts.get(place, part) for place, part in enumerate(state))
