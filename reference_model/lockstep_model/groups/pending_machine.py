"""Transactional offset commits beside plain ones, with delayed markers and OffsetFetch.

Each commit has a higher offset than commits of earlier records. One group, one partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from lockstep_model.errors import Error
from lockstep_model.groups.exploration import commits_rise
from lockstep_model.groups.generations import ClassicGroup
from lockstep_model.groups.offsets import (
    NO_OFFSET,
    FetchedOffset,
    OffsetCommit,
    OffsetFetch,
    Offsets,
    ProducerId,
    commit,
    end_transaction,
    fetch,
)
from lockstep_model.groups.parameters import GroupParameters
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule, Transition

ONLY_COMMITTED_COUNTS = "no offset counts but of a plain commit, or of a transaction that was committed"
ONLY_COMMITTED_IS_READ = "pending transactional offsets are never visible"
STABLE_IS_NEWEST = "who requires stable offsets never sees one from before a transaction that was committed"
NEWEST_COUNTS = "an offset is never overwritten by one whose record came before its own"

PARTITION = 0
GROUP = ClassicGroup()


class Transaction(StrEnum):
    """State of a producer's transaction."""

    NONE = "none"
    OPEN = "open"
    COMMITTING = "decided to commit; the marker is not in the log of offsets yet"
    ABORTING = "decided to abort; the marker is not in the log of offsets yet"


class OffsetProducer(NamedTuple):
    """A transactional producer that sends offsets."""

    transaction: Transaction = Transaction.NONE
    offset: int = NO_OFFSET
    """The last offset that it sent in the transaction."""


DecidedOffsets: TypeAlias = frozenset[int]
"""Offsets of plain commits and of transactions whose EndTxn committed."""


class OffsetReading(NamedTuple):
    """An OffsetFetch response, with the newest decided offset at that time."""

    answer: FetchedOffset = FetchedOffset(Error.NONE)
    newest: int = NO_OFFSET
    stable: bool = False


OFFSETS, COUNT, DECIDED, READING, FIRST_PRODUCER = range(5)


def pending_machine(parameters: GroupParameters, *, producers: int = 2, commits: int = 4) -> Machine:
    """Producers and a plain consumer, with this many commits in all."""
    actions = _Actions(parameters, commits)
    return Machine(
        initial=(Offsets(), 0, frozenset(), OffsetReading(), *(OffsetProducer() for _ in range(producers))),
        rules=(
            *actions.plain_rules(),
            *(rule for producer in range(producers) for rule in actions.rules_of(producer)),
        ),
        invariants=(
            Invariant(name=ONLY_COMMITTED_COUNTS, reads=(OFFSETS, DECIDED), holds=_only_committed_counts),
            Invariant(name=ONLY_COMMITTED_IS_READ, reads=(READING, DECIDED), holds=_only_committed_is_read),
            Invariant(name=STABLE_IS_NEWEST, reads=(READING,), holds=_stable_is_newest),
            Transition(name=NEWEST_COUNTS, place=OFFSETS, holds=commits_rise),
        ),
    )


class _Actions(NamedTuple):
    parameters: GroupParameters
    commits: int

    def plain_rules(self) -> Iterator[Rule]:
        yield Rule(name="a consumer commits", reads=(OFFSETS, COUNT, DECIDED), effect=self.commit)
        reads = (READING, OFFSETS, DECIDED)
        yield Rule(name="a reader fetches", reads=reads, effect=lambda *parts: self.fetch(*parts, stable=False))
        yield Rule(name="a reader requires stable", reads=reads, effect=lambda *parts: self.fetch(*parts, stable=True))

    def rules_of(self, producer: ProducerId) -> Iterator[Rule]:
        place = FIRST_PRODUCER + producer

        def sends(transaction: OffsetProducer, offsets: Offsets, count: int) -> Outcomes:
            """TxnOffsetCommit"""
            if transaction.transaction in (Transaction.NONE, Transaction.OPEN) and count < self.commits:
                request = OffsetCommit(((PARTITION, count),), producer=producer)
                after = commit(GROUP, offsets, request, parameters=self.parameters).offsets
                yield OffsetProducer(Transaction.OPEN, count), after, count + 1

        def decides(transaction: OffsetProducer, decided: DecidedOffsets) -> Outcomes:
            """EndTxn: the offset is decided, or dropped for good."""
            if transaction.transaction is Transaction.OPEN:
                yield transaction._replace(transaction=Transaction.ABORTING), decided
                yield transaction._replace(transaction=Transaction.COMMITTING), decided | {transaction.offset}

        def marker_arrives(transaction: OffsetProducer, offsets: Offsets) -> Outcomes:
            if transaction.transaction in (Transaction.COMMITTING, Transaction.ABORTING):
                committed = transaction.transaction is Transaction.COMMITTING
                yield (
                    OffsetProducer(),
                    end_transaction(offsets, producer, committed=committed, parameters=self.parameters),
                )

        yield Rule(name=f"producer {producer} sends offsets", reads=(place, OFFSETS, COUNT), effect=sends)
        yield Rule(name=f"producer {producer} ends its transaction", reads=(place, DECIDED), effect=decides)
        yield Rule(name=f"the marker of producer {producer} arrives", reads=(place, OFFSETS), effect=marker_arrives)

    def commit(self, offsets: Offsets, count: int, decided: DecidedOffsets) -> Outcomes:
        if count < self.commits:
            request = OffsetCommit(((PARTITION, count),))
            after = commit(GROUP, offsets, request, parameters=self.parameters).offsets
            yield after, count + 1, decided | {count}

    def fetch(self, _: OffsetReading, offsets: Offsets, decided: DecidedOffsets, *, stable: bool) -> Outcomes:
        request = OffsetFetch(PARTITION, require_stable=stable)
        answer = fetch(GROUP, offsets, request, parameters=self.parameters)
        yield OffsetReading(answer, max(decided, default=NO_OFFSET), stable), offsets, decided


def _only_committed_counts(offsets: Offsets, decided: DecidedOffsets) -> bool:
    return {offset for _, offset in offsets.committed} <= decided


def _only_committed_is_read(reading: OffsetReading, decided: DecidedOffsets) -> bool:
    return reading.answer.offset in decided | {NO_OFFSET}


def _stable_is_newest(reading: OffsetReading) -> bool:
    refused = reading.answer.error is Error.UNSTABLE_OFFSET_COMMIT
    return not reading.stable or refused or reading.answer.offset >= reading.newest
