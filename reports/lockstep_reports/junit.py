"""`junit.xml`: one test case per guarantee and per expectation, for CI systems that draw their own tables.

A broken promise is a failure. An undecided one is an error, not a skip: CI shows skips as green, and what could not be
judged has not passed. What never applied is a skip.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from lockstep_model.verdicts import RunVerdict, Status
from lockstep_reports import story
from lockstep_reports.content import Anomaly, Expectation, Guarantee
from lockstep_reports.files import replace
from lockstep_reports.run import Run, load

EVIDENCE_LIMIT = 5


def write_junit(run_dir: Path) -> Path:
    """Write `junit.xml` of a judged run and return its path."""
    return replace(run_dir.resolve() / "junit.xml", junit(load(run_dir)))


def junit(run: Run) -> str:
    """The document, ready to be written."""
    suite = ElementTree.Element("testsuite", name=f"lockstep.{run.scenario}", time=f"{run.duration_s or 0:.3f}")
    if run.info.clock:
        suite.set("timestamp", run.info.clock.utc.removesuffix("Z"))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("run", run.name), ("seed", run.seed), ("replay", story.replay_command(run))):
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=str(value))
    for guarantee in run.verdict.guarantees:
        _case(suite, run, guarantee)
    for expectation in run.verdict.expectations:
        _expected(suite, run, expectation)
    if not _explained(run):
        case = ElementTree.SubElement(suite, "testcase", classname=f"lockstep.{run.scenario}", name="verdict", time="0")
        tag = "failure" if run.verdict.verdict is RunVerdict.VIOLATION else "error"
        outcome(case, tag, story.headline(run), story.replay_command(run))
    return finished(suite)


def finished(suite: ElementTree.Element) -> str:
    """A suite that has all its cases, counted, as a document."""
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    totals = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped", "time")}
    root = ElementTree.Element("testsuites", {"name": "lockstep", **totals})
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, run: Run, guarantee: Guarantee) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=f"lockstep.{run.scenario}", name=guarantee.name, time="0"
    )
    evidence = run.anomalies_of(guarantee)
    if guarantee.status is Status.VIOLATED:
        outcome(case, "failure", guarantee.reason, _evidence(run, evidence))
    elif guarantee.status is Status.UNDECIDED:
        outcome(case, "error", guarantee.reason, _evidence(run, evidence))
    elif guarantee.status is Status.NOT_APPLICABLE:
        ElementTree.SubElement(case, "skipped", message=guarantee.reason)
    elif guarantee.status is Status.PERMITTED:
        said = f"permitted: {guarantee.reason}\n{_evidence(run, evidence)}"
        ElementTree.SubElement(case, "system-out").text = said


def _expected(suite: ElementTree.Element, run: Run, expectation: Expectation) -> None:
    name = f"expected: {expectation.guarantee} {expectation.status}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"lockstep.{run.scenario}", name=name, time="0")
    if not expectation.met:
        outcome(case, "error", run.verdict.reason or "it came out otherwise", f"replay: {story.replay_command(run)}")


def outcome(case: ElementTree.Element, tag: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, tag, message=message, type=tag).text = text


def _evidence(run: Run, anomalies: list[Anomaly]) -> str:
    lines: list[str] = []
    for anomaly in anomalies[:EVIDENCE_LIMIT]:
        lines += [f"{anomaly.name} {anomaly.place}".rstrip() + f": {anomaly.text}"]
        lines += [f"  {story.operation_line(run, operation)}" for operation in anomaly.operations]
        lines += [f"  fault active then: {story.active_fault(run, anomaly)}"]
    return "\n".join([*lines, f"replay: {story.replay_command(run)}"])


def _explained(run: Run) -> bool:
    """Whether some case already fails for a verdict that is not a pass: CI must never be green by omission."""
    if run.verdict.verdict is RunVerdict.UNDECIDED and not all(it.met for it in run.verdict.expectations):
        return True
    telling = {RunVerdict.VIOLATION: Status.VIOLATED, RunVerdict.UNDECIDED: Status.UNDECIDED}.get(run.verdict.verdict)
    return bool(run.verdict.guarantees) if telling is None else bool(run.with_status(telling))
