"""The search on machines small enough to count by hand."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from lockstep_model.published.replication import VARIANTS, Bounds, replication
from lockstep_model.search import Expansion, Packing, Progress, explore
from lockstep_model.state_machine import Action, Invariant, Machine, Outcomes, Part, Rule, Symmetry, Transition


class Glass(NamedTuple):
    id: int
    full: bool = False


def fill(glass: Glass) -> Outcomes:
    if not glass.full:
        yield (glass._replace(full=True),)


def spill(glass: Glass) -> Outcomes:
    if glass.full:
        yield (glass._replace(full=False),)


def rename(glass: Part, names: tuple[int, ...]) -> Part:
    return glass._replace(id=names[glass.id])


def glasses(count: int, *invariants: Invariant | Transition) -> Machine:
    """Glasses in a row, each of which can be filled and spilled."""
    places = tuple(range(count))
    return Machine(
        initial=tuple(Glass(id_) for id_ in places),
        rules=tuple(
            Rule(name=f"{what.__name__} {place}", reads=(place,), effect=what)
            for place in places
            for what in (fill, spill)
        ),
        invariants=invariants,
        symmetry=Symmetry(places=places, rename=rename),
    )


def test_every_state_is_found_once() -> None:
    found = explore(glasses(3))
    assert (found.states, found.generated, found.diameter, found.complete) == (8, 24, 3, True)


def test_under_symmetry_only_the_number_of_full_glasses_counts() -> None:
    found = explore(glasses(3), symmetric=True)
    assert (found.states, found.diameter) == (4, 3)


def test_the_way_to_a_broken_invariant_is_a_shortest_one() -> None:
    both = Invariant(name="not-both", reads=(0, 2), holds=lambda one, other: not (one.full and other.full))
    violation = explore(glasses(3, both)).violations["not-both"]
    assert violation.depth == 2
    assert sorted(violation.trace) == ["fill 0", "fill 2"]
    assert violation.states[-1] == (Glass(0, True), Glass(1), Glass(2, True))


def test_under_symmetry_brokers_keep_their_names_along_a_trace() -> None:
    dry = Invariant(name="dry", reads=(0, 1, 2), holds=lambda *row: not all(glass.full for glass in row))
    violation = explore(glasses(3, dry), symmetric=True).violations["dry"]
    assert sorted(violation.trace) == ["fill 0", "fill 1", "fill 2"]


def test_a_step_that_must_not_be_is_found_though_its_states_may() -> None:
    stays = Transition(name="stays-full", place=1, holds=lambda was, now: not was.full or now.full)
    violation = explore(glasses(2, stays)).violations["stays-full"]
    assert (violation.depth, violation.trace) == (2, ("fill 1", "spill 1"))


def test_the_first_state_is_looked_at_too() -> None:
    full = Invariant(name="full", reads=(0,), holds=lambda glass: glass.full)
    violation = explore(glasses(1, full)).violations["full"]
    assert (violation.depth, violation.trace) == (0, ())


def test_only_the_invariants_that_were_asked_for_are_looked_at() -> None:
    full = Invariant(name="full", reads=(0,), holds=lambda glass: glass.full)
    empty = Invariant(name="empty", reads=(0,), holds=lambda glass: not glass.full)
    assert set(explore(glasses(1, full, empty), invariants=["empty"]).violations) == {"empty"}


def test_a_search_that_ends_early_says_so() -> None:
    found = explore(glasses(3), depth=2)
    assert (found.states, found.diameter, found.complete) == (7, 2, False)


def empty(glass: Glass) -> bool:
    return not glass.full


def test_a_rule_is_not_asked_where_its_first_part_rules_it_out() -> None:
    asked = []

    def effect(glass: Glass) -> Outcomes:
        asked.append(glass)
        return fill(glass)

    rule = Rule(name="fill", reads=(0,), when=empty, effect=effect)
    found = explore(Machine(initial=(Glass(0),), rules=(rule,)))
    assert (found.states, asked) == (2, [Glass(0)])


def test_a_rule_is_not_asked_where_another_part_rules_it_out() -> None:
    def pour(one: Glass, other: Glass) -> Outcomes:
        assert one.full
        assert empty(other)
        yield one._replace(full=False), other._replace(full=True)

    rule = Rule(name="pour", reads=(1, 0), when=lambda one: one.full, and_when=(empty,), effect=pour)
    machine = Machine(initial=(Glass(0), Glass(1)), rules=(*glasses(2).rules, rule))
    found = explore(machine)
    assert (found.states, found.generated) == (4, 9)
    assert list(machine.enabled((Glass(0, True), Glass(1, True)))) == [
        (Action("spill 0"), (Glass(0), Glass(1, True))),
        (Action("spill 1"), (Glass(0, True), Glass(1))),
    ]


def test_what_few_parts_break_is_found_though_others_read_more() -> None:
    """Combinations of the parts that one reads are taken from those that another does, which reads them too."""
    one = Invariant(name="one", reads=(1,), when=lambda glass: glass.full, holds=lambda _: False)
    two = Invariant(name="two", reads=(1, 0), holds=lambda *row: not all(glass.full for glass in row))
    three = Invariant(name="three", reads=(0, 1, 2), holds=lambda *row: not all(glass.full for glass in row))
    violations = explore(glasses(3, one, two, three)).violations
    assert {name: (violation.depth, sorted(violation.trace)) for name, violation in violations.items()} == {
        "one": (1, ["fill 1"]),
        "two": (2, ["fill 0", "fill 1"]),
        "three": (3, ["fill 0", "fill 1", "fill 2"]),
    }


def test_progress_is_told_level_by_level() -> None:
    told: list[Progress] = []
    explore(glasses(2), progress=told.append)
    assert told == [Progress(depth=1, states=3, frontier=2), Progress(depth=2, states=4, frontier=1)]


def test_apply_and_enabled_agree_and_what_cannot_happen_leads_nowhere() -> None:
    machine = glasses(2)
    for action, state in machine.enabled(machine.initial):
        assert machine.apply(machine.initial, action) == state
    assert machine.apply(machine.initial, Action("spill 0")) is None
    assert machine.apply(machine.initial, Action("no such rule")) is None


class Mug(NamedTuple):
    id: int
    full: bool = False


def test_packing_gives_every_state_back() -> None:
    packing = Packing()
    states = [(Glass(0), Glass(1, True)), (Glass(1, True), Glass(0)), (Glass(0), Mug(0))]
    packed = [packing.pack(state) for state in states]
    assert len(set(packed)) == len(states), "a mug is no glass, though the tuples are equal"
    assert [packing.unpack(number, range(2)) for number in packed] == states
    assert [type(part) for part in packing.unpack(packed[2], range(2))] == [Glass, Mug]


def test_a_part_that_becomes_an_equal_one_of_another_kind_is_another_state() -> None:
    def turn(part: Glass | Mug) -> Outcomes:
        if isinstance(part, Glass):
            yield (Mug(*part),)

    machine = Machine(
        initial=(Glass(0),),
        rules=(Rule(name="turn", reads=(0,), effect=turn),),
        invariants=(Invariant(name="glass", reads=(0,), holds=lambda part: isinstance(part, Glass)),),
    )
    found = explore(machine)
    assert found.states == 2
    assert found.violations["glass"].trace == ("turn",)


def test_every_state_of_a_real_machine_comes_back_and_has_one_canonical_form() -> None:
    machine = replication(VARIANTS["kip320"], Bounds(replicas=2, epochs=1))
    plain, canonical = Expansion(machine), Expansion(machine, symmetric=True)
    assert machine.symmetry
    seen = frontier = {machine.initial}
    while frontier:
        frontier = {after for state in frontier for _, after in machine.enabled(state)} - seen
        seen = seen | frontier
    assert len(seen) > 100
    for state in seen:
        assert plain.packing.unpack(plain.pack(state), range(len(state))) == state
        counters, quorum, first, second, *requests = state
        mirrored = (counters, quorum, second, first, *requests)
        swapped = tuple(machine.symmetry.rename(part, (1, 0)) for part in mirrored)
        assert canonical.pack(state) == canonical.pack(swapped)


def test_a_machine_without_symmetry_says_so() -> None:
    with pytest.raises(ValueError, match="not interchangeable"):
        explore(Machine(initial=(Glass(0),), rules=()), symmetric=True)
