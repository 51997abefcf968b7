"""Where epochs begin and end, and what a truncation leaves."""

from __future__ import annotations

import random

import pytest

from lockstep_model.partition.log import EpochEnd, EpochStart, Log, Record, starting_at
from tests.reference_model.replicas import log


def test_a_record_of_a_new_epoch_begins_it() -> None:
    assert log(1, 1, 3).epochs == (EpochStart(1, 0), EpochStart(3, 2))
    assert log(1, 1, 3).latest_epoch == 3
    assert Log().latest_epoch == -1


def test_an_epoch_without_records_gives_way_to_the_next() -> None:
    led_twice = log(1).assign(2, 1).assign(3, 1)

    assert led_twice.epochs == (EpochStart(1, 0), EpochStart(3, 1))
    assert led_twice.append([Record(3, 7)]).epochs == led_twice.epochs


def test_an_epoch_that_is_entered_again_stays_where_it_began() -> None:
    assert log(1, 1).assign(1, 2) == log(1, 1)


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (4, EpochEnd(4, 5)),  # the latest: up to the end of the log
        (5, None),  # above all
        (-1, None),
        (0, EpochEnd(0, 0)),  # below all: where the first begins
        (1, EpochEnd(1, 2)),
        (2, EpochEnd(1, 2)),  # between two: the lower one
        (3, EpochEnd(3, 4)),
    ],
)
def test_the_end_of_an_epoch(epoch: int, end: EpochEnd | None) -> None:
    assert log(1, 1, 3, 3, 4).end_offset_for(epoch) == end


def test_a_new_leader_knows_the_end_of_epochs_that_it_has_no_record_of() -> None:
    assert log(1, 1).assign(3, 2).end_offset_for(2) == EpochEnd(1, 2)
    assert log(1, 1).end_offset_for(2) is None


def test_truncation_forgets_epochs_that_begin_at_the_new_end() -> None:
    assert log(1, 1, 2, 2).truncate(2) == log(1, 1)
    assert log(1, 1, 2, 2).truncate(3) == log(1, 1, 2)
    assert log(1, 1).assign(2, 2).truncate(2) == log(1, 1)
    assert log(1, 1).truncate(9) == log(1, 1)
    assert log(1, 1).truncate(0) == Log()


def test_deleted_records_leave_their_epoch_at_the_new_start() -> None:
    deleted = log(1, 1, 2, 2).delete_before(3)

    assert (deleted.start, deleted.end) == (3, 4)
    assert deleted.epochs == (EpochStart(2, 3),)
    assert deleted.read(0, 9) == log(1, 1, 2, 2).records[3:]
    assert deleted.delete_before(1) == deleted
    assert deleted.truncate(1) == starting_at(1)


def test_whatever_happens_epochs_and_their_starts_ascend() -> None:
    """A random leader's life, many times: the cache is always what the records say, with one empty epoch at most."""
    chance = random.Random(7)
    for _ in range(300):
        one, epoch = Log(), 0
        for _ in range(12):
            deed = chance.randrange(4)
            if deed == 0:
                epoch += chance.randrange(1, 3)
                one = one.assign(epoch, one.end)
            elif deed == 1:
                one = one.append([Record(epoch, chance.randrange(1_000_000))])
            elif deed == 2:
                one = one.truncate(chance.randrange(one.start, one.end + 1))
            else:
                one = one.delete_before(chance.randrange(one.start, one.end + 1))
            assert list(one.epochs) == sorted(set(one.epochs))
            assert all(before.start < after.start for before, after in zip(one.epochs, one.epochs[1:], strict=False))
            for offset, record in enumerate(one.records, one.start):
                assert max(entry for entry in one.epochs if entry.start <= offset).epoch == record.epoch
