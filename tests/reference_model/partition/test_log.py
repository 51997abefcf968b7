"""Where epochs begin and end, and what a truncation leaves."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

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


class LogOverLeaderEpochs(RuleBasedStateMachine):
    """A log through any leader epochs, appends, truncations and deletions of its beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.log, self.epoch = Log(), 0

    @rule(later=st.integers(1, 2))
    def new_leader_epoch(self, later: int) -> None:
        self.epoch += later
        self.log = self.log.assign(self.epoch, self.log.end)

    @rule(value=st.integers(0, 999_999))
    def append(self, value: int) -> None:
        self.log = self.log.append([Record(self.epoch, value)])

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        self.log = self.log.truncate(data.draw(st.integers(self.log.start, self.log.end)))

    @rule(data=st.data())
    def delete_before(self, data: st.DataObject) -> None:
        self.log = self.log.delete_before(data.draw(st.integers(self.log.start, self.log.end)))

    @invariant()
    def epochs_and_their_starts_ascend(self) -> None:
        epochs = self.log.epochs
        assert list(epochs) == sorted(set(epochs))
        assert all(before.start < after.start for before, after in pairwise(epochs))

    @invariant()
    def the_epoch_cache_is_what_the_records_say(self) -> None:
        for offset, record in enumerate(self.log.records, self.log.start):
            assert max(entry for entry in self.log.epochs if entry.start <= offset).epoch == record.epoch


TestLogOverLeaderEpochs = LogOverLeaderEpochs.TestCase
TestLogOverLeaderEpochs.settings = settings(max_examples=300, stateful_step_count=12)
