"""The bundled claims: each is described and has a script, and their modules use public names only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lockstep_scenarios.conformance
from lockstep.stepper.conformance import find_claims, find_scripts, shown_claims
from lockstep_scenarios.conformance import RUNNING_ORDER

MODULES = sorted(Path(lockstep_scenarios.conformance.__path__[0]).glob("[!_]*.py"))


def test_every_claim_is_described() -> None:
    claims = find_claims()
    assert set(claims) == set(shown_claims())
    assert all(claim.family and claim.wording and claim.fact for claim in claims.values())


def test_scripts_have_names_of_their_own_and_claims() -> None:
    scripts = find_scripts()
    assert len({script.name for script in scripts}) == len(scripts)
    assert shown_claims() == (12, 19, 34, 37, 40, 41, 44, 45, 49, 51, 66, 67, 68, 69)


def test_scripts_run_in_the_order_that_is_given() -> None:
    assert tuple(script.name for script in find_scripts()) == RUNNING_ORDER


def test_there_is_a_module_for_each_family() -> None:
    assert [path.stem for path in MODULES] == ["leader_election", "produce", "recovery", "replication"]
    assert len({claim.family for claim in find_claims().values()}) == len(MODULES)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_claim_modules_import_public_names_only(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "lockstep.claims"}
    assert not any(isinstance(node, ast.Import) for node in nodes)
