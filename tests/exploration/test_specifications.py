"""Every specification that can be asked for by name, and every guard of it that can be left out."""

from __future__ import annotations

import pytest

from lockstep.exploration import explore
from lockstep.exploration.ours import CONTROLLER, GROUPS, REPLICATION, TRANSACTIONS
from lockstep.exploration.specifications import SPECIFICATIONS, chosen
from lockstep_model.replication.mutants import FETCH_LEADER_EPOCH
from lockstep_model.search import explore as explore_alone

QUICK = {"async-isr", *(one.name for one in (*REPLICATION, *CONTROLLER, *TRANSACTIONS, *GROUPS))}
SLOW = {FETCH_LEADER_EPOCH}
"""That takes half a million states."""

MUTANTS = [
    pytest.param(name, mutant, marks=[] if name in QUICK and mutant not in SLOW else [pytest.mark.long])
    for name, specification in SPECIFICATIONS.items()
    for mutant in specification.mutants
]


@pytest.mark.parametrize(("name", "mutant"), MUTANTS)
def test_a_guard_that_is_left_out_is_noticed_and_the_whole_is_not_in_the_same_bounds(name: str, mutant: str) -> None:
    shown = SPECIFICATIONS[name].mutants[mutant]
    without = explore(chosen(name, mutant, {}), depth=shown.depth)
    assert without.violations
    if shown.breaks is not None:
        assert without.violations[shown.breaks].depth == shown.depth
    for violation in without.violations.values():
        assert violation.depth == len(violation.trace) > 0
    whole = SPECIFICATIONS[name].make(shown.bounds, None)
    assert explore_alone(whole, depth=shown.depth).violations == {}, "the whole is right"


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_no_two_rules_have_one_name(name: str) -> None:
    rules = [rule.name for rule in chosen(name, None, {}).rules]
    assert len(set(rules)) == len(rules)


def test_names_and_summaries() -> None:
    for name, specification in SPECIFICATIONS.items():
        assert specification.name == name
        assert specification.summary
