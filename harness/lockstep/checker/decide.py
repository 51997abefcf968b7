"""From the anomalies found to the verdict: one status and one sentence per guarantee, and the verdict of the run.

Nothing is held by default. A guarantee is held only if there was something to check it on, everything that it needs was
recorded, and no anomaly was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lockstep.checker.conditions import Conditions
from lockstep.checker.detectors import PERMITTED, UNDECIDED, VIOLATED
from lockstep.checker.sources import Sources, partition_of, run_of, topic_of
from lockstep.checker.statistics import Statistics
from lockstep.checker.verdict import ExpectationResult, GuaranteeResult
from lockstep.history.schema import Role
from lockstep.plan.plan import Expectation
from lockstep_model.guarantees import ACKS_ALL, GUARANTEES, Guarantee, Obligation, Requirement
from lockstep_model.verdicts import RunVerdict

HELD, NOT_APPLICABLE = Obligation.HELD.value, Obligation.NOT_APPLICABLE.value

_NAMES_SHOWN = 3
_NEEDED_TABLES = ("processes", "operations", "records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one guarantee is worded, and what it has to be checked on; the model says to whom it is promised."""

    needs: tuple[str, ...]
    held: str
    broken: str


RULES: dict[str, Rule] = {
    "no-lost-acks": Rule(
        needs=("acknowledged",),
        held="all {acknowledged:,} acknowledged records are in the logs, which were read to their ends",
        broken="{count:,} of {acknowledged:,} acknowledged records are not in the logs, which were read to their ends",
    ),
    "one-value-per-offset": Rule(
        needs=("acknowledged", "read"),
        held="every offset read or acknowledged holds one value, in {partitions}",
        broken="offsets with two values, or not with the one that was acknowledged there: {count:,}",
    ),
    "no-duplicates": Rule(
        needs=("read",),
        held="none of {read:,} reads found a value in two places",
        broken="values in more than one place: {count:,}",
    ),
    "no-phantoms": Rule(
        needs=("read",),
        held="all {read:,} reads returned values that had been sent",
        broken="records read that no producer sent, or whose send certainly failed: {count:,}",
    ),
    "real-time-order": Rule(
        needs=("acknowledged",),
        held="no record precedes one that was acknowledged before it was sent, of {acknowledged:,} acknowledged",
        broken="records that precede one acknowledged before they were sent: {count:,}",
    ),
    "monotonic-reads": Rule(
        needs=("read",),
        held="no reader went backwards in {read:,} reads",
        broken="times that a reader went backwards: {count:,}",
    ),
}

_LACKING = {"acknowledged": "no write was acknowledged", "read": "nothing was read"}


def decide(
    r: int,
    sources: Sources,
    conditions: Conditions,
    statistics: Statistics,
    found: Mapping[tuple[str, str], int],
) -> list[GuaranteeResult]:
    """`found` counts anomalies by guarantee and effect."""
    return [
        _decide(guarantee, r, sources, statistics, found, _requirements(guarantee, r, sources, conditions, statistics))
        for guarantee in GUARANTEES
    ]


def compare(expectations: Sequence[Expectation], guarantees: Sequence[GuaranteeResult]) -> list[ExpectationResult]:
    """What the scenario expected, beside what came out."""
    status = {guarantee.name: guarantee.status for guarantee in guarantees}
    return [
        ExpectationResult(
            guarantee=expected.guarantee, status=expected.status, met=status.get(expected.guarantee) == expected.status
        )
        for expected in expectations
    ]


def overall(guarantees: Sequence[GuaranteeResult], doubts: Sequence[str]) -> RunVerdict:
    """A run that tried less than it says, or did not show what it is for, cannot pass, though it can fail."""
    statuses = {guarantee.status for guarantee in guarantees}
    if VIOLATED in statuses:
        return RunVerdict.VIOLATION
    return RunVerdict.UNDECIDED if UNDECIDED in statuses or doubts else RunVerdict.PASS


def doubts(
    unproven: Sequence[str], guarantees: Sequence[GuaranteeResult], expectations: Sequence[ExpectationResult]
) -> list[str]:
    """Why the verdict is not what the guarantees alone would say."""
    status = {guarantee.name: guarantee.status for guarantee in guarantees}
    said = [f"no proof that it bit: {'; '.join(unproven)}"] if unproven else []
    return said + [
        f"this scenario is there to show {it.guarantee} {it.status}, and it came out as "
        f"{status.get(it.guarantee, 'unknown')}"
        for it in expectations
        if not it.met
    ]


def _decide(
    guarantee: Guarantee,
    r: int,
    sources: Sources,
    statistics: Statistics,
    found: Mapping[tuple[str, str], int],
    requirements: Sequence[Requirement],
) -> GuaranteeResult:
    name, rule = guarantee.name, RULES[guarantee.name]
    violated, permitted, undecided = (found.get((name, effect), 0) for effect in (VIOLATED, PERMITTED, UNDECIDED))
    excuses = list(dict.fromkeys(one.reason for one in requirements if one.required is not Obligation.HELD))
    words = {
        "acknowledged": statistics.acknowledged,
        "read": statistics.read,
        "partitions": _counted(len(statistics.acknowledged_by_log), "partition"),
    }

    def result(status: str, reason: str) -> GuaranteeResult:
        return GuaranteeResult(name=name, status=status, reason=reason, count=violated + permitted + undecided)

    if violated:
        return result(VIOLATED, rule.broken.format(count=violated, **words))
    doubt = _doubt(name, rule, r, sources, statistics, undecided)
    if doubt:
        return result(UNDECIDED, doubt)
    if permitted:
        return result(PERMITTED, "; ".join([rule.broken.format(count=permitted, **words), *excuses]))
    if excuses and all(one.required is not Obligation.HELD for one in requirements):
        return result(NOT_APPLICABLE, f"it did not happen, though {excuses[0]}")
    return result(HELD, rule.held.format(**words))


def _counted(number: int, one: str) -> str:
    return f"{number} {one}" if number == 1 else f"{number} {one}s"


def _requirements(
    guarantee: Guarantee, r: int, sources: Sources, conditions: Conditions, statistics: Statistics
) -> list[Requirement]:
    """The promises to every producer and consumer of the run, in every log that was written; unknown settings owe all.

    Writers that gave up records were owed as much as others before and after.
    """
    writers = [process for process in sources.processes if process.r == r and process.role == Role.WRITER]
    settings = {
        (ACKS_ALL if one.acks is None else one.acks, True if one.idempotent is None else one.idempotent)
        for one in writers
    }
    if guarantee.to_readers:
        settings.add((ACKS_ALL, True))
    return [
        conditions.required(guarantee, log, acks=acks, idempotent=idempotent, given_up=given_up)
        for log in statistics.acknowledged_by_log
        for acks, idempotent in sorted(settings)
        for given_up in ((False, True) if statistics.unknown else (False,))
    ]


def _doubt(name: str, rule: Rule, r: int, sources: Sources, statistics: Statistics, undecided: int) -> str | None:
    """Why it cannot be told, if it cannot."""
    torn = [f"{table}.jsonl" for table in _NEEDED_TABLES if table in sources.histories[r].meta.torn]
    if torn:
        return f"the recorder died in the middle of a line ({', '.join(torn)})"
    for need in rule.needs:
        if not getattr(statistics, need):
            return _LACKING[need]
    if name == "no-lost-acks":
        proven = {end.log for end in sources.ends}
        written = [log for log, acknowledged in statistics.acknowledged_by_log.items() if acknowledged]
        unread = sorted(log for log in written if log not in proven)
        if unread:
            names = ", ".join(log_name(sources, log) for log in unread[:_NAMES_SHOWN])
            more = ", ..." if len(unread) > _NAMES_SHOWN else ""
            return f"{len(unread)} of {len(written)} partitions were not read to their ends ({names}{more})"
    if undecided:
        return f"{undecided} anomalies cannot be told from what the recorder did not get to write down"
    return None


def log_name(sources: Sources, log: int) -> str:
    return f"{sources.histories[run_of(log)].meta.topics[topic_of(log)].name}-{partition_of(log)}"
