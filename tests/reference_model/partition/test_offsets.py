"""First and last offsets, and where epochs end."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.partition.fetch import Isolation
from lockstep_model.partition.log import Log, Record
from lockstep_model.partition.offsets import (
    EndOfEpoch,
    Listed,
    ListOffsets,
    OffsetForLeaderEpoch,
    Timestamp,
    list_offsets,
    offset_for_leader_epoch,
)
from lockstep_model.partition.producer_state import Batch
from lockstep_model.partition.replica import learn
from tests.reference_model.replicas import BROKERS, KRAFT, log, partition, replica

LATEST = ListOffsets(Timestamp.LATEST)
DEBUGGING = ListOffsets(Timestamp.LATEST, Isolation.LOG_END, of_leader_only=False)


def test_the_latest_offset_is_the_end_of_what_may_be_read() -> None:
    leader = replica(0, has=log(0, 0), high_watermark=0)
    leader = leader._replace(
        leadership=leader.leadership and leader.leadership._replace(epoch_start=0), high_watermark=1
    )

    assert list_offsets(KRAFT, leader, LATEST) == Listed(Error.NONE, 1, leader_epoch=0)
    assert list_offsets(KRAFT, leader, DEBUGGING) == Listed(Error.NONE, 2, leader_epoch=0)


def test_a_reader_of_committed_records_is_told_the_last_stable_offset() -> None:
    opened = Log().append([Record(0, 1), Record(0, 2, Batch(7, 0, 0, transactional=True))])
    leader = replica(0, has=opened, high_watermark=2)

    assert list_offsets(KRAFT, leader, ListOffsets(Timestamp.LATEST, Isolation.READ_COMMITTED)).offset == 1


def test_a_new_leader_does_not_know_the_latest_until_it_has_committed_up_to_its_epoch() -> None:
    follower = replica(1, has=log(0, 0), high_watermark=1)
    leads = learn(KRAFT, follower, partition("12", leader=1, epoch=1, version=1), BROKERS)

    assert list_offsets(KRAFT, leads, LATEST) == Listed(Error.OFFSET_NOT_AVAILABLE)
    assert list_offsets(KRAFT, leads, DEBUGGING).offset == 2
    assert list_offsets(KRAFT, leads._replace(high_watermark=2), LATEST) == Listed(Error.NONE, 2, leader_epoch=1)


@pytest.mark.parametrize(
    ("version", "error", "epoch"),
    [(3, Error.LEADER_NOT_AVAILABLE, -1), (4, Error.LEADER_NOT_AVAILABLE, 1), (5, Error.OFFSET_NOT_AVAILABLE, 1)],
)
def test_older_clients_are_told_less(version: int, error: Error, epoch: int) -> None:
    follower = replica(1, has=log(0, 0), high_watermark=1)
    leads = learn(KRAFT, follower, partition("12", leader=1, epoch=1, version=1), BROKERS)
    request = LATEST._replace(version=version)

    assert list_offsets(KRAFT, leads, request).error is error
    assert list_offsets(KRAFT, leads._replace(high_watermark=2), request).leader_epoch == epoch


def test_any_replica_tells_its_end_to_who_debugs() -> None:
    follower = replica(1, has=log(0, 0))

    assert list_offsets(KRAFT, follower, DEBUGGING).offset == 2
    assert list_offsets(KRAFT, follower, LATEST).error is Error.NOT_LEADER_OR_FOLLOWER


def test_the_earliest_offset_with_the_epoch_that_begins_there() -> None:
    earliest = ListOffsets(Timestamp.EARLIEST)
    leader = replica(0, partition(epoch=5), has=log(1, 1, 2).delete_before(2))

    assert list_offsets(KRAFT, leader, earliest) == Listed(Error.NONE, 2, leader_epoch=2)
    assert list_offsets(KRAFT, replica(0, partition(epoch=5)), earliest) == Listed(Error.NONE, 0, leader_epoch=5)


@pytest.mark.parametrize(("known", "error"), [(4, Error.FENCED_LEADER_EPOCH), (6, Error.UNKNOWN_LEADER_EPOCH)])
def test_epochs_are_compared_first(known: int, error: Error) -> None:
    leader = replica(0, partition(epoch=5))

    assert list_offsets(KRAFT, leader, LATEST._replace(leader_epoch=known)).error is error
    assert offset_for_leader_epoch(leader, OffsetForLeaderEpoch(0, leader_epoch=known)).error is error


def test_where_an_epoch_ends() -> None:
    leader = replica(0, partition(epoch=5), has=log(1, 1, 3))

    assert offset_for_leader_epoch(leader, OffsetForLeaderEpoch(2)) == EndOfEpoch(Error.NONE, 1, 2)
    assert offset_for_leader_epoch(leader, OffsetForLeaderEpoch(5)) == EndOfEpoch(Error.NONE, 5, 3)
    assert offset_for_leader_epoch(leader, OffsetForLeaderEpoch(6)) == EndOfEpoch(Error.NONE)
    follower = replica(1, has=log(1))
    assert offset_for_leader_epoch(follower, OffsetForLeaderEpoch(1)).error is Error.NOT_LEADER_OR_FOLLOWER
