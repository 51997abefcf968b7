"""`lockstep conform`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli.main import run_cli
from harness.lockstep.conformance import CLAIMS, SCRIPTS
from tests.conftest import Lockstep

PASS, USAGE = 0, 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--claims", "12,999"], "there is no script for claim 999; there are some for 12, 19, 34"),
        (["--claims", "twelve"], "'twelve' are not claims: write their numbers, such as 12,19, or all"),
        (["--brokers", "5"], "they need 3 brokers"),
        (["--backend", "external"], "they need a cluster of their own, on process or docker"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli(["conform", *arguments]) == USAGE
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_scripts_have_names_of_their_own_and_claims() -> None:
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS)
    assert CLAIMS == (12, 19, 34, 37, 40, 41, 44, 45, 49, 51, 66, 67, 68, 69)


@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_it_tells_what_it_found_of_each_claim(lockstep: Lockstep, tmp_path: Path) -> None:
    finished = lockstep("conform", "--claims", "34,66", "--json")
    assert finished.returncode == PASS, finished.stderr
    verdict = json.loads(finished.stdout)
    assert [(claim["claim"], claim["verdict"]) for claim in verdict["claims"]] == [(34, "holds"), (66, "holds")]
    run = tmp_path / "runs" / verdict["run"]
    assert json.loads((run / "verdict.json").read_text()) == verdict
    assert [script["name"] for script in verdict["scripts"]] == ["leader-writes", "acks-one"]
    for script in verdict["scripts"]:
        steps = (run / "scripts" / script["name"] / "steps.jsonl").read_text().splitlines()
        assert len(steps) == script["steps"] or script["attempts"] > 1
