"""What CI systems get: `junit.xml` and `summary.md`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import lockstep_reports as reports
from tests.reports import sample_runs

RUN = "20261116T080000Z-leader-kill-7"


def suite_of(run: Path) -> ElementTree.Element:
    suite = ElementTree.parse(reports.write_junit(run)).getroot().find("testsuite")
    assert suite is not None
    return suite


def counts(suite: ElementTree.Element) -> dict[str, int]:
    return {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}


def outcomes(suite: ElementTree.Element) -> dict[str, str]:
    """Per case, the element that tells its outcome; `pass` when there is none."""
    return {case.attrib["name"]: case[0].tag if len(case) else "pass" for case in suite.iter("testcase")}


def test_write_all_writes_all_three(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    assert reports.write_all(run) == (run / "report.html", run / "junit.xml", run / "summary.md")
    assert all((run / name).stat().st_size for name in ("report.html", "junit.xml", "summary.md"))


def test_a_pass_is_one_passing_case_per_guarantee(tmp_path: Path) -> None:
    suite = suite_of(sample_runs.pass_run(tmp_path / RUN))
    assert outcomes(suite) == dict.fromkeys(sample_runs.GUARANTEES, "pass")
    assert counts(suite) == {"tests": 6, "failures": 0, "errors": 0, "skipped": 0}
    assert suite.attrib["name"] == "lockstep.leader-kill"


def test_a_violation_fails_its_guarantees_only(tmp_path: Path) -> None:
    suite = suite_of(sample_runs.violation_run(tmp_path / RUN))
    assert counts(suite) == {"tests": 6, "failures": 2, "errors": 0, "skipped": 1}
    assert outcomes(suite) == {
        "no-lost-acks": "failure",
        "one-value-per-offset": "pass",
        "no-duplicates": "system-out",
        "no-phantoms": "pass",
        "real-time-order": "failure",
        "monotonic-reads": "skipped",
    }
    failure = suite.find("testcase[@name='no-lost-acks']/failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.attrib["message"].startswith("4 acknowledged writes")
    assert "send #8120 by writer 1, begun at 5.080 s, ok after 3.4 ms" in failure.text
    assert f"lockstep replay runs/{RUN}" in failure.text


def test_what_is_undecided_is_an_error(tmp_path: Path) -> None:
    suite = suite_of(sample_runs.undecided_run(tmp_path / RUN))
    assert counts(suite) == {"tests": 6, "failures": 0, "errors": 1, "skipped": 0}
    assert outcomes(suite)["no-lost-acks"] == "error"


def expecting(run: Path, status: str, *, met: bool) -> Path:
    """The same run, from a scenario that expects no-lost-acks to come out as `status`."""
    verdict = {} if met else {"verdict": "undecided", "reason": "it is there to show something else"}
    expectation = {"guarantee": "no-lost-acks", "status": status, "met": met}
    sample_runs.edit(run, "verdict.json", expectations=[expectation], **verdict)
    return run


def permitted_run(directory: Path) -> Path:
    run = sample_runs.pass_run(directory)
    guarantees = json.loads((run / "verdict.json").read_bytes())["guarantees"]
    guarantees[0] |= {"status": "permitted", "count": 3, "reason": "3 records are gone; acks=1 promises one copy"}
    sample_runs.edit(run, "verdict.json", guarantees=guarantees)
    return run


def test_a_met_expectation_is_a_passing_case(tmp_path: Path) -> None:
    suite = suite_of(expecting(permitted_run(tmp_path / RUN), "permitted", met=True))
    assert outcomes(suite)["expected: no-lost-acks permitted"] == "pass"
    assert counts(suite) == {"tests": 7, "failures": 0, "errors": 0, "skipped": 0}
    permitted = suite.find("testcase[@name='no-lost-acks']/system-out")
    assert permitted is not None
    assert (permitted.text or "").startswith("permitted: 3 records are gone; acks=1 promises one copy\n")


def test_an_unmet_expectation_is_an_error_and_says_so(tmp_path: Path) -> None:
    run = expecting(sample_runs.pass_run(tmp_path / RUN), "permitted", met=False)
    suite = suite_of(run)
    assert counts(suite) == {"tests": 7, "failures": 0, "errors": 1, "skipped": 0}
    error = suite.find("testcase[@name='expected: no-lost-acks permitted']/error")
    assert error is not None
    assert error.attrib["message"] == "it is there to show something else"
    text = reports.write_summary(run).read_text()
    assert "Nothing was broken, and still this is not a pass: it is there to show something else." in text
    assert "| no-lost-acks | held, expected: permitted |" in text


def test_summary_tells_what_a_scenario_was_there_to_show(tmp_path: Path) -> None:
    text = reports.write_summary(expecting(permitted_run(tmp_path / RUN), "permitted", met=True)).read_text()
    assert (
        "no-lost-acks was broken, as this scenario expects, and that is permitted: 3 records are gone; acks=1 promises"
        " one copy. 5 of 6 guarantees held, over" in text
    )
    assert "| no-lost-acks | permitted, as expected | 3 |" in text


def test_what_is_permitted_without_being_expected_is_told_otherwise(tmp_path: Path) -> None:
    text = reports.write_summary(permitted_run(tmp_path / RUN)).read_text()
    assert "5 of 6 guarantees held, and what happened to no-lost-acks is permitted under this configuration" in text
    assert "expect" not in text


@pytest.mark.parametrize(("verdict", "outcome"), [("undecided", "error"), ("violation", "failure")])
def test_a_verdict_that_no_guarantee_explains_is_never_green(tmp_path: Path, verdict: str, outcome: str) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    sample_runs.edit(run, "verdict.json", verdict=verdict, reason="the control did not fire")
    suite = suite_of(run)
    assert outcomes(suite)["verdict"] == outcome
    assert "the control did not fire" in ElementTree.tostring(suite, encoding="unicode")


def test_a_verdict_without_guarantees_is_never_green(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / RUN)
    sample_runs.edit(run, "verdict.json", guarantees=[])
    assert outcomes(suite_of(run)) == {"verdict": "error"}


def test_hostile_contents_make_valid_xml(tmp_path: Path) -> None:
    suite = suite_of(sample_runs.hostile_run(tmp_path / RUN))
    assert sample_runs.HOSTILE in outcomes(suite)
    assert counts(suite) == {"tests": 7, "failures": 1, "errors": 1, "skipped": 0}


def test_summary_names_the_broken_promise_the_operation_the_fault_and_the_command(tmp_path: Path) -> None:
    lines = reports.write_summary(sample_runs.violation_run(tmp_path / RUN)).read_text().splitlines()
    assert lines[0] == "# ❌ Violation: leader-kill, seed 7"
    assert lines[2].startswith("no-lost-acks is broken: 4 acknowledged writes to orders-0")
    assert lines[4].startswith("* **First bad operation:** send #8120 by writer 1, begun at 5.080 s")
    assert "* **Fault active then:** kill of broker-2 (leader of orders-0)" in lines
    assert f"* **Replay:** `lockstep replay runs/{RUN}`" in lines
    table = [line.split("|")[1].strip() for line in lines if line.startswith("|")][2:]
    assert table[:2] == ["no-lost-acks", "real-time-order"]
    assert len(table) == 6
    assert len(lines) < 25


def test_first_bad_operation_is_the_earliest_of_a_broken_promise(tmp_path: Path) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    early = sample_runs.operation(11, 2, "send", 1.5, 2.0)
    earlier_but_permitted = sample_runs.operation(7, 3, "send", 0.5, 2.0)
    sample_runs.edit(
        run,
        "verdict.json",
        anomalies=[
            {"guarantee": "no-duplicates", "name": "duplicate", "operations": [earlier_but_permitted]},
            {
                "guarantee": "no-lost-acks",
                "name": "lost-ack",
                "operations": [sample_runs.operation(99, 1, "send", 9, 1)],
            },
            {"guarantee": "real-time-order", "name": "order-inversion", "operations": [early]},
        ],
    )
    text = reports.write_summary(run).read_text()
    assert "First bad operation:** send #11 by writer 2, begun at 1.500 s" in text
    assert "Fault active then:** none" in text


@pytest.mark.parametrize(
    ("began_s", "took_ms", "fault"),
    [
        (4.0, 50.0, "none"),
        (5.0, 300.0, "kill of broker-2 (leader of orders-0)"),
        (6.0, 1.0, "kill of broker-2 (leader of orders-0)"),
        (4.0, None, "kill of broker-2 (leader of orders-0)"),
        (11.0, None, "none"),
    ],
)
def test_the_active_fault_is_found_by_time_when_the_checker_names_none(
    tmp_path: Path, began_s: float, took_ms: float | None, fault: str
) -> None:
    run = sample_runs.violation_run(tmp_path / RUN)
    during = sample_runs.operation(11, 2, "send", began_s, took_ms)
    sample_runs.edit(
        run, "verdict.json", anomalies=[{"guarantee": "no-lost-acks", "name": "lost-ack", "operations": [during]}]
    )
    text = reports.write_summary(run).read_text()
    assert f"* **Fault active then:** {fault}\n" in text


def test_summary_of_a_pass_is_short(tmp_path: Path) -> None:
    text = reports.write_summary(sample_runs.pass_run(tmp_path / RUN)).read_text()
    assert text.startswith("# ✅ Pass: leader-kill, seed 7\n\n6 of 6 guarantees held")
    assert "First bad operation" not in text


def test_hostile_contents_stay_text_in_markdown(tmp_path: Path) -> None:
    text = reports.write_summary(sample_runs.hostile_run(tmp_path / RUN)).read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "](https" not in text.replace("\\](", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}


def test_a_run_name_with_odd_characters_is_quoted(tmp_path: Path) -> None:
    run = sample_runs.pass_run(tmp_path / "a `b`; $(c)")
    assert "``` lockstep replay 'runs/a `b`; $(c)' ```".replace("```", "``") in reports.write_summary(run).read_text()
