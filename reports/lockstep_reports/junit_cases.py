"""`junit.xml` of walks, scripts or counterexamples, one case each. What is undecided is an error: skips are green."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from xml.etree import ElementTree

from lockstep_model.verdicts import RunVerdict
from lockstep_reports.content import Info
from lockstep_reports.junit import finished, outcome

TAGS: dict[RunVerdict | None, str] = {RunVerdict.VIOLATION: "failure", RunVerdict.UNDECIDED: "error"}


class Case(NamedTuple):
    """One walk, script or counterexample."""

    name: str
    outcome: RunVerdict | None
    """None if it was not tried."""
    seconds: float
    message: str
    """Why, if it did not pass."""
    said: str = ""
    """What should be told though it passed."""


def junit_of_cases(name: str, run: str, info: Info, cases: Iterable[Case]) -> str:
    """The document, ready to be written."""
    told = list(cases)
    suite = ElementTree.Element("testsuite", name=name, time=f"{sum(case.seconds for case in told):.3f}")
    if info.clock:
        suite.set("timestamp", info.clock.utc.removesuffix("Z"))
    properties = ElementTree.SubElement(suite, "properties")
    for key, value in (("run", run), ("command", info.command)):
        if value:
            ElementTree.SubElement(properties, "property", name=key, value=value)
    for case in told:
        element = ElementTree.SubElement(suite, "testcase", classname=name, name=case.name, time=f"{case.seconds:.3f}")
        if case.outcome in TAGS:
            outcome(element, TAGS[case.outcome], case.message, f"again: {info.command or 'not known how'}")
        elif case.outcome is None:
            ElementTree.SubElement(element, "skipped", message=case.message)
        elif case.said:
            ElementTree.SubElement(element, "system-out").text = case.said
    return finished(suite)
