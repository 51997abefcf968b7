"""What real brokers answer to single batches, right ones and wrong ones."""

from __future__ import annotations

import dataclasses
import select

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.fetch import FUTURE_LOCAL_REPLICA, fetch
from lockstep.clients.wire.offsets import DEBUGGING_REPLICA, LATEST, list_offsets
from lockstep.clients.wire.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, CurrentLeader, produce
from lockstep.clients.wire.records import Batch, Producer
from lockstep.wait import wait_until
from tests.clients.wire.conftest import PATIENCE_S, Wire, new_producer, one

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


def log_end(wire: Wire, topic: str) -> int:
    return list_offsets(wire.leader(topic), topic, 0, LATEST, replica_id=DEBUGGING_REPLICA).answer().offset


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_a_batch_is_told_where_it_is(wire: Wire, acks: int) -> None:
    topic = wire.topic()
    leader = wire.leader(topic)
    first = produce(leader, topic, 0, Batch(values=(b"a", b"b")), acks=acks).answer()
    second = produce(leader, topic, 0, one(), acks=acks).answer()
    assert (first.error, second.error) == (ErrorCode.none, ErrorCode.none)
    assert (first.base_offset, second.base_offset, second.log_start) == (0, 2, 0)
    assert second.current_leader is None


def test_acks_of_two_are_not_known(wire: Wire) -> None:
    topic = wire.topic()
    assert produce(wire.leader(topic), topic, 0, one(), acks=2).answer().error is ErrorCode.invalid_required_acks
    assert log_end(wire, topic) == 0


def test_a_follower_names_the_leader(wire: Wire) -> None:
    topic = wire.topic()
    view = wire.view(topic)
    refused = produce(wire.follower(topic), topic, 0, one()).answer()
    assert refused.error is ErrorCode.not_leader_or_follower
    assert refused.current_leader == CurrentLeader(id=view.leader, epoch=view.leader_epoch)


def test_a_batch_that_was_damaged_is_not_taken(wire: Wire) -> None:
    topic = wire.topic()
    damaged = dataclasses.replace(one(), wrong_crc=True)
    assert produce(wire.leader(topic), topic, 0, damaged).answer().error is ErrorCode.corrupt_message
    assert log_end(wire, topic) == 0


def test_who_does_not_lead_does_not_look_at_the_checksum(wire: Wire) -> None:
    topic = wire.topic()
    damaged = dataclasses.replace(one(), wrong_crc=True)
    refused = produce(wire.follower(topic), topic, 0, damaged).answer()
    assert refused.error is ErrorCode.not_leader_or_follower


def test_the_checksum_is_looked_at_before_the_producer(wire: Wire) -> None:
    topic = wire.topic()
    leader, producer = wire.leader(topic), new_producer(wire.leader(topic))
    written = Batch(values=(b"a",), producer=producer, base_sequence=0)
    assert produce(leader, topic, 0, written).answer().error is ErrorCode.none
    for sequence in (0, 5):  # a duplicate, and one that is out of order
        damaged = dataclasses.replace(written, base_sequence=sequence, wrong_crc=True)
        assert produce(leader, topic, 0, damaged).answer().error is ErrorCode.corrupt_message


def test_a_batch_that_says_it_is_longer_than_it_is_is_none(wire: Wire) -> None:
    """That is seen before anybody looks for the partition, or at acks (ProduceRequest.validateRecords)."""
    topic = wire.topic()
    short = dataclasses.replace(one(), missing_bytes=1)
    for broker, acks in ((wire.leader(topic), ACKS_ALL), (wire.follower(topic), ACKS_LEADER), (wire.leader(topic), 2)):
        assert produce(broker, topic, 0, short, acks=acks).answer().error is ErrorCode.invalid_record
    assert log_end(wire, topic) == 0


def test_a_batch_that_is_too_large_is_not_taken(wire: Wire) -> None:
    topic = wire.topic()
    assert produce(wire.leader(topic), topic, 0, one(bytes(1_200_000))).answer().error is ErrorCode.message_too_large
    assert log_end(wire, topic) == 0


def test_the_leader_writes_its_own_epoch_over_that_of_a_batch(wire: Wire) -> None:
    topic = wire.topic()
    wrong = dataclasses.replace(one(), partition_leader_epoch=77)
    assert produce(wire.leader(topic), topic, 0, wrong).answer().error is ErrorCode.none
    (record,) = fetch(wire.leader(topic), topic, 0, 0, replica_id=FUTURE_LOCAL_REPLICA).answer().records
    assert record.partition_leader_epoch == wire.view(topic).leader_epoch


def test_a_topic_that_is_not_there_is_not_made(wire: Wire) -> None:
    anybody = wire.to(wire.cluster.broker_ids[0])
    assert produce(anybody, "nowhere", 0, one()).answer().error is ErrorCode.unknown_topic_or_partition


def test_a_repeated_batch_is_answered_like_the_first_time(wire: Wire) -> None:
    topic = wire.topic()
    leader, producer = wire.leader(topic), new_producer(wire.leader(topic))
    batches = [Batch(values=(b"a", b"b"), producer=producer, base_sequence=sequence) for sequence in (0, 2)]
    answers = [produce(leader, topic, 0, batch).answer() for batch in (*batches, *batches)]
    assert {answer.error for answer in answers} == {ErrorCode.none}
    assert [answer.base_offset for answer in answers] == [0, 2, 0, 2]
    assert log_end(wire, topic) == 4


@pytest.mark.parametrize("sequence", [0, 8])
def test_a_batch_that_was_forgotten_or_comes_too_early_is_out_of_order(wire: Wire, sequence: int) -> None:
    """A leader remembers the last five of each producer."""
    topic = wire.topic()
    leader, producer = wire.leader(topic), new_producer(wire.leader(topic))
    for written in range(7):
        batch = Batch(values=(b"a",), producer=producer, base_sequence=written)
        assert produce(leader, topic, 0, batch).answer().error is ErrorCode.none
    batch = Batch(values=(b"a",), producer=producer, base_sequence=sequence)
    assert produce(leader, topic, 0, batch).answer().error is ErrorCode.out_of_order_sequence_number
    assert log_end(wire, topic) == 7


def test_a_producer_of_an_older_epoch_is_refused(wire: Wire) -> None:
    topic = wire.topic()
    leader, producer = wire.leader(topic), new_producer(wire.leader(topic))
    newer = Producer(id=producer.id, epoch=producer.epoch + 1)
    answers = [
        produce(leader, topic, 0, Batch(values=(b"a",), producer=who, base_sequence=0)).answer().error
        for who in (newer, producer)
    ]
    assert answers == [ErrorCode.none, ErrorCode.invalid_producer_epoch]


def test_acks_zero_is_known_to_be_taken(wire: Wire) -> None:
    topic = wire.topic()
    leader = wire.leader(topic)
    assert produce(leader, topic, 0, one(), acks=ACKS_NONE).answer().base_offset == -1
    assert not leader.is_closed()
    assert log_end(wire, topic) == 1


def test_acks_zero_that_is_refused_costs_the_connection(wire: Wire) -> None:
    topic = wire.topic()
    follower = wire.follower(topic)
    with pytest.raises(ConnectionError):
        produce(follower, topic, 0, one(), acks=ACKS_NONE).answer()
    assert follower.is_closed()


def test_an_open_write_waits_for_the_followers_and_nobody_waits_for_it(wire: Wire) -> None:
    topic = wire.topic()
    with wire.followers_cut_off(topic):
        open_write = produce(wire.leader(topic), topic, 0, one(b"waits"), acks=ACKS_ALL)
        hurried = produce(wire.leader(topic), topic, 0, one(b"gives up"), acks=ACKS_ALL, timeout_ms=1)
        assert hurried.answer(PATIENCE_S).error is ErrorCode.request_timed_out
        assert produce(wire.leader(topic), topic, 0, one(), acks=ACKS_LEADER).answer().base_offset == 2
        assert not open_write.ready()

        consumer = fetch(wire.leader(topic), topic, 0, 0).answer()
        assert (consumer.high_watermark, consumer.records) == (0, ())
        debugging = fetch(wire.leader(topic), topic, 0, 0, replica_id=FUTURE_LOCAL_REPLICA).answer()
        assert {record.value for record in debugging.records} == {b"waits", b"gives up", b"a"}
        assert {record.partition_leader_epoch for record in debugging.records} == {wire.view(topic).leader_epoch}

    assert select.select([open_write], [], [], PATIENCE_S)[0] == [open_write]
    wait_until(open_write.ready, timeout_s=PATIENCE_S, what="the followers")
    answer = open_write.answer()
    assert answer.error is ErrorCode.none
    assert answer.base_offset in (0, 1), "two connections, of which either may have been first"
