"""The anomalies of kafka-semantics.md §4.6 and §4.7 request by request, with the errors that each version answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Acceptance, Batch, Duplicate, Marker, check_marker
from lockstep_model.transactions import coordinator
from lockstep_model.transactions.admission import admit
from lockstep_model.transactions.coordinator import (
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Producer,
    TransactionMetadata,
    TransactionState,
)
from lockstep_model.transactions.partition import BatchValidation, Leader, VerifiedBatch, append, check, keep, source_of
from lockstep_model.transactions.versions import Support, usual

KAFKA_39 = Parameters(transaction_version=0, transactions_of_4=False)
UNVERIFIED = replace(KAFKA_39, transaction_verification=False)
KAFKA_4 = Parameters(transaction_version=2)
SOURCE = source_of("A", 0)


class Cluster:
    """One transactional id and one partition, 0, that is replicated at once."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.transactional: TransactionMetadata | None = None
        self.leader = Leader()

    def init(self) -> Producer:
        self.transactional, answer = coordinator.init_producer_id(
            self.transactional, InitProducerId(), self.parameters, fresh=1
        )
        assert answer.producer is not None
        return answer.producer

    def add(self, producer: Producer) -> Error:
        request = AddPartitionsToTxn(producer, frozenset({0}))
        self.transactional, answer = coordinator.add_partitions(self.transactional, request, self.parameters)
        return answer.error

    def produce(self, producer: Producer, sequence: int, *, abortable: bool = True) -> BatchValidation:
        batch = Batch(*producer, sequence, transactional=True)
        standing = self.leader.verification(batch.producer_id)
        support = usual(self.parameters) if abortable else Support.DEFAULT_ERROR
        admitted = admit(self.parameters, self.leader.log, batch, standing, self.transactional, 0, support)
        self.leader = keep(self.leader, batch.producer_id, admitted.verification)
        self.transactional = admitted.transactional
        if admitted.error is not Error.NONE:
            return coordinator.produce_error(admitted.error, support)
        waiting = VerifiedBatch(batch, SOURCE, admitted.guard)
        checked = check(self.leader, waiting, self.parameters)
        if isinstance(checked, Acceptance):
            self.leader = append(self.leader, batch, SOURCE, replicated_at_once=True)
        return checked

    def end(self, producer: Producer, *, commit: bool) -> Answer:
        self.transactional, answer = coordinator.end_transaction(
            self.transactional, EndTxn(producer, commit), self.parameters, fresh=9
        )
        return answer

    def write_markers(self) -> Marker:
        """All of them, up to the completion."""
        assert self.transactional is not None
        marker = coordinator.marker(self.transactional, 0)
        assert not isinstance(check_marker(self.leader.entry(marker.producer_id), marker, self.parameters), Error)
        self.leader = append(self.leader, marker, replicated_at_once=True)
        self.transactional = coordinator.complete(coordinator.marked(self.transactional, 0), self.parameters)
        return marker

    @property
    def last_stable_offset(self) -> int:
        return self.leader.last_stable_offset(self.parameters)

    def transaction(self, producer: Producer, sequence: int, *, commit: bool = True) -> Producer:
        """A whole one with one record, and who the client is afterwards."""
        if self.parameters.transaction_version < 2:
            assert self.add(producer) is Error.NONE
        assert not isinstance(self.produce(producer, sequence), Error)
        answer = self.end(producer, commit=commit)
        assert answer.producer is not None
        self.write_markers()
        return answer.producer


class TestHangingTransaction:
    """Recipe 4.6: a batch arrives after the end of its transaction."""

    def test_without_verification_it_blocks_readers(self) -> None:
        cluster = Cluster(UNVERIFIED)
        producer = cluster.init()
        cluster.transaction(producer, 0)
        assert cluster.last_stable_offset == 2

        assert not isinstance(cluster.produce(producer, 1), Error)
        assert (cluster.last_stable_offset, cluster.leader.high_watermark) == (2, 3)
        assert cluster.transactional is not None
        assert cluster.transactional.state is TransactionState.COMPLETE_COMMIT  # so no marker will ever come

    @pytest.mark.parametrize(
        ("abortable", "error"), [(False, Error.INVALID_TXN_STATE), (True, Error.TRANSACTION_ABORTABLE)]
    )
    def test_with_verification_it_is_refused(self, abortable: bool, error: Error) -> None:
        cluster = Cluster(KAFKA_39)
        producer = cluster.init()
        cluster.transaction(producer, 0)
        assert cluster.produce(producer, 1, abortable=abortable) == error

    def test_while_markers_are_under_way_it_is_told_to_wait(self) -> None:
        cluster = Cluster(KAFKA_39)
        producer = cluster.init()
        cluster.add(producer)
        cluster.end(producer, commit=True)
        assert cluster.produce(producer, 0) == Error.NOT_ENOUGH_REPLICAS

    def test_in_version_2_its_epoch_is_over(self) -> None:
        cluster = Cluster(KAFKA_4)
        producer = cluster.init()
        cluster.transaction(producer, 0)
        assert cluster.produce(producer, 1) == Error.INVALID_PRODUCER_EPOCH

    def test_in_version_2_its_epoch_is_over_where_the_partition_knows_nothing_of_it(self) -> None:
        cluster = Cluster(KAFKA_4)
        producer = cluster.init()
        cluster.end(producer, commit=False)
        cluster.transactional = coordinator.complete(cluster.transactional or TransactionMetadata(producer), KAFKA_4)
        assert cluster.produce(producer, 0) == Error.INVALID_PRODUCER_EPOCH


class TestDelayedEnd:
    """Recipe 4.7: a copy of the request that aborted the first transaction arrives in the second."""

    def test_before_version_2_it_aborts_the_second(self) -> None:
        cluster = Cluster(KAFKA_39)
        first = cluster.init()
        second = cluster.transaction(first, 0, commit=False)
        cluster.add(second)
        assert not isinstance(cluster.produce(second, 1), Error)

        assert cluster.end(first, commit=False).error is Error.NONE
        cluster.write_markers()
        assert cluster.leader.readable(KAFKA_39) == frozenset()
        assert cluster.end(second, commit=True).error is Error.INVALID_TXN_STATE

    def test_in_version_2_it_is_refused(self) -> None:
        cluster = Cluster(KAFKA_4)
        first = cluster.init()
        second = cluster.transaction(first, 0, commit=False)
        assert not isinstance(cluster.produce(second, 0), Error)

        assert cluster.end(first, commit=False).error is Error.PRODUCER_FENCED
        assert cluster.end(second, commit=True).error is Error.NONE
        cluster.write_markers()
        assert cluster.leader.readable(KAFKA_4) == {2}


class TestLateBatch:
    """Recipe 4.7: a batch of the first transaction, which was aborted, arrives in the second."""

    def test_before_version_2_it_is_committed_and_the_right_one_is_taken_for_it(self) -> None:
        cluster = Cluster(KAFKA_39)
        producer = cluster.init()
        cluster.add(producer)
        cluster.end(producer, commit=False)
        cluster.write_markers()

        cluster.add(producer)
        assert not isinstance(cluster.produce(producer, 0), Error)  # late
        assert cluster.produce(producer, 0) == Duplicate(1)  # the second transaction's own
        assert cluster.end(producer, commit=True).error is Error.NONE
        cluster.write_markers()
        assert cluster.leader.readable(KAFKA_39) == {1}

    def test_in_version_2_it_is_refused(self) -> None:
        cluster = Cluster(KAFKA_4)
        first = cluster.init()
        second = cluster.transaction(first, 0, commit=False)
        assert not isinstance(cluster.produce(second, 0), Error)
        assert cluster.produce(first, 1) == Error.INVALID_PRODUCER_EPOCH
