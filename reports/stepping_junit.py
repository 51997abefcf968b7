"""`junit.xml` of walks and of scripts, one test case each. What is undecided is an error: CI shows skips as green."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from xml.etree import ElementTree

from reports.content import Info, Outcome
from reports.junit import finished, outcome

TAGS = {Outcome.VIOLATION: "failure", Outcome.UNDECIDED: "error"}


class Case(NamedTuple):
    """One walk, or one script."""

    name: str
    outcome: Outcome
    seconds: float
    message: str
    """Why, if it did not pass."""


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
    return finished(suite)
