"""`lockstep conform`, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Lockstep, Refused

PASS, USAGE = 0, 4
CONTRACT = {
    "claim", "family", "kafka", "mode", "wording", "fact", "observed", "verdict", "evidence", "seconds",
}  # fmt: skip


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
def test_wrong_usage(refused: Refused, arguments: list[str], sentence: str) -> None:
    refused(["conform", *arguments], sentence)


@pytest.mark.cluster
@pytest.mark.xdist_group("process-cluster")
def test_it_tells_what_it_found_of_each_claim(lockstep: Lockstep, tmp_path: Path) -> None:
    finished = lockstep("conform", "--claims", "34,66", "--controls", "--json")
    assert finished.returncode == PASS, finished.stderr
    verdict = json.loads(finished.stdout)
    assert [(claim["claim"], claim["verdict"]) for claim in verdict["claims"]] == [(34, "holds"), (66, "holds")]
    run = tmp_path / "runs" / verdict["run"]
    assert json.loads((run / "verdict.json").read_text()) == verdict
    assert [script["name"] for script in verdict["scripts"]] == ["leader-writes", "acks-one"]
    for script in verdict["scripts"]:
        steps = (run / "scripts" / script["name"] / "steps.jsonl").read_text().splitlines()
        assert len(steps) == script["steps"] or script["attempts"] > 1
    found = {model["name"]: model["diverged_in"] for model in verdict["wrong_models"]}
    assert found["acks-0-answers"] == ["leader-writes"]
    assert found["acks-1-waits"] == ["leader-writes", "acks-one"]
    assert found["not-idempotent"] == []
    rows = json.loads((run / "conformance.json").read_text())
    assert [(row["claim"], row["kafka"], row["mode"], row["verdict"]) for row in rows] == [
        (34, "4.3.1", "kraft", "holds"),
        (66, "4.3.1", "kraft", "holds"),
    ]
    assert rows[0].keys() == CONTRACT
    assert [(run / path).is_file() for row in rows for path in row["evidence"]] == [True, True]
    assert "<h1>Pass</h1>" in (run / "report.html").read_text()
    assert "acks-one" in (run / "junit.xml").read_text()
    for command, code in (("report", PASS), ("check", USAGE), ("replay", USAGE)):
        assert lockstep(command).returncode == code, command
