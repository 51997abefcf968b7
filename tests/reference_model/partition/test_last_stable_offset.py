"""How far a reader of committed records may read, and what it is told to drop."""

from __future__ import annotations

import pytest

from lockstep_model.parameters import Parameters
from lockstep_model.partition.known_producers import replayed
from lockstep_model.partition.last_stable_offset import (
    AbortedTxn,
    CompletedTxn,
    OngoingTxn,
    Transactions,
    aborted_between,
    followed,
    last_stable_offset,
    readable,
    replicated,
)
from lockstep_model.partition.producer_state import Batch, Marker
from lockstep_model.transactions import mutants

KAFKA = Parameters()


def replay(logged: list[tuple[int, Batch | Marker]], high_watermark: int) -> Transactions:
    return replicated(replayed(logged).transactions, high_watermark)


FIRST, SECOND, PLAIN = (
    Batch(1, 0, 0, transactional=True),
    Batch(2, 0, 0, transactional=True),
    Batch(3, 0, 0),
)
LOG: list[tuple[int, Batch | Marker]] = [
    (0, PLAIN),
    (1, FIRST),
    (2, SECOND),
    (3, Marker(2, 0, commit=False)),
    (4, PLAIN),
    (5, Marker(1, 0, commit=True)),
    (6, PLAIN),
]


@pytest.mark.parametrize(
    ("log_end", "high_watermark", "lso"),
    [
        (1, 1, 1),  # nothing open
        (2, 2, 1),
        (4, 4, 1),  # the second is over, the first is not
        (5, 1, 1),
        (6, 6, 6),
        (6, 5, 1),  # over, but its marker may be lost
        (7, 7, 7),
    ],
)
def test_the_last_stable_offset(log_end: int, high_watermark: int, lso: int) -> None:
    assert last_stable_offset(replay(LOG[:log_end], high_watermark), high_watermark, KAFKA) == lso


def test_a_mutant_lets_readers_pass_what_may_be_lost() -> None:
    mutant = Parameters(dropped=frozenset({mutants.UNREPLICATED_HOLDS_LSO}))
    assert last_stable_offset(replay(LOG[:6], 5), 5, mutant) == 5


def test_what_has_passed_stays_passed_when_the_high_watermark_falls_back() -> None:
    transactions = replicated(replay(LOG[:6], 5), 6)
    assert last_stable_offset(transactions, 5, KAFKA) == 5


def test_what_is_kept() -> None:
    assert replay(LOG[:5], 3) == Transactions(
        ongoing=(OngoingTxn(1, 1),), unreplicated=(CompletedTxn(2, 3),), aborted=(AbortedTxn(2, 2, 3, 1),)
    )


def test_a_marker_without_a_transaction_changes_nothing() -> None:
    before = replay(LOG, 7)
    assert followed(before, Marker(1, 0, commit=False), 7) == before


def test_a_second_batch_does_not_begin_a_second_transaction() -> None:
    before = replay(LOG[:2], 0)
    assert followed(before, FIRST, 2) == before


@pytest.mark.parametrize(("start", "end", "listed"), [(0, 7, 1), (3, 4, 1), (4, 7, 0), (0, 2, 0)])
def test_a_fetch_lists_what_was_aborted_in_its_range(start: int, end: int, listed: int) -> None:
    assert len(aborted_between(replay(LOG, 7), start, end)) == listed


def test_a_fetch_stops_looking_where_nothing_more_can_concern_it() -> None:
    transactions = Transactions(aborted=(AbortedTxn(2, 0, 3, 4), AbortedTxn(1, 2, 9, 10)))
    assert aborted_between(transactions, 0, 4) == transactions.aborted[:1]
    assert aborted_between(transactions, 0, 5) == transactions.aborted


def test_readers_get_what_was_not_aborted() -> None:
    transactions = replay(LOG, 7)
    assert list(readable(LOG, transactions.aborted, 7)) == [0, 1, 4, 6]
    assert list(readable(LOG, transactions.aborted, 2)) == [0, 1]
    assert list(readable(LOG, (), 7)) == [0, 1, 2, 4, 6]


def test_a_producer_may_commit_after_it_aborted() -> None:
    log: list[tuple[int, Batch | Marker]] = [
        (0, FIRST),
        (1, Marker(1, 0, commit=False)),
        (2, FIRST),
        (3, Marker(1, 0, commit=True)),
    ]
    assert list(readable(log, replay(log, 4).aborted, 4)) == [2]


def test_batches_are_read_whole() -> None:
    log: list[tuple[int, Batch | Marker]] = [(0, Batch(1, 0, 0, records=3, transactional=True)), (3, PLAIN)]
    assert list(readable(log, (), 3)) == [0, 1, 2]
