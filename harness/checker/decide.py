"""From what was found to what it means: one status and one sentence per guarantee, and the verdict of the run.

Nothing is held by default. A guarantee is held only if there was something to check it on, everything that it needs was
recorded, and no anomaly was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.checker.detectors import PERMITTED, UNDECIDED, VIOLATED
from harness.checker.sources import Process, Sources, partition_of, run_of, topic_of
from harness.checker.statistics import Statistics
from harness.checker.verdict import GuaranteeResult
from harness.history.schema import Role
from reference_model.guarantees import GUARANTEES

HELD, NOT_APPLICABLE = "held", "not-applicable"

_NAMES_SHOWN = 3
_NEEDED_TABLES = ("processes", "operations", "records")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one guarantee is worded, what it has to be checked on, and to whom it is promised."""

    needs: tuple[str, ...]
    held: str
    broken: str
    unpromised: str = ""
    promised: Callable[[Process], bool | None] = lambda _: True


def _asked_for_all(writer: Process) -> bool | None:
    return None if writer.acks is None else writer.acks == -1


def _idempotent(writer: Process) -> bool | None:
    return writer.idempotent


RULES: dict[str, Rule] = {
    "no-lost-acks": Rule(
        needs=("acknowledged",),
        held="all {acknowledged:,} acknowledged records are in the logs, which were read to their ends",
        broken="{count:,} of {acknowledged:,} acknowledged records are not in the logs, which were read to their ends",
        unpromised="acks={acks} promises {copies}",
        promised=_asked_for_all,
    ),
    "one-value-per-offset": Rule(
        needs=("acknowledged", "read"),
        held="every offset read or acknowledged holds one value, in {partitions} partitions",
        broken="offsets with two values, or not with the one that was acknowledged there: {count:,}",
        unpromised="acks={acks} promises {copies}",
    ),
    "no-duplicates": Rule(
        needs=("read",),
        held="none of {read:,} reads found a value in two places",
        broken="values in more than one place: {count:,}",
        unpromised="only idempotent writers are promised otherwise",
        promised=_idempotent,
    ),
    "no-phantoms": Rule(
        needs=("read",),
        held="all {read:,} reads returned values that had been sent",
        broken="records read that nobody sent, or whose send certainly failed: {count:,}",
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
    r: int, sources: Sources, statistics: Statistics, found: Mapping[tuple[str, str], int]
) -> list[GuaranteeResult]:
    """`found` counts anomalies by guarantee and effect."""
    return [_decide(guarantee.name, r, sources, statistics, found) for guarantee in GUARANTEES]


def overall(guarantees: Sequence[GuaranteeResult], unproven: Sequence[str]) -> str:
    """A run whose faults did not all bite has tried less than it says: it cannot pass, though it can fail."""
    statuses = {guarantee.status for guarantee in guarantees}
    if VIOLATED in statuses:
        return "violation"
    return "undecided" if UNDECIDED in statuses or unproven else "pass"


def _decide(
    name: str, r: int, sources: Sources, statistics: Statistics, found: Mapping[tuple[str, str], int]
) -> GuaranteeResult:
    rule = RULES[name]
    violated, permitted, undecided = (found.get((name, effect), 0) for effect in (VIOLATED, PERMITTED, UNDECIDED))
    writers = [process for process in sources.processes if process.r == r and process.role == Role.WRITER]
    words = {
        "acknowledged": statistics.acknowledged,
        "read": statistics.read,
        "partitions": len(statistics.acknowledged_by_log),
        **_acks_words(writers),
    }

    def result(status: str, reason: str) -> GuaranteeResult:
        return GuaranteeResult(name=name, status=status, reason=reason, count=violated + permitted + undecided)

    if violated:
        return result(VIOLATED, rule.broken.format(count=violated, **words))
    doubt = _doubt(name, rule, r, sources, statistics, undecided)
    if doubt:
        return result(UNDECIDED, doubt)
    if permitted:
        return result(PERMITTED, f"{rule.broken.format(count=permitted, **words)}; {rule.unpromised.format(**words)}")
    if writers and all(rule.promised(writer) is False for writer in writers):
        return result(NOT_APPLICABLE, f"it did not happen, though {rule.unpromised.format(**words)}")
    return result(HELD, rule.held.format(**words))


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


def _acks_words(writers: Sequence[Process]) -> dict[str, str]:
    less = sorted({writer.acks for writer in writers if writer.acks is not None and writer.acks != -1})
    return {
        "acks": " or ".join(map(str, less)),
        "copies": "no copy" if less == [0] else "one copy, the leader's",
    }
