"""What real replicas tell of where logs begin and end."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.offsets import (
    DEBUGGING_REPLICA,
    EARLIEST,
    HIGH_WATERMARK,
    LATEST,
    Deleted,
    EpochEnd,
    Listed,
    ask_epoch_end,
    ask_log_end,
    delete_records,
    list_offsets,
    offset_for_leader_epoch,
)
from lockstep.clients.wire.produce import ACKS_LEADER, produce
from lockstep.clients.wire.records import Batch
from lockstep.errors import ClusterError
from tests.clients.wire.conftest import Wire, one

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


def written(wire: Wire) -> str:
    """A topic with three records, all of them committed."""
    topic = wire.topic()
    produce(wire.leader(topic), topic, 0, Batch(values=(b"a", b"b", b"c"))).answer()
    return topic


def test_a_leader_lists_the_first_and_the_last_offset(wire: Wire) -> None:
    topic = written(wire)
    epoch = wire.view(topic).leader_epoch
    leader = wire.leader(topic)
    latest = list_offsets(leader, topic, 0, LATEST, current_leader_epoch=epoch).answer()
    assert latest == Listed(error=ErrorCode.none, offset=3, leader_epoch=epoch)
    assert list_offsets(leader, topic, 0, EARLIEST).answer().offset == 0


def test_who_debugs_hears_of_the_very_end_and_from_everybody(wire: Wire) -> None:
    topic = written(wire)
    with wire.followers_cut_off(topic):
        produce(wire.leader(topic), topic, 0, one(), acks=ACKS_LEADER).answer()
        leader, follower = wire.leader(topic), wire.follower(topic)
        assert list_offsets(leader, topic, 0, LATEST).answer().offset == 3
        assert list_offsets(leader, topic, 0, LATEST, replica_id=DEBUGGING_REPLICA).answer().offset == 4
        assert list_offsets(follower, topic, 0, LATEST, replica_id=DEBUGGING_REPLICA).answer().offset == 3
        refused = list_offsets(follower, topic, 0, LATEST).answer()
        assert refused == Listed(error=ErrorCode.not_leader_or_follower, offset=-1, leader_epoch=-1)


def test_epochs_are_checked(wire: Wire) -> None:
    topic = written(wire)
    first = wire.view(topic).leader_epoch
    epoch = wire.elect_another(topic).leader_epoch
    leader = wire.leader(topic)
    for asked, error in ((epoch - 1, ErrorCode.fenced_leader_epoch), (epoch + 1, ErrorCode.unknown_leader_epoch)):
        assert list_offsets(leader, topic, 0, LATEST, current_leader_epoch=asked).answer().error is error
        refused = offset_for_leader_epoch(leader, topic, 0, first, current_leader_epoch=asked).answer()
        assert refused == EpochEnd(error=error, leader_epoch=-1, end=-1)


def test_a_leader_tells_where_an_epoch_ends(wire: Wire) -> None:
    topic = written(wire)
    first = wire.view(topic).leader_epoch
    epoch = wire.elect_another(topic).leader_epoch
    leader = wire.leader(topic)
    produce(leader, topic, 0, one()).answer()
    ended = offset_for_leader_epoch(leader, topic, 0, first, current_leader_epoch=epoch).answer()
    assert ended == EpochEnd(error=ErrorCode.none, leader_epoch=first, end=3)
    assert offset_for_leader_epoch(leader, topic, 0, epoch).answer().end == 4
    unknown = offset_for_leader_epoch(leader, topic, 0, epoch + 1).answer()
    assert unknown == EpochEnd(error=ErrorCode.none, leader_epoch=-1, end=-1)
    refused = offset_for_leader_epoch(wire.follower(topic), topic, 0, epoch).answer()
    assert refused.error is ErrorCode.not_leader_or_follower


def test_helpers_that_connect_by_themselves_raise_what_is_refused(wire: Wire) -> None:
    topic, cluster = written(wire), wire.cluster
    view = wire.view(topic)
    leader = cluster.direct(view.leader)
    assert ask_log_end(leader, topic, 0, access=cluster.access()) == 3
    assert ask_epoch_end(leader, topic, 0, view.leader_epoch, access=cluster.access()) == 3
    with pytest.raises(ClusterError, match="does not tell the end of nowhere-0: unknown_topic_or_partition"):
        ask_log_end(leader, "nowhere", 0, access=cluster.access())
    follower = cluster.direct(next(id_ for id_ in view.replicas if id_ != view.leader))
    with pytest.raises(ClusterError, match="not_leader_or_follower"):
        ask_epoch_end(follower, topic, 0, view.leader_epoch, access=cluster.access())


def test_records_are_deleted_up_to_an_offset(wire: Wire) -> None:
    topic = written(wire)
    leader = wire.leader(topic)
    deleted = delete_records(leader, topic, 0, 2).answer(30.0)
    assert deleted == Deleted(error=ErrorCode.none, low_watermark=2)
    assert list_offsets(leader, topic, 0, EARLIEST).answer().offset == 2
    assert delete_records(leader, topic, 0, HIGH_WATERMARK).answer(30.0).low_watermark == 3


def test_what_is_not_committed_cannot_be_deleted(wire: Wire) -> None:
    topic = written(wire)
    assert delete_records(wire.leader(topic), topic, 0, 4).answer().error is ErrorCode.offset_out_of_range
    assert delete_records(wire.follower(topic), topic, 0, 1).answer().error is ErrorCode.not_leader_or_follower
