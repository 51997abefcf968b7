"""Clients, a coordinator and partitions together: a state machine of transactions, within bounds.

Two clients have the same transactional id: "A", and "B", which may start at any time and makes a zombie of A.
"""

from __future__ import annotations

from functools import partial

from reference_model.machine import Machine, Rule
from reference_model.parameters import Parameters
from reference_model.producer_state import NO_EPOCH
from reference_model.transactions import invariants
from reference_model.transactions.actions import Actions, Bounds, Coordinator
from reference_model.transactions.client import aborts, commits, starting
from reference_model.transactions.coordinator import Partition, Producer, Transactional
from reference_model.transactions.partition import Leader

COORDINATOR = 0
FIRST_CLIENT = 1
FIRST_PARTITION = 3


def machine(parameters: Parameters, bounds: Bounds) -> Machine:
    """The machine: the coordinator is its first part, then come A and B, then the partitions."""
    before = None if bounds.first_epoch == NO_EPOCH else Transactional(Producer(0, bounds.first_epoch))
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
            coordinator=COORDINATOR,
            clients=tuple(range(FIRST_CLIENT, FIRST_PARTITION)),
            partitions=tuple(range(FIRST_PARTITION, FIRST_PARTITION + bounds.partitions)),
        ),
    )


def _rules(parameters: Parameters, bounds: Bounds) -> list[Rule]:
    actions = Actions(parameters, bounds)
    found = [
        Rule(name="the coordinator completes the transaction", reads=(COORDINATOR,), effect=actions.complete),
        Rule(name="the transaction times out", reads=(COORDINATOR,), effect=actions.time_out),
        Rule(name="another coordinator takes over", reads=(COORDINATOR,), effect=actions.take_over),
    ]
    places = [place for place, number in enumerate(bounds.transactions, start=FIRST_CLIENT) if number]
    for place in places:
        found += _client_rules(actions, place)
    for partition in range(bounds.partitions):
        found += _partition_rules(actions, partition)
        for place in places:
            found += _produce_rules(actions, partition, place)
    return found


def _client_rules(actions: Actions, place: int) -> list[Rule]:
    name, both = _name(place), (place, COORDINATOR)
    return [
        Rule(name=f"{name} asks for its producer id", reads=both, effect=actions.initialize),
        Rule(name=f"{name} commits", reads=(place,), effect=partial(actions.decide, commits)),
        Rule(name=f"{name} aborts", reads=(place,), effect=partial(actions.decide, aborts)),
        Rule(name=f"{name} has its transaction ended", reads=both, effect=actions.end),
        Rule(name=f"a late end of {name} arrives", reads=both, effect=actions.end_late),
    ]


def _partition_rules(actions: Actions, partition: Partition) -> list[Rule]:
    place = FIRST_PARTITION + partition
    both = (COORDINATOR, place)
    return [
        Rule(name=f"p{partition} takes its marker", reads=both, effect=partial(actions.send_marker, partition)),
        Rule(
            name=f"the coordinator hears of the marker on p{partition}",
            reads=both,
            effect=partial(actions.acknowledge_marker, partition),
        ),
        Rule(
            name=f"a late marker arrives at p{partition}",
            reads=both,
            effect=partial(actions.send_marker_late, partition),
        ),
        Rule(name=f"p{partition} is replicated", reads=(place,), effect=actions.replicate),
        Rule(name=f"p{partition} has another leader", reads=(place,), effect=actions.elect),
    ]


def _produce_rules(actions: Actions, partition: Partition, place: int) -> list[Rule]:
    name, leader = _name(place), FIRST_PARTITION + partition
    three = (place, COORDINATOR, leader)
    found = [
        Rule(name=f"{name} writes to p{partition}", reads=three, effect=partial(actions.produce, partition)),
        Rule(
            name=f"a late batch of {name} arrives at p{partition}",
            reads=three,
            effect=partial(actions.produce_late, partition),
        ),
        Rule(
            name=f"p{partition} appends what {name} wrote",
            reads=(place, leader),
            effect=partial(actions.append_verified, partition),
        ),
    ]
    if actions.parameters.transaction_version < 2:
        add = partial(actions.add, partition)
        found.append(Rule(name=f"{name} adds p{partition}", reads=(place, COORDINATOR), effect=add))
    return found


def _name(place: int) -> str:
    return "AB"[place - FIRST_CLIENT]
