"""Groups explored: what must be true of them is, within bounds that are told here, and is not without any one guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from lockstep.exploration.ours import GROUPS
from lockstep_model.errors import Error
from lockstep_model.groups import classic_machine as classic
from lockstep_model.groups import consumer_machine as consumer
from lockstep_model.groups import mutants
from lockstep_model.groups.consumer import ConsumerGroup, ConsumerGroupHeartbeat, heartbeat
from lockstep_model.groups.consumer_machine import LateHeartbeats
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.groups.pending_machine import (
    pending_machine,
)
from lockstep_model.search import Expansion, explore
from lockstep_model.state_machine import Machine, State
from tests.reference_model.groups.consumer_groups import counted_from_0

KAFKA_41, KAFKA = counted_from_0("4.1.2"), counted_from_0("4.3.1")
TWINS = (("a", "x"), ("b", "x"))
"""Two processes with one instance id."""
STATIC_AND_DYNAMIC = (("a", "x"), ("b", None))
THREE = (("a", None), ("b", None), ("c", None))
B_STEADY, BC_STEADY = frozenset("b"), frozenset("bc")

Build = Callable[[GroupParameters], Machine]


def classic_(bounds: classic.ClassicBounds) -> Build:
    return lambda parameters: classic.classic_machine(parameters, bounds)


def consumer_(bounds: consumer.ConsumerBounds) -> Build:
    return lambda parameters: consumer.consumer_machine(parameters, bounds)


COMMITS = consumer_(consumer.ConsumerBounds(partitions=1, commits=True, steady=B_STEADY))


@dataclass(frozen=True, kw_only=True)
class ExploredGroup:
    """A machine with its bounds, and how many states it has in them."""

    build: Build
    states: int
    parameters: GroupParameters = KAFKA
    depth: int | None = None


EXPLORED = {
    "classic": ExploredGroup(build=classic_(classic.ClassicBounds()), states=7_778),
    "classic with commits": ExploredGroup(
        build=classic_(classic.ClassicBounds(partitions=1, commits=True)), states=32_664
    ),
    "classic, one instance id": ExploredGroup(
        build=classic_(classic.ClassicBounds(consumers=TWINS, commits=True)), states=11_574
    ),
    "classic, static and dynamic": ExploredGroup(
        build=classic_(classic.ClassicBounds(consumers=STATIC_AND_DYNAMIC, partitions=1, commits=True)), states=43_310
    ),
    "consumer": ExploredGroup(build=consumer_(consumer.ConsumerBounds()), states=36_335),
    "consumer of 4.1": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(epochs=4, partitions=1, steady=B_STEADY)),
        states=6_999,
        parameters=KAFKA_41,
    ),
    "consumer with commits": ExploredGroup(build=COMMITS, states=17_610),
    "consumer of 4.1 with commits": ExploredGroup(build=COMMITS, states=17_610, parameters=KAFKA_41),
    "consumer, slow assignor": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(slow_assignor=True, steady=B_STEADY)), states=13_489
    ),
    "consumer, one instance id": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(consumers=TWINS, ids=2, partitions=1)), states=11_265
    ),
    "consumer, static and dynamic": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(consumers=STATIC_AND_DYNAMIC, ids=2, partitions=1, steady=B_STEADY)),
        states=7_663,
    ),
    "consumer, late heartbeats": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(epochs=4, partitions=1, late=LateHeartbeats.FENCED, steady=B_STEADY)),
        states=26_069,
        depth=18,
    ),
    "transactions": ExploredGroup(build=pending_machine, states=5_899),
}
EXPLORED_LONG = {
    "classic, second ids": ExploredGroup(
        build=classic_(classic.ClassicBounds(consumers=STATIC_AND_DYNAMIC, partitions=1, ids=2)), states=344_072
    ),
    "three consumers": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(consumers=THREE, steady=BC_STEADY)), states=130_764
    ),
    "three consumers of 4.1": ExploredGroup(
        build=consumer_(consumer.ConsumerBounds(consumers=THREE, partitions=3, steady=BC_STEADY)),
        states=504_578,
        parameters=KAFKA_41,
    ),
}


@pytest.mark.parametrize(
    "explored",
    [
        *(pytest.param(explored, id=name) for name, explored in EXPLORED.items()),
        *(pytest.param(explored, id=name, marks=pytest.mark.long) for name, explored in EXPLORED_LONG.items()),
    ],
)
def test_all_that_must_be_true_is(explored: ExploredGroup) -> None:
    exploration = explore(explored.build(explored.parameters), depth=explored.depth)
    assert exploration.violations == {}
    assert exploration.complete == (explored.depth is None)
    assert exploration.states == explored.states


def test_every_guard_is_tried() -> None:
    """Where it shows, in tests/exploration."""
    named = {guard for name, guard in vars(mutants).items() if name.isupper()}
    assert named == {guard for specification in GROUPS for guard in specification.mutants}


@pytest.mark.parametrize(
    ("bounds", "depth"),
    [
        pytest.param(
            consumer.ConsumerBounds(hasty=True, steady=B_STEADY),
            11,
            id="a consumer that was not answered says again what it owned before it takes over more",
        ),
        pytest.param(
            consumer.ConsumerBounds(late=LateHeartbeats.ANY, steady=B_STEADY),
            10,
            id="a heartbeat arrives after the next one",
        ),
    ],
)
def test_what_the_consumer_protocol_cannot_stand(bounds: consumer.ConsumerBounds, depth: int) -> None:
    """A heartbeat says what is owned when it is sent, not when it arrives: if a partition that was taken over in
    between is to be revoked, the coordinator believes that it was, and gives it to another."""
    exploration = explore(consumer.consumer_machine(KAFKA, bounds), depth=depth)
    assert exploration.violations[consumer.NO_DOUBLE_CLIENT_ASSIGNMENT].depth == depth


@pytest.mark.long
@pytest.mark.parametrize(("parameters", "broken"), [(KAFKA_41, set()), (KAFKA, {consumer.COMMITS_RISE})])
def test_since_4_3_a_late_commit_of_the_same_epoch_can_go_back(parameters: GroupParameters, broken: set[str]) -> None:
    """See test_groups_offsets for the same, request by request."""
    build = consumer_(consumer.ConsumerBounds(consumers=THREE, commits=True, steady=BC_STEADY))
    assert set(explore(build(parameters), depth=14).violations) == broken


def reachable(machine: Machine) -> Iterator[State]:
    expansion = Expansion(machine)
    seen = dict.fromkeys([expansion.pack(machine.initial)], 0)
    frontier: Iterable[int] = list(seen)
    while frontier:
        frontier = found = expansion.expand(frontier, seen)
        seen.update(found)
    return (expansion.packing.unpack(state, range(len(machine.initial))) for state in seen)


def unable_to_settle(machine: Machine, starts: Iterable[State], settled: Callable[[State], bool]) -> list[State]:
    """Of these states, those from which this machine leads to no settled one."""
    expansion = Expansion(machine)
    before: dict[int, list[int]] = {}
    states = [expansion.pack(state) for state in starts]
    seen = dict.fromkeys(states, 0)
    frontier = list(states)
    while frontier:
        after: list[int] = []
        for state in frontier:
            for successor in expansion.expand([state], {}):
                before.setdefault(successor, []).append(state)
                if successor not in seen:
                    seen[successor] = 0
                    after.append(successor)
        frontier = after
    places = range(len(machine.initial))
    good = {state for state in seen if settled(expansion.packing.unpack(state, places))}
    frontier = list(good)
    while frontier:
        frontier = [one for state in frontier for one in before.get(state, ()) if one not in good and not good.add(one)]  # type: ignore[func-returns-value]
    return [expansion.packing.unpack(state, places) for state in states if state not in good]


@pytest.mark.parametrize(
    "name", ["classic, static and dynamic", "consumer, late heartbeats", "consumer, slow assignor"]
)
def test_nothing_in_a_machine_is_without_effect(name: str) -> None:
    machine = EXPLORED[name].build(KAFKA)
    idle = {rule.name: rule for rule in machine.rules}
    for state in reachable(machine):
        for rule in list(idle.values()):
            parts = tuple(state[place] for place in rule.reads)
            if any(after != parts for after in rule.outcomes(parts)):
                del idle[rule.name]
        if not idle:
            break
    assert list(idle) == []


def without_faults(machine: Machine) -> Machine:
    faults = ("leaves", "crashes", "expires", "gives up", "is not heard or answered", "commits", "old heartbeat")
    return replace(
        machine, rules=tuple(rule for rule in machine.rules if not any(fault in rule.name for fault in faults))
    )


def test_a_classic_rebalance_can_always_complete() -> None:
    """From whatever state, if from then on nothing more happens to the consumers.

    It may take two generations: one with those whose JoinGroup waited when they crashed, and one without them.
    """
    machine = classic_(classic.ClassicBounds(generations=3))(KAFKA)
    starts = [state for state in reachable(machine) if state[classic.GROUP].generation < 2]
    assert unable_to_settle(without_faults(machine), starts, classic.settled) == []
    assert any(not classic.settled(state) for state in starts)


def heard(state: State, parameters: GroupParameters) -> bool:
    """Whether every member has a consumer whose heartbeats the coordinator accepts."""
    group: ConsumerGroup = state[consumer.GROUP]
    accepted = set()
    for one in state[consumer.FIRST_CONSUMER :]:
        request = ConsumerGroupHeartbeat(one.member, one.epoch, None, one.owned, "")
        _, answer = heartbeat(group, request, assignor=None, parameters=parameters)
        if answer.error is Error.NONE:
            accepted.add(one.member)
    return {member.id for member in group.members} <= accepted


@pytest.mark.parametrize("parameters", [counted_from_0("3.9.2"), KAFKA], ids=["3.9.2", "4.3.1"])
def test_a_rebalance_of_the_consumer_protocol_can_always_complete(parameters: GroupParameters) -> None:
    """From whatever state in which the members are alive, if from then on nothing more happens to them."""
    machine = consumer_(consumer.ConsumerBounds(steady=B_STEADY, epochs=4))(parameters)
    starts = [state for state in reachable(machine) if heard(state, parameters)]
    assert unable_to_settle(without_faults(machine), starts, consumer.settled) == []
    assert any(not consumer.settled(state) for state in starts)
