"""Claims and scripts are registered once each, under names of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lockstep.claims import Setting, Situation, Steps, begin, claim, claim_script
from lockstep.errors import UsageError
from lockstep.stepper.conformance import find_claims, find_scripts, registry


def commit_one_record(_: Setting, now: Situation) -> Steps[None]:
    yield from begin(now)


@pytest.fixture
def own_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts that a test registers are gone after it."""
    find_scripts()
    monkeypatch.setattr(registry, "_scripts", dict(registry._scripts))


@pytest.mark.usefixtures("own_scripts")
def test_a_script_has_the_name_of_its_function_and_runs_last() -> None:
    assert claim_script(claims=[34, 66], shows="A write.")(commit_one_record) is commit_one_record
    last = find_scripts()[-1]
    assert (last.name, last.claims, last.shows) == ("commit-one-record", (34, 66), "A write.")


@pytest.mark.usefixtures("own_scripts")
def test_a_script_name_that_is_taken_is_refused() -> None:
    with pytest.raises(UsageError, match=r"two claim scripts are called acks-one \(lockstep_scenarios.*: rename"):
        claim_script(claims=[66], shows="", name="acks-one")(commit_one_record)


def test_a_claim_number_that_is_taken_is_refused() -> None:
    assert 34 in find_claims()
    with pytest.raises(UsageError, match="claim 34 is declared twice"):
        claim(number=34, family="", wording="", fact="")


def test_claims_are_loaded_once_whatever_is_loaded_first() -> None:
    """A claim module, the scenarios and the registry, in one process."""
    code = (
        "import lockstep_scenarios.conformance.recovery\n"
        "from lockstep.plan.scenario import find_scenarios\n"
        "from lockstep.stepper.conformance import find_scripts\n"
        "assert 'leader-kill' in find_scenarios()\n"
        "print(len(find_scripts()))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(loaded.stdout) == len(find_scripts())
