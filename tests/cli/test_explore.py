"""`lockstep explore`: what it prints, and how it ends."""

from __future__ import annotations

import json

from tests.command import Lockstep

SMALL = ("--replicas", "2", "--epochs", "1")


def test_what_holds_ends_with_pass(lockstep: Lockstep) -> None:
    told = lockstep("explore", *SMALL)
    assert told.returncode == 0, told.stderr
    assert "every invariant holds" in told.stdout


def test_what_does_not_is_shown_with_the_shortest_way_to_it(lockstep: Lockstep) -> None:
    told = lockstep("explore", "--variant", "truncate-to-hw", "--replicas", "2", "--invariant", "weak-isr")
    assert told.returncode == 1, told.stderr
    assert "weak-isr is broken after 8 actions:" in told.stdout
    assert "strong-isr" not in told.stdout
    assert "    1. the controller " in told.stdout
    assert "has log [A" in told.stdout


def test_json_has_what_others_read(lockstep: Lockstep) -> None:
    told = lockstep("explore", "--variant", "truncate-to-hw", "--replicas", "2", "--workers", "2", "--json")
    found = json.loads(told.stdout)
    assert (found["states"], found["diameter"]) == (10_131, 19)
    assert found["violations"] == {"weak-isr": 8, "strong-isr": 9, "log-mismatch": 14}
    assert {"generated", "seconds"} <= found.keys()
    assert len(found["traces"]["weak-isr"]) == 8


def test_a_search_that_was_cut_short_is_undecided(lockstep: Lockstep) -> None:
    told = lockstep("explore", *SMALL, "--depth", "3")
    assert told.returncode == 2, told.stderr
    assert "the first" in told.stdout
