"""Producers, a transaction coordinator and partition leaders as one bounded state machine.

Producers "A" and "B" share a transactional id. B may start at any time, which makes A a zombie.
"""

from __future__ import annotations

from functools import partial

from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import NO_EPOCH
from lockstep_model.state_machine import Machine, Rule
from lockstep_model.transactions import invariants
from lockstep_model.transactions.broker_actions import Background
from lockstep_model.transactions.client import aborts, commits, starting
from lockstep_model.transactions.coordinator import Partition, Producer, TransactionMetadata
from lockstep_model.transactions.partition import Leader
from lockstep_model.transactions.requests import Requests
from lockstep_model.transactions.state import Coordinator, TransactionBounds

COORDINATOR = 0
FIRST_CLIENT = 1
FIRST_PARTITION = 3


def machine(parameters: Parameters, bounds: TransactionBounds) -> Machine:
    """The machine. Its state is the coordinator, then producers A and B, then the partition leaders."""
    before = None if bounds.first_epoch == NO_EPOCH else TransactionMetadata(Producer(0, bounds.first_epoch))
    return Machine(
        initial=(
            Coordinator(before, timeouts=bounds.timeouts, successors=bounds.coordinators),
            *(
                starting(_name(place), number, bounds.partitions)
                for place, number in enumerate(bounds.transactions, start=FIRST_CLIENT)
            ),
            *(Leader(elections=bounds.elections) for _ in range(bounds.partitions)),
        ),
        rules=tuple(_rules(parameters, bounds)),
        invariants=invariants.of(
            parameters,
            bounds,
            coordinator=COORDINATOR,
            clients=tuple(range(FIRST_CLIENT, FIRST_PARTITION)),
            partitions=tuple(range(FIRST_PARTITION, FIRST_PARTITION + bounds.partitions)),
        ),
    )


def _rules(parameters: Parameters, bounds: TransactionBounds) -> list[Rule]:
    requests, background = Requests(parameters, bounds), Background(parameters, bounds)
    found = [
        Rule(name="the coordinator completes the transaction", reads=(COORDINATOR,), effect=background.complete),
        Rule(name="the transaction times out", reads=(COORDINATOR,), effect=background.time_out),
        Rule(name="another coordinator takes over", reads=(COORDINATOR,), effect=background.take_over),
    ]
    places = [place for place, number in enumerate(bounds.transactions, start=FIRST_CLIENT) if number]
    for place in places:
        found += _client_rules(requests, place)
    for partition in range(bounds.partitions):
        found += _partition_rules(background, partition)
        for place in places:
            found += _produce_rules(requests, partition, place)
    return found


def _client_rules(requests: Requests, place: int) -> list[Rule]:
    name, both = _name(place), (place, COORDINATOR)
    return [
        Rule(name=f"{name} asks for its producer id", reads=both, effect=requests.initialize),
        Rule(name=f"{name} commits", reads=(place,), effect=partial(requests.decide, commits)),
        Rule(name=f"{name} aborts", reads=(place,), effect=partial(requests.decide, aborts)),
        Rule(name=f"{name} has its transaction ended", reads=both, effect=requests.end),
        Rule(name=f"a late end of {name} arrives", reads=both, effect=requests.end_late),
    ]


def _partition_rules(background: Background, partition: Partition) -> list[Rule]:
    place = FIRST_PARTITION + partition
    both = (COORDINATOR, place)
    return [
        Rule(name=f"p{partition} takes its marker", reads=both, effect=partial(background.send_marker, partition)),
        Rule(
            name=f"the coordinator hears of the marker on p{partition}",
            reads=both,
            effect=partial(background.acknowledge_marker, partition),
        ),
        Rule(
            name=f"a late marker arrives at p{partition}",
            reads=both,
            effect=partial(background.send_marker_late, partition),
        ),
        Rule(name=f"p{partition} is replicated", reads=(place,), effect=background.replicate),
        Rule(name=f"p{partition} has another leader", reads=(place,), effect=background.elect),
    ]


def _produce_rules(requests: Requests, partition: Partition, place: int) -> list[Rule]:
    name, leader = _name(place), FIRST_PARTITION + partition
    three = (place, COORDINATOR, leader)
    found = [
        Rule(name=f"{name} writes to p{partition}", reads=three, effect=partial(requests.produce, partition)),
        Rule(
            name=f"a late batch of {name} arrives at p{partition}",
            reads=three,
            effect=partial(requests.produce_late, partition),
        ),
        Rule(
            name=f"p{partition} appends what {name} wrote",
            reads=(place, leader),
            effect=partial(requests.append_verified, partition),
        ),
    ]
    if requests.parameters.transaction_version < 2:
        add = partial(requests.add, partition)
        found.append(Rule(name=f"{name} adds p{partition}", reads=(place, COORDINATOR), effect=add))
    return found


def _name(place: int) -> str:
    return "AB"[place - FIRST_CLIENT]
