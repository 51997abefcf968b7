"""Coverage of walks: the actions taken, their responses, their order, and the causes of controller decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

import msgspec

from lockstep.stepper.driver.actions import (
    AddPartition,
    Ask,
    AskEpochEnd,
    AskMetadata,
    Elect,
    EndTransaction,
    Enter,
    Exit,
    GroupStep,
    InitProducer,
    Read,
    Reassign,
    Request,
    SetMinIsr,
    Step,
    Transact,
    Wait,
    Write,
)
from lockstep.stepper.driver.driver import Done
from lockstep.stepper.driver.timeouts import NOT_YET
from lockstep_model.errors import Error
from lockstep_model.metadata import PartitionMetadataResponse


class CauseCount(msgspec.Struct, frozen=True, kw_only=True):
    """Number of controller decisions with one kind of cause. A decision with several such causes counts once."""

    certain: int
    """Decisions whose every explanation contains such a cause, of the same broker."""
    possible: int
    """Decisions with at least one explanation that contains such a cause; includes the certain ones."""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over one or more walks."""

    answers: dict[str, dict[str, int]]
    """For each kind of action, the number of each response: an error code, `answered`, or no response."""
    pairs: dict[str, dict[str, int]]
    """For each kind of action, the number of each kind of action right after it."""
    causes: dict[str, CauseCount]
    """For each kind of cause, the number of controller decisions that it explains."""


def coverage(*walks: Sequence[Done]) -> Coverage:
    """Coverage of one walk, or of several together."""
    steps = list(chain.from_iterable(walks))
    return Coverage(
        answers=_table((kind(done.step), answer(done)) for done in steps),
        pairs=_table(pair for walk in walks for pair in pairwise(kind(done.step) for done in walk)),
        causes=_causes(steps),
    )


def kind(step: Step) -> str:
    """The kind of an action, without its broker, offset and the like."""
    if isinstance(step, GroupStep) and not isinstance(step, Enter | Exit):
        return f"{type(step).__name__.lower()} {step.claims}"
    match step:
        case Write():
            idempotent = "" if step.sender is None else ", idempotent"
            who = idempotent if step.transaction is None else ", transactional"
            return f"write with acks={step.acks}{who}{', damaged' if step.corrupt else ''}"
        case Read():
            return f"read to the {step.reach}"
        case Ask():
            return "ask for the log start" if step.earliest else f"ask for the {step.reach}"
        case AskEpochEnd():
            return "ask for an epoch's end"
        case AskMetadata():
            return "ask for metadata"
        case SetMinIsr():
            return "set min.insync.replicas"
        case InitProducer():
            return "init a producer"
        case AddPartition():
            return "add the partition to a transaction"
        case EndTransaction():
            return "commit a transaction" if step.commit else "abort a transaction"
        case Elect():
            return "elect uncleanly" if step.unclean else "elect"
        case Wait():
            return f"wait until {step.until}"
        case _:
            return type(step).__name__.lower()


def answer(done: Done) -> str:
    """The kind of an action's result: an error code rather than offsets or records."""
    if isinstance(done.step, Request | Transact | GroupStep):
        return _answered(done)
    match done.step:
        case Elect() | Reassign():
            return "done" if done.seen == "done" else "refused"
        case AskMetadata() if isinstance(done.reply, PartitionMetadataResponse):
            return _named(done.reply.partition.error)
        case SetMinIsr() | Wait():
            return done.seen
        case _:
            return "done"


def _answered(done: Done) -> str:
    if done.reply is None:
        return NOT_YET if done.seen.startswith(NOT_YET) else "no answer"
    return _named(getattr(done.reply, "error", Error.NONE))


def _named(error: Error) -> str:
    return "answered" if error is Error.NONE else str(error.name)


def _table(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row, column in pairs:
        table[row][column] += 1
    return {row: dict(sorted(table[row].items())) for row in sorted(table)}


def _causes(steps: Sequence[Done]) -> dict[str, CauseCount]:
    explained = [why for done in steps for why in done.explained]
    certain = Counter(kind for why in explained for kind in {cause.kind for cause in why.certain})
    possible = Counter(kind for why in explained for kind in {cause.kind for cause in why.possible})
    return {kind: CauseCount(certain=certain[kind], possible=possible[kind]) for kind in sorted(possible)}
