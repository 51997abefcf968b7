"""What a state of the belief consists of: the partition as the reference model has it, and what is done to it.

One state explains everything that was seen so far. All states of a belief agree in what the harness itself does, the
`Surroundings`, and differ in what nobody can see: who has fetched what, who has learned what the controller decided.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

from reference_model.cluster import Broker, Metadata
from reference_model.controller import Controller
from reference_model.machine import State
from reference_model.produce import Produce, Reply, Waiting
from reference_model.registration import BrokerId
from reference_model.replica import Replica

Request: TypeAlias = Any
"""One of the requests that the reference model knows."""

OPERATIONS = 4
"""How many requests of clients may be open at once."""


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


class Asked(NamedTuple):
    """A request on its way to a broker, or there and not yet looked at."""

    broker: BrokerId
    request: Request
    reply: Reply | None = None
    """What was answered, where that is known already: other ways for it to go are of no interest."""


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


Operation: TypeAlias = Asked | Waits | Answered | None


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
    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every two brokers, the first as the follower."""
        return list(permutations(self.brokers, 2))


def before_creation(controller: Controller) -> State:
    """All brokers run, and the partition is not there yet: what the controller has on record is only the brokers."""
    numbers = [number for number, _ in controller.brokers]
    brokers = [Broker(Replica(number, registration.epoch)) for number, registration in controller.brokers]
    slots = (None,) * (len(numbers) + len(numbers) ** 2 + OPERATIONS)
    return (Surroundings(), Metadata(log=(controller,), known=(0,) * len(numbers)), *brokers, *slots)


def replaced(state: State, parts: dict[int, Any]) -> State:
    """The same state with other parts at some places."""
    return tuple(parts.get(place, part) for place, part in enumerate(state))
