"""The words of a verdict, as `verdict.json` has them: of a run as a whole, and of one guarantee in it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class RunVerdict(StrEnum):
    """What a run, a walk, a script or a counterexample amounts to; the worst comes first."""

    VIOLATION = "violation"
    UNDECIDED = "undecided"
    PASS = "pass"  # noqa: S105 - not a password


class Status(StrEnum):
    """What a run shows of one guarantee."""

    HELD = "held"
    VIOLATED = "violated"
    PERMITTED = "permitted"
    """An anomaly happened, and nothing promised otherwise."""
    NOT_APPLICABLE = "not-applicable"
    UNDECIDED = "undecided"


def worst(verdicts: Iterable[RunVerdict]) -> RunVerdict:
    """The verdict on several runs: that of the worst of them, and a pass where there is none."""
    return min(verdicts, key=list(RunVerdict).index, default=RunVerdict.PASS)
