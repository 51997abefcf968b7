"""What the files of a walk's run directory hold, as values (docs/run-directory.md is the contract)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from lockstep_model.verdicts import RunVerdict


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `steps.jsonl`."""

    step: str
    action: dict[str, Any] = {}
    seen: str
    decisions: list[str] = []
    belief: int
    took_ns: int
    events: int = 0


class CauseCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions a kind of cause explains for certain, and how many it may explain."""

    certain: int
    possible: int


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried, and how often."""

    answers: dict[str, dict[str, int]] = {}
    pairs: dict[str, dict[str, int]] = {}
    causes: dict[str, CauseCount] = {}


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A possible state of one part of the cluster, and in how many states of the belief it occurs."""

    words: str
    states: int


class Believed(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the cluster, and all that it may have been."""

    part: str
    ways: list[Way] = []
    others: int = 0


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """What a node wrote to its log."""

    node: str
    lines: list[str] = []
    left_out: int = 0


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """Where the cluster did what the model does not permit."""

    step: int
    words: str
    seen: str
    permitted: list[str] = []
    decisions: list[str] = []
    states: int = 0
    belief: list[Believed] = []
    examples: list[list[str]] = []
    logs: list[Excerpt] = []
    shrunk: list[str] | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong model, held to the same walk."""

    name: str
    says: str
    diverged_after: int | None = None
    step: int | None = None
    seen: str | None = None
    seconds: float | None = None


class Turn(StrEnum):
    """Whether the bad turn of a counterexample was taken."""

    TAKEN = "taken"
    UNDECIDED = "undecided"
    PERMITTED = "permitted"
    NOT_TAKEN = "not taken"

    @property
    def outcome(self) -> RunVerdict:
        return {"taken": RunVerdict.VIOLATION, "undecided": RunVerdict.UNDECIDED}.get(self, RunVerdict.PASS)


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """An action of a counterexample, and what became of it."""

    position: int
    action: str
    outcome: str
    seen: str


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """The counterexample that the steps are of."""

    name: str
    breaks: str
    seen: bool = True
    turn: Turn
    finding: str | None = None
    notice: str | None = None
    stopped_by: str | None = None
    broken_model: str = ""
    lacks: str | None = None
    brokers: list[int] = []
    actions: list[Action] = []
    evidence: str | None = None
    attempts: int = 1
    steps: int = 0
    seconds: float = 0.0


class WalkVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of a walk."""

    verdict: RunVerdict
    run: str | None = None
    steps: int = 0
    seconds: float = 0.0
    quick_steps_per_second: float = 0.0
    largest_belief: int = 0
    coverage: Coverage = Coverage()
    wrong_model: str | None = None
    diverged: Diverged | None = None
    reason: str | None = None
    controls: list[Control] = []
    trace: Trace | msgspec.UnsetType = msgspec.UNSET
    """Only where a cluster was led along one."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Several numbers, in two."""

    least: float
    median: float


class WrongModel(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong model, held to several walks or scripts."""

    name: str
    says: str
    held_to: int = 0
    diverged_in: list[str] = []
    steps: Spread | None = None
    seconds: Spread | None = None


class SeededWalk(msgspec.Struct, frozen=True, kw_only=True):
    """One of several walks."""

    seed: int
    walk: WalkVerdict


class WalksVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of several walks."""

    verdict: RunVerdict
    run: str | None = None
    steps: int = 0
    seconds: float = 0.0
    coverage: Coverage = Coverage()
    walks: list[SeededWalk] = []
    wrong_models: list[WrongModel] = []


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A counterexample that cannot be replayed."""

    name: str
    why: str = ""


class RetraceVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict.json` of counterexamples."""

    verdict: RunVerdict
    run: str | None = None
    kafka: str = ""
    mode: str = ""
    seconds: float = 0.0
    wrong_model: str | None = None
    traces: list[Trace] = []
    skipped: list[Skipped] = []
