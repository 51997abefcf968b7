"""What real replicas answer to single fetches."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.fetch import Divergence, fetch
from lockstep.clients.wire.produce import produce
from lockstep.clients.wire.records import NO_PRODUCER, Batch
from lockstep.wait import wait_until
from tests.clients.wire.conftest import PATIENCE_S, Wire, one

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


def wait_high_watermark(connection: Connection, topic: str, offset: int) -> None:
    wait_until(
        lambda: fetch(connection, topic, 0, 0).answer().high_watermark == offset,
        timeout_s=PATIENCE_S,
        what="a replica to know that all is committed",
    )


def test_every_replica_tells_its_own_offsets(wire: Wire) -> None:
    topic = wire.topic()
    view = wire.view(topic)
    produce(wire.leader(topic), topic, 0, Batch(values=(b"a", b"b", b"c"))).answer()
    for replica in view.replicas:
        connection = wire.to(replica)
        wait_high_watermark(connection, topic, 3)
        fetched = fetch(connection, topic, 0, 1, current_leader_epoch=view.leader_epoch).answer()
        assert fetched.error is ErrorCode.none
        assert (fetched.last_stable_offset, fetched.log_start) == (3, 0)
        assert [(record.offset, record.value) for record in fetched.records] == [(1, b"b"), (2, b"c")]
        assert {record.partition_leader_epoch for record in fetched.records} == {view.leader_epoch}
        assert {record.producer for record in fetched.records} == {NO_PRODUCER}
        assert fetched.divergence is None
        assert fetched.preferred_read_replica is None


def test_there_is_nothing_above_the_end(wire: Wire) -> None:
    topic = wire.topic()
    leader = wire.leader(topic)
    produce(leader, topic, 0, one()).answer()
    assert fetch(leader, topic, 0, 1).answer().error is ErrorCode.none
    beyond = fetch(leader, topic, 0, 2).answer()
    assert (beyond.error, beyond.records, beyond.high_watermark) == (ErrorCode.offset_out_of_range, (), -1)


def test_a_partition_that_is_not_there(wire: Wire) -> None:
    topic = wire.topic()
    assert fetch(wire.leader(topic), topic, 7, 0).answer().error is ErrorCode.unknown_topic_or_partition


def test_bytes_end_in_the_middle_of_a_batch(wire: Wire) -> None:
    topic = wire.topic()
    leader = wire.leader(topic)
    for value in (b"a" * 1000, b"b" * 1000):
        produce(leader, topic, 0, one(value)).answer()
    fetched = fetch(leader, topic, 0, 0, max_bytes=1500).answer()
    assert [record.offset for record in fetched.records] == [0]
    assert fetched.high_watermark == 2


def test_who_names_its_rack_is_sent_to_the_replica_there(wire: Wire) -> None:
    topic = wire.topic()
    view, leader = wire.view(topic), wire.leader(topic)
    produce(leader, topic, 0, one()).answer()
    near = next(id_ for id_ in view.replicas if id_ != view.leader)
    rack = wire.cluster.broker(near).spec.rack or ""
    wait_until(
        lambda: fetch(leader, topic, 0, 0, rack=rack).answer().preferred_read_replica == near,
        timeout_s=PATIENCE_S,
        what="the leader to know that the other replica has it",
    )
    assert fetch(wire.to(near), topic, 0, 0, rack=rack).answer().preferred_read_replica is None


def test_who_waits_is_answered_when_there_is_something(wire: Wire) -> None:
    topic = wire.topic()
    waiting = fetch(wire.leader(topic), topic, 0, 0, max_wait_ms=int(PATIENCE_S * 1000))
    assert fetch(wire.leader(topic), topic, 0, 0).answer().records == ()
    assert not waiting.ready()
    produce(wire.leader(topic), topic, 0, one(b"at last")).answer()
    assert [record.value for record in waiting.answer(PATIENCE_S).records] == [b"at last"]


def test_a_replica_knows_its_leader_epoch(wire: Wire) -> None:
    topic = wire.topic()
    epoch = wire.elect_another(topic).leader_epoch
    for connection in (wire.leader(topic), wire.follower(topic)):
        answers = {
            asked: fetch(connection, topic, 0, 0, current_leader_epoch=asked).answer().error
            for asked in (epoch - 1, epoch, epoch + 1)
        }
        assert answers == {
            epoch - 1: ErrorCode.fenced_leader_epoch,
            epoch: ErrorCode.none,
            epoch + 1: ErrorCode.unknown_leader_epoch,
        }


def test_a_replica_tells_where_another_log_diverges(wire: Wire) -> None:
    topic = wire.topic()
    first_epoch = wire.view(topic).leader_epoch
    produce(wire.leader(topic), topic, 0, Batch(values=(b"a", b"b"))).answer()
    wire.elect_another(topic)
    leader = wire.leader(topic)
    produce(leader, topic, 0, Batch(values=(b"c", b"d"))).answer()

    diverging = fetch(leader, topic, 0, 3, last_fetched_epoch=first_epoch).answer()
    assert (diverging.error, diverging.records) == (ErrorCode.none, ())
    assert diverging.divergence == Divergence(epoch=first_epoch, end=2)
    agreeing = fetch(leader, topic, 0, 2, last_fetched_epoch=first_epoch).answer()
    assert agreeing.divergence is None
    assert [record.value for record in agreeing.records] == [b"c", b"d"]
