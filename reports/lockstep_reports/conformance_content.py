"""What the files of a conformance run hold, as values (docs/run-directory.md is the contract)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lockstep_model.verdicts import RunVerdict
from lockstep_reports.walk_content import Diverged, WrongModel


class Finding(StrEnum):
    """What was found of a claim."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"

    @property
    def outcome(self) -> RunVerdict:
        return {"holds": RunVerdict.PASS, "violated": RunVerdict.VIOLATION, "undecided": RunVerdict.UNDECIDED}[self]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim in `conformance.json`."""

    claim: int
    family: str = ""
    kafka: str = ""
    mode: str = ""
    wording: str = ""
    fact: str = ""
    observed: str = ""
    verdict: Finding
    evidence: list[str] = []
    seconds: float = 0.0


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A claim in `verdict.json`."""

    claim: int
    verdict: Finding
    seconds: float = 0.0
    scripts: list[str] = []
    evidence: str | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What one script found."""

    name: str
    claims: list[int] = []
    shows: str = ""
    finding: Finding
    attempts: int = 1
    steps: int = 0
    seconds: float = 0.0
    evidence: str | None = None
    diverged: Diverged | None = None


class ConformanceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of such a run."""

    verdict: RunVerdict
    run: str | None = None
    kafka: str = ""
    mode: str = ""
    seconds: float = 0.0
    claims: list[ClaimVerdict] = []
    scripts: list[Script] = []
    wrong_models: list[WrongModel] = []
