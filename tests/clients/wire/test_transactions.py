"""What real coordinators and leaders answer to a transactional producer, in the old protocol and in the new one."""

from __future__ import annotations

import dataclasses

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.coordinators import KeyType
from lockstep.clients.wire.fetch import Aborted, Fetched, Isolation, fetch
from lockstep.clients.wire.groups import FetchedOffset, offset_fetch
from lockstep.clients.wire.offsets import LATEST, list_offsets
from lockstep.clients.wire.produce import Produced, produce
from lockstep.clients.wire.records import NO_PRODUCER, Batch, Producer
from lockstep.clients.wire.transactions import (
    Ended,
    Initialized,
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    txn_offset_commit,
)
from lockstep.wait import wait_until
from tests.clients.wire.conftest import ONLY_KRAFT, PATIENCE_S, Wire, new_producer, unique

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


class Client:
    """A transactional producer that knows one partition and, if it is asked to, adds it to its transaction."""

    def __init__(self, wire: Wire, *, transaction_version: int = 0) -> None:
        self.id = unique("transactional")
        self.version = transaction_version
        self.topic = wire.topic()
        self.leader = wire.leader(self.topic)
        self.coordinator = wire.coordinator(KeyType.TRANSACTION, self.id)
        self.producer = new_producer(self.coordinator, self.id)
        self._wire = wire
        self._sequence = 0

    def add(self) -> ErrorCode:
        partitions = [(self.topic, 0)]
        return add_partitions_to_txn(self.coordinator, self.id, self.producer, partitions).answer()[self.topic, 0]

    def write(self) -> Produced:
        batch = Batch(values=(b"a",), producer=self.producer, base_sequence=self._sequence, transactional=True)
        answer = produce(
            self.leader, self.topic, 0, batch, transactional_id=self.id, transaction_version=self.version
        ).answer(PATIENCE_S)
        self._sequence += answer.error is ErrorCode.none
        return answer

    def end(self, *, commit: bool) -> Ended:
        ended = end_txn(
            self.coordinator, self.id, self.producer, commit=commit, transaction_version=self.version
        ).answer(PATIENCE_S)
        if ended.error is ErrorCode.none:
            self._wire.wait_ended(self.id)
        return ended

    def committed(self) -> Fetched:
        return fetch(self.leader, self.topic, 0, 0, isolation=Isolation.READ_COMMITTED).answer()


def wait_stable(client: Client, offset: int) -> Fetched:
    wait_until(
        lambda: client.committed().last_stable_offset == offset,
        timeout_s=PATIENCE_S,
        what="the marker to be replicated",
    )
    return client.committed()


def offset_of(connection: Connection, group: str, topic: str, *, require_stable: bool = False) -> FetchedOffset:
    return offset_fetch(connection, group, topic, 0, require_stable=require_stable).answer()


def test_ids_are_new_without_a_transactional_id(wire: Wire) -> None:
    anybody = wire.to(wire.cluster.broker_ids[0])
    first, second = new_producer(anybody), new_producer(anybody)
    assert (first.epoch, second.epoch) == (0, 0)
    assert first.id != second.id


def test_whoever_comes_later_with_a_transactional_id_fences_who_had_it(wire: Wire) -> None:
    client = Client(wire)
    again = init_producer_id(client.coordinator, client.id).answer()
    goes_on = init_producer_id(client.coordinator, client.id, producer=again.producer).answer()
    assert [answer.producer.id for answer in (again, goes_on)] == [client.producer.id] * 2
    assert client.producer.epoch < again.producer.epoch < goes_on.producer.epoch
    replaced = init_producer_id(client.coordinator, client.id, producer=client.producer).answer()
    assert replaced == Initialized(error=ErrorCode.producer_fenced, producer=NO_PRODUCER)


def test_who_is_no_coordinator_says_so(wire: Wire) -> None:
    client = Client(wire)
    errors = [init_producer_id(wire.to(broker), client.id).answer().error for broker in wire.cluster.broker_ids]
    assert sorted(error.name for error in errors) == ["none", "not_coordinator", "not_coordinator"]


def test_a_time_out_that_is_too_long_is_refused(wire: Wire) -> None:
    client = Client(wire)
    refused = init_producer_id(client.coordinator, client.id, timeout_ms=2**31 - 1).answer()
    assert refused.error is ErrorCode.invalid_transaction_timeout


def test_a_committed_transaction_is_stable_when_its_marker_is_written(wire: Wire) -> None:
    client = Client(wire)
    assert client.add() is ErrorCode.none
    assert client.write().error is ErrorCode.none
    unstable = client.committed()
    assert (unstable.high_watermark, unstable.last_stable_offset, unstable.records) == (1, 0, ())
    listed = list_offsets(client.leader, client.topic, 0, LATEST, isolation=Isolation.READ_COMMITTED).answer()
    assert listed.offset == 0

    assert client.end(commit=True) == Ended(error=ErrorCode.none, producer=None)
    stable = wait_stable(client, 2)
    record, marker = stable.records
    assert (record.value, record.transactional, record.control) == (b"a", True, False)
    assert (record.producer, record.base_sequence) == (client.producer, 0)
    assert marker.control
    assert marker.marker is not None
    assert marker.marker.commit
    assert marker.marker.coordinator_epoch >= 0
    assert stable.aborted == ()


def test_an_aborted_transaction_is_told_to_who_reads_committed(wire: Wire) -> None:
    client = Client(wire)
    assert client.add() is ErrorCode.none
    assert client.write().error is ErrorCode.none
    assert client.end(commit=False).error is ErrorCode.none
    stable = wait_stable(client, 2)
    assert stable.aborted == (Aborted(producer_id=client.producer.id, first_offset=0),)
    assert [record.marker.commit for record in stable.records if record.marker is not None] == [False]
    assert fetch(client.leader, client.topic, 0, 0).answer().aborted == ()


def test_all_partitions_are_added_or_none(wire: Wire) -> None:
    client = Client(wire)
    added = add_partitions_to_txn(
        client.coordinator, client.id, client.producer, [(client.topic, 0), (client.topic, 7), ("nowhere", 0)]
    ).answer()
    assert added == {
        (client.topic, 0): ErrorCode.operation_not_attempted,
        (client.topic, 7): ErrorCode.unknown_topic_or_partition,
        ("nowhere", 0): ErrorCode.unknown_topic_or_partition,
    }


def test_a_leader_verifies_that_its_partition_was_added(wire: Wire) -> None:
    client = Client(wire)
    refused = client.write()
    assert refused.error is ErrorCode.transaction_abortable
    assert client.add() is ErrorCode.none
    assert client.write().error is ErrorCode.none


def test_a_fenced_producer_can_do_nothing(wire: Wire) -> None:
    client = Client(wire)
    group = unique("group")
    init_producer_id(client.coordinator, client.id).answer()
    assert client.add() is ErrorCode.producer_fenced
    assert client.end(commit=True).error is ErrorCode.producer_fenced
    added = add_offsets_to_txn(client.coordinator, client.id, client.producer, group).answer()
    assert added is ErrorCode.producer_fenced


def test_a_transaction_that_did_not_begin_cannot_end(wire: Wire) -> None:
    assert Client(wire).end(commit=True).error is ErrorCode.invalid_txn_state


def test_offsets_count_with_their_transaction(wire: Wire) -> None:
    client, group = Client(wire), unique("group")
    coordinator = wire.coordinator(KeyType.GROUP, group)
    assert add_offsets_to_txn(client.coordinator, client.id, client.producer, group).answer() is ErrorCode.none
    committed = txn_offset_commit(coordinator, client.id, client.producer, group, client.topic, 0, 5).answer(PATIENCE_S)
    assert committed is ErrorCode.none

    assert offset_of(coordinator, group, client.topic).offset == -1
    unstable = offset_of(coordinator, group, client.topic, require_stable=True)
    assert (unstable.error, unstable.offset) == (ErrorCode.unstable_offset_commit, -1)
    client.end(commit=True)
    wait_until(
        lambda: offset_of(coordinator, group, client.topic, require_stable=True).offset == 5,
        timeout_s=PATIENCE_S,
        what="the offset to count",
    )


def test_offsets_of_who_is_no_member_are_refused(wire: Wire) -> None:
    client, group = Client(wire), unique("group")
    coordinator = wire.coordinator(KeyType.GROUP, group)
    add_offsets_to_txn(client.coordinator, client.id, client.producer, group).answer()
    refused = txn_offset_commit(
        coordinator, client.id, client.producer, group, client.topic, 0, 5, member_id="nobody", generation=3
    ).answer(PATIENCE_S)
    assert refused in (ErrorCode.unknown_member_id, ErrorCode.illegal_generation)


@ONLY_KRAFT
def test_in_version_2_the_leader_adds_its_partition_and_the_end_brings_an_epoch(wire: Wire) -> None:
    assert wire.transaction_version == 2
    client = Client(wire, transaction_version=2)
    assert client.write() == Produced(error=ErrorCode.none, base_offset=0, log_start=0)
    ended = client.end(commit=True)
    assert ended.error is ErrorCode.none
    assert ended.producer == Producer(id=client.producer.id, epoch=client.producer.epoch + 1)
    stable = wait_stable(client, 2)
    assert [record.producer.epoch for record in stable.records] == [client.producer.epoch, client.producer.epoch + 1]
    assert client.write().error is ErrorCode.invalid_producer_epoch, "the end has fenced this epoch"


@ONLY_KRAFT
def test_in_version_2_an_abort_of_nothing_brings_an_epoch_and_a_commit_of_nothing_is_refused(wire: Wire) -> None:
    client = Client(wire, transaction_version=2)
    assert client.end(commit=True) == Ended(error=ErrorCode.invalid_txn_state, producer=None)
    ended = client.end(commit=False)
    assert ended == Ended(error=ErrorCode.none, producer=dataclasses.replace(client.producer, epoch=1))


@ONLY_KRAFT
def test_in_version_2_the_group_coordinator_adds_its_group(wire: Wire) -> None:
    client, group = Client(wire, transaction_version=2), unique("group")
    coordinator = wire.coordinator(KeyType.GROUP, group)

    def commit(transaction_version: int) -> ErrorCode:
        return txn_offset_commit(
            coordinator,
            client.id,
            client.producer,
            group,
            client.topic,
            0,
            5,
            transaction_version=transaction_version,
        ).answer(PATIENCE_S)

    assert commit(transaction_version=1) is ErrorCode.transaction_abortable
    assert commit(transaction_version=2) is ErrorCode.none
    client.end(commit=True)
    wait_until(
        lambda: offset_of(coordinator, group, client.topic, require_stable=True).offset == 5,
        timeout_s=PATIENCE_S,
        what="the offset to count",
    )
