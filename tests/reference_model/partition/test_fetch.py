"""What consumers read, from leaders and followers."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.partition.fetch import Fetch, Isolation, fetch, nearer_replicas
from lockstep_model.partition.log import EpochEnd, Log, Record
from lockstep_model.partition.producer_state import Batch, Marker
from lockstep_model.partition.replica import Replica
from tests.reference_model.replicas import KRAFT, exchange, log, partition, replica

COMMITTED, UNCOMMITTED, END = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED, Isolation.LOG_END


def offsets(one: Replica, request: Fetch) -> list[int]:
    fetched = fetch(KRAFT, one, request)
    assert fetched.error is Error.NONE
    return [request.offset + index for index, _ in enumerate(fetched.records)]


def test_a_consumer_reads_up_to_the_high_watermark() -> None:
    leader = replica(0, has=log(0, 0, 0), high_watermark=2)

    assert offsets(leader, Fetch(0)) == [0, 1]
    assert offsets(leader, Fetch(2)) == offsets(leader, Fetch(3)) == []
    assert offsets(leader, Fetch(1, END)) == [1, 2]
    assert len(fetch(KRAFT, leader, Fetch(0), limit=1).records) == 1


def test_beyond_the_log_is_out_of_range() -> None:
    leader = replica(0, has=log(0, 0, 0).delete_before(1), high_watermark=3)

    assert fetch(KRAFT, leader, Fetch(4)).error is Error.OFFSET_OUT_OF_RANGE
    assert fetch(KRAFT, leader, Fetch(0)).error is Error.OFFSET_OUT_OF_RANGE
    assert fetch(KRAFT, leader, Fetch(1)).log_start == 1


@pytest.mark.parametrize(
    ("known", "error"),
    [(0, Error.FENCED_LEADER_EPOCH), (1, Error.NONE), (2, Error.UNKNOWN_LEADER_EPOCH), (None, Error.NONE)],
)
def test_an_epoch_that_a_consumer_knows(known: int | None, error: Error) -> None:
    leader = replica(0, partition(epoch=1))

    assert fetch(KRAFT, leader, Fetch(0, leader_epoch=known)).error is error


@pytest.mark.parametrize(
    ("last_fetched", "offset", "diverging"),
    [
        (0, 1, None),
        (2, 3, None),
        (0, 2, None),
        (0, 3, EpochEnd(0, 2)),  # its third record is of an epoch that ended before
        (1, 3, EpochEnd(0, 2)),
        (2, 9, EpochEnd(2, 4)),
    ],
)
def test_a_reader_whose_last_record_is_not_here_is_told_where_they_part(
    last_fetched: int, offset: int, diverging: EpochEnd | None
) -> None:
    leader = replica(0, partition(epoch=2), has=log(0, 0, 2, 2), high_watermark=4)
    fetched = fetch(KRAFT, leader, Fetch(offset, last_fetched_epoch=last_fetched))

    assert (fetched.error, fetched.diverging, fetched.high_watermark) == (Error.NONE, diverging, 4)
    assert bool(fetched.records) == (diverging is None)


def test_an_epoch_that_nobody_knows_or_that_is_deleted_is_out_of_range() -> None:
    leader = replica(0, partition(epoch=2), has=log(0, 0, 2, 2).delete_before(3), high_watermark=4)

    assert fetch(KRAFT, leader, Fetch(4, last_fetched_epoch=3)).error is Error.OFFSET_OUT_OF_RANGE
    assert fetch(KRAFT, leader, Fetch(2, last_fetched_epoch=1)).error is Error.OFFSET_OUT_OF_RANGE
    assert fetch(KRAFT, leader, Fetch(4, last_fetched_epoch=2)).error is Error.NONE


def test_a_follower_answers_with_its_own_offsets_who_may_read_from_it() -> None:
    follower = replica(1, has=log(0, 0), high_watermark=1)

    assert offsets(follower, Fetch(0)) == [0]
    assert fetch(KRAFT, follower, Fetch(0, of_leader_only=True)).error is Error.NOT_LEADER_OR_FOLLOWER
    assert fetch(KRAFT, follower, Fetch(0)).high_watermark == 1


def test_whom_a_leader_may_send_a_consumer_to() -> None:
    leader, one = replica(0, partition("01"), has=log(0, 0)), replica(1, partition("01"))
    leader, one = exchange(leader, one)
    leader, one = exchange(leader, one)
    leader, _ = exchange(leader, replica(2, partition("01"), has=log(0, 0)))

    assert nearer_replicas(leader, 2) == {1}
    assert nearer_replicas(leader, 3) == frozenset()
    assert nearer_replicas(one, 0) == frozenset()


def transactional(*logged: Batch | Marker) -> Log:
    return Log().append(Record(0, value, batch) for value, batch in enumerate(logged))


def begun(producer_id: int) -> Batch:
    return Batch(producer_id, 0, 0, transactional=True)


def test_a_reader_of_committed_records_stops_at_the_first_open_transaction() -> None:
    opened = transactional(Batch(1, 0, 0), begun(2), Batch(3, 0, 0))
    leader = replica(0, has=opened, high_watermark=3)

    assert offsets(leader, Fetch(0, COMMITTED)) == [0]
    assert offsets(leader, Fetch(0, UNCOMMITTED)) == [0, 1, 2]
    assert fetch(KRAFT, leader, Fetch(0)).last_stable_offset == 1


def test_a_transaction_holds_readers_until_its_end_is_committed() -> None:
    ended = transactional(begun(2), Marker(2, 0, commit=True))

    assert fetch(KRAFT, replica(0, has=ended, high_watermark=1), Fetch(0, COMMITTED)).last_stable_offset == 0
    assert fetch(KRAFT, replica(0, has=ended, high_watermark=2), Fetch(0, COMMITTED)).last_stable_offset == 2


def test_readers_of_committed_records_are_told_what_was_aborted() -> None:
    leader = replica(0, has=transactional(begun(2), Marker(2, 0, commit=False)), high_watermark=2)

    told = fetch(KRAFT, leader, Fetch(0, COMMITTED))
    assert [(one.producer_id, one.first_offset) for one in told.aborted] == [(2, 0)]
    assert fetch(KRAFT, leader, Fetch(0)).aborted == ()


def test_more_may_be_listed_than_was_read_but_nothing_less() -> None:
    """Two transactions were aborted, and only the first is in what is read."""
    logged = transactional(begun(2), Marker(2, 0, commit=False), begun(3), Marker(3, 0, commit=False), begun(4))
    leader = replica(0, has=logged, high_watermark=5)

    told = fetch(KRAFT, leader, Fetch(0, COMMITTED), limit=2)
    assert told.lists([(2, 0)])
    assert told.lists([(2, 0), (3, 2)])
    assert not told.lists([])
    assert not told.lists([(3, 2)])
    assert not told.lists([(2, 0), (4, 4)])  # which is open
    assert fetch(KRAFT, leader, Fetch(4, COMMITTED)).lists([])
    assert not fetch(KRAFT, leader, Fetch(0)).lists([(2, 0)])
