"""What a transaction coordinator answers, request by request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Marker
from lockstep_model.transactions import mutants
from lockstep_model.transactions.coordinator import (
    LAST_EPOCH,
    MAX_TIMEOUT_MS,
    NO_PRODUCER,
    NO_PRODUCER_ID,
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Producer,
    TransactionMetadata,
    TransactionState,
    abort_timed_out,
    add_partitions,
    complete,
    end_transaction,
    init_idempotent_producer_id,
    init_producer_id,
    loaded,
    marked,
    marker,
    produce_error,
    verify_partition,
)
from lockstep_model.transactions.versions import Support, of_offset_commit, of_produce, usual

KAFKA_39 = Parameters(transaction_version=0, transactions_of_4=False)
KAFKA_4 = Parameters(transaction_version=2)
BOTH = pytest.mark.parametrize("parameters", [KAFKA_39, KAFKA_4])
FRESH = 20
ME = Producer(10, 3)


def known(
    state: TransactionState, producer: Producer = ME, *partitions: int, last_epoch: int = -1
) -> TransactionMetadata:
    unmarked = (
        frozenset(partitions)
        if state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
        else frozenset()
    )
    return TransactionMetadata(producer, state, frozenset(partitions), last_epoch, unmarked=unmarked)


def init(
    transactional: TransactionMetadata | None,
    parameters: Parameters,
    expected: Producer | None = None,
    timeout_ms: int = 60_000,
) -> tuple[TransactionMetadata | None, Answer]:
    return init_producer_id(transactional, InitProducerId(timeout_ms, expected), parameters, fresh=FRESH)


def end(
    transactional: TransactionMetadata,
    parameters: Parameters,
    *,
    commit: bool,
    producer: Producer = ME,
    version: int | None = None,
) -> tuple[TransactionMetadata, Answer]:
    after, answer = end_transaction(transactional, EndTxn(producer, commit, version), parameters, fresh=FRESH)
    assert after is not None
    return after, answer


class TestInitProducerId:
    @BOTH
    def test_the_first_client_gets_a_new_id(self, parameters: Parameters) -> None:
        after, answer = init(None, parameters)

        assert answer == Answer(producer=Producer(FRESH, 0))
        assert after == TransactionMetadata(Producer(FRESH, 0), previous_id=FRESH)

    @BOTH
    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_the_next_client_gets_the_next_epoch(self, parameters: Parameters, state: TransactionState) -> None:
        after, answer = init(known(state), parameters)

        assert answer.producer == Producer(10, 4)
        assert after is not None
        assert (after.state, after.last_epoch) == (TransactionState.EMPTY, -1)

    @BOTH
    @pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
    def test_markers_under_way_are_waited_for(self, parameters: Parameters, state: TransactionState) -> None:
        before = known(state, ME, 0)
        assert init(before, parameters, Producer(99, 0)) == (before, Answer(Error.CONCURRENT_TRANSACTIONS))

    @BOTH
    def test_an_open_transaction_is_aborted_and_its_owner_fenced(self, parameters: Parameters) -> None:
        after, answer = init(known(TransactionState.ONGOING, ME, 0, 1), parameters)

        assert answer == Answer(Error.CONCURRENT_TRANSACTIONS)
        assert after is not None
        assert after.producer == Producer(10, 4)
        assert (after.state, after.unmarked) == (TransactionState.PREPARE_ABORT, frozenset({0, 1}))
        _, answer = init(complete(marked(marked(after, 0), 1), parameters), parameters)
        assert answer.producer == Producer(10, 5)

    @BOTH
    @pytest.mark.parametrize("timeout_ms", [0, MAX_TIMEOUT_MS + 1])
    def test_no_time_and_too_much_time_are_refused(self, parameters: Parameters, timeout_ms: int) -> None:
        assert init(None, parameters, timeout_ms=timeout_ms) == (None, Answer(Error.INVALID_TRANSACTION_TIMEOUT))

    def test_a_client_without_a_transactional_id_always_gets_a_new_id(self) -> None:
        assert init_idempotent_producer_id(fresh=FRESH) == Answer(producer=Producer(FRESH, 0))

    @BOTH
    def test_half_an_identity_is_invalid_and_none_is_a_new_client(self, parameters: Parameters) -> None:
        before = known(TransactionState.EMPTY)
        for half in (Producer(NO_PRODUCER_ID, 3), Producer(10, -1)):
            assert init(before, parameters, half) == (before, Answer(Error.INVALID_REQUEST))
        assert init(before, parameters, NO_PRODUCER) == init(before, parameters)

    def test_the_owner_may_go_on_and_may_ask_twice(self) -> None:
        after, answer = init(known(TransactionState.COMPLETE_ABORT), KAFKA_39, ME)
        assert answer.producer == Producer(10, 4)

        again, answer = init(after, KAFKA_39, ME)
        assert (again, answer.producer) == (after, Producer(10, 4))

    @pytest.mark.parametrize("somebody", [Producer(10, 1), Producer(9, 3)])
    def test_whoever_is_not_the_owner_is_fenced(self, somebody: Producer) -> None:
        before = known(TransactionState.EMPTY, last_epoch=2)
        assert init(before, KAFKA_39, somebody) == (before, Answer(Error.PRODUCER_FENCED))

    def test_a_fenced_owner_is_not_taken_for_one_who_asks_twice(self) -> None:
        after, _ = init(known(TransactionState.EMPTY), KAFKA_39)
        assert init(after, KAFKA_39, ME)[1] == Answer(Error.PRODUCER_FENCED)

    def test_after_the_last_epoch_comes_another_id(self) -> None:
        after, answer = init(
            known(TransactionState.EMPTY, Producer(10, LAST_EPOCH)), KAFKA_39, Producer(10, LAST_EPOCH)
        )

        assert answer.producer == Producer(FRESH, 0)
        assert after is not None
        assert (after.previous_id, after.last_epoch) == (10, LAST_EPOCH)

    def test_the_old_id_may_ask_twice_for_the_new_one_but_not_three_times(self) -> None:
        """The answer to the second question has the new id for the one before it, too (prepareTransitionTo)."""
        last = Producer(10, LAST_EPOCH)
        after, _ = init(known(TransactionState.EMPTY, last), KAFKA_39, last)

        again, answer = init(after, KAFKA_39, last)
        assert answer.producer == Producer(FRESH, 0)
        assert init(again, KAFKA_39, last)[1].error == Error.PRODUCER_FENCED
        assert init(after, KAFKA_39, Producer(10, 7))[1].error == Error.PRODUCER_FENCED

    def test_a_transaction_that_was_fenced_with_the_last_epoch_goes_on_with_another_id(self) -> None:
        fenced, _ = init(known(TransactionState.ONGOING, Producer(10, LAST_EPOCH)), KAFKA_39)
        assert fenced is not None
        assert fenced.producer == Producer(10, LAST_EPOCH + 1)
        assert init(complete(fenced, KAFKA_39), KAFKA_39)[1].producer == Producer(FRESH, 0)

        fenced, _ = init(known(TransactionState.ONGOING, Producer(10, LAST_EPOCH)), KAFKA_4)
        assert fenced is not None
        assert fenced.next_id == FRESH


class TestAddPartitions:
    @BOTH
    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_a_transaction_begins_with_its_first_partition(
        self, parameters: Parameters, state: TransactionState
    ) -> None:
        after, answer = add_partitions(known(state), AddPartitionsToTxn(ME, frozenset({1})), parameters)

        assert (after, answer) == (known(TransactionState.ONGOING, ME, 1), Answer())

    def test_a_partition_joins_an_open_transaction(self) -> None:
        after, _ = add_partitions(
            known(TransactionState.ONGOING, ME, 0), AddPartitionsToTxn(ME, frozenset({1})), KAFKA_39
        )
        assert after == known(TransactionState.ONGOING, ME, 0, 1)

    @pytest.mark.parametrize(
        ("before", "in_39", "in_4"),
        [
            (None, Error.INVALID_PRODUCER_ID_MAPPING, Error.INVALID_PRODUCER_ID_MAPPING),
            (
                known(TransactionState.EMPTY, Producer(9, 3)),
                Error.INVALID_PRODUCER_ID_MAPPING,
                Error.INVALID_PRODUCER_ID_MAPPING,
            ),
            (known(TransactionState.EMPTY, Producer(10, 4)), Error.PRODUCER_FENCED, Error.PRODUCER_FENCED),
            (
                known(TransactionState.PREPARE_COMMIT, ME, 0),
                Error.CONCURRENT_TRANSACTIONS,
                Error.CONCURRENT_TRANSACTIONS,
            ),
            (
                known(TransactionState.PREPARE_ABORT, Producer(10, 4), 0),
                Error.PRODUCER_FENCED,
                Error.CONCURRENT_TRANSACTIONS,
            ),
        ],
    )
    def test_refusals(self, before: TransactionMetadata | None, in_39: Error, in_4: Error) -> None:
        request = AddPartitionsToTxn(ME, frozenset({1}))
        assert add_partitions(before, request, KAFKA_39) == (before, Answer(in_39))
        assert add_partitions(before, request, KAFKA_4) == (before, Answer(in_4))


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        (known(TransactionState.ONGOING, ME, 0), Error.NONE),
        (known(TransactionState.ONGOING, ME, 1), Error.TRANSACTION_ABORTABLE),
        (known(TransactionState.COMPLETE_COMMIT, ME), Error.TRANSACTION_ABORTABLE),
        (known(TransactionState.PREPARE_COMMIT, ME, 0), Error.CONCURRENT_TRANSACTIONS),
        (known(TransactionState.ONGOING, Producer(10, 4), 0), Error.PRODUCER_FENCED),
        (known(TransactionState.ONGOING, Producer(9, 3), 0), Error.INVALID_PRODUCER_ID_MAPPING),
        (None, Error.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_verification(before: TransactionMetadata | None, answer: Error) -> None:
    assert verify_partition(before, ME, 0) == answer


@pytest.mark.parametrize(
    ("error", "old_client", "new_client", "version_2"),
    [
        (
            Error.TRANSACTION_ABORTABLE,
            Error.INVALID_TXN_STATE,
            Error.TRANSACTION_ABORTABLE,
            Error.TRANSACTION_ABORTABLE,
        ),
        (
            Error.CONCURRENT_TRANSACTIONS,
            Error.NOT_ENOUGH_REPLICAS,
            Error.NOT_ENOUGH_REPLICAS,
            Error.CONCURRENT_TRANSACTIONS,
        ),
        (Error.NOT_COORDINATOR, Error.NOT_ENOUGH_REPLICAS, Error.NOT_ENOUGH_REPLICAS, Error.NOT_ENOUGH_REPLICAS),
        (Error.NETWORK_EXCEPTION, Error.NOT_ENOUGH_REPLICAS, Error.NOT_ENOUGH_REPLICAS, Error.NOT_ENOUGH_REPLICAS),
        (
            Error.PRODUCER_FENCED,
            Error.INVALID_PRODUCER_EPOCH,
            Error.INVALID_PRODUCER_EPOCH,
            Error.INVALID_PRODUCER_EPOCH,
        ),
        (
            Error.INVALID_PRODUCER_ID_MAPPING,
            Error.INVALID_PRODUCER_ID_MAPPING,
            Error.INVALID_PRODUCER_ID_MAPPING,
            Error.INVALID_PRODUCER_ID_MAPPING,
        ),
    ],
)
def test_what_producers_are_told(error: Error, old_client: Error, new_client: Error, version_2: Error) -> None:
    assert produce_error(error, of_produce(10)) == old_client
    assert produce_error(error, of_produce(11)) == new_client
    assert produce_error(error, of_produce(12)) == version_2


def test_what_versions_of_requests_stand_for() -> None:
    assert [of_produce(version) for version in (3, 10, 11, 12, 13)] == [0, 0, 1, 2, 2]
    assert [of_offset_commit(version) for version in (0, 3, 4, 5)] == [0, 0, 1, 2]
    assert [usual(parameters) for parameters in (KAFKA_39, KAFKA_4)] == [Support.ABORTABLE_ERROR, Support.ADD_PARTITION]


class TestEndTxn:
    @pytest.mark.parametrize("commit", [True, False])
    def test_the_decision_is_answered_before_the_markers(self, commit: bool) -> None:
        after, answer = end(known(TransactionState.ONGOING, ME, 0, 1), KAFKA_39, commit=commit)

        assert answer == Answer(producer=ME)
        assert after == known(TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT, ME, 0, 1)
        assert marker(after, 5) == Marker(10, 3, commit, 5)

    def test_in_version_2_the_epoch_rises(self) -> None:
        after, answer = end(known(TransactionState.ONGOING, ME, 0), KAFKA_4, commit=True)

        assert answer == Answer(producer=Producer(10, 4))
        assert marker(after, 5) == Marker(10, 4, True, 5, transaction_version=2)
        assert after.last_epoch == 3

    def test_the_version_is_that_of_the_request_and_not_of_the_cluster(self) -> None:
        before = known(TransactionState.ONGOING, ME, 0)
        old_client, answer = end(before, KAFKA_4, commit=True, version=4)
        assert (answer.producer, old_client.version, marker(old_client, 5)) == (ME, 0, Marker(10, 3, True, 5))

        old_cluster = replace(KAFKA_4, transaction_version=0)
        new_client, answer = end(before, old_cluster, commit=True, version=5)
        assert (answer.producer, new_client.version) == (Producer(10, 4), 2)
        assert end(before, old_cluster, commit=True)[1].producer == ME

    def test_a_time_out_goes_by_the_cluster(self) -> None:
        for parameters, version in ((KAFKA_39, 0), (KAFKA_4, 2)):
            aborting = abort_timed_out(known(TransactionState.ONGOING, ME, 0), parameters, fresh=FRESH)
            assert aborting is not None
            assert (aborting.producer, aborting.version) == (Producer(10, 4), version)

    @pytest.mark.parametrize("somebody", [ME, Producer(10, 2), Producer(10, 4), Producer(9, 3)])
    def test_in_version_2_everybody_waits_for_the_markers(self, somebody: Producer) -> None:
        before = known(TransactionState.PREPARE_ABORT, Producer(10, 4), 0)
        answers = [end(before, KAFKA_4, commit=True, producer=somebody, version=version)[1] for version in (5, 4)]
        assert answers[0] == Answer(Error.CONCURRENT_TRANSACTIONS)
        owner, stranger = somebody == Producer(10, 4), somebody.id == 9
        fenced = Error.INVALID_PRODUCER_ID_MAPPING if stranger else Error.PRODUCER_FENCED
        assert answers[1] == Answer(Error.CONCURRENT_TRANSACTIONS if owner else fenced)

    def test_clients_that_do_not_know_that_they_are_fenced_are_told_of_their_epoch(self) -> None:
        before = known(TransactionState.ONGOING, Producer(10, 4), 0)
        errors = [end(before, KAFKA_39, commit=True, version=version)[1].error for version in (1, 2)]
        assert errors == [Error.INVALID_PRODUCER_EPOCH, Error.PRODUCER_FENCED]
        for version, error in ((1, Error.INVALID_PRODUCER_EPOCH), (2, Error.PRODUCER_FENCED)):
            request = AddPartitionsToTxn(ME, frozenset({0}), version)
            assert add_partitions(before, request, KAFKA_39)[1].error == error
        for version, error in ((3, Error.INVALID_PRODUCER_EPOCH), (4, Error.PRODUCER_FENCED)):
            for stranger in (Producer(9, 3), Producer(10, 1)):
                asked = InitProducerId(expected=stranger, version=version)
                assert init_producer_id(known(TransactionState.EMPTY), asked, KAFKA_39, fresh=FRESH)[1].error == error

    @pytest.mark.parametrize(
        ("state", "commit", "error"),
        [
            (TransactionState.COMPLETE_COMMIT, True, Error.NONE),
            (TransactionState.COMPLETE_COMMIT, False, Error.INVALID_TXN_STATE),
            (TransactionState.COMPLETE_ABORT, False, Error.NONE),
            (TransactionState.COMPLETE_ABORT, True, Error.INVALID_TXN_STATE),
            (TransactionState.PREPARE_COMMIT, True, Error.CONCURRENT_TRANSACTIONS),
            (TransactionState.PREPARE_COMMIT, False, Error.CONCURRENT_TRANSACTIONS),
        ],
    )
    def test_asking_twice(self, state: TransactionState, commit: bool, error: Error) -> None:
        for parameters, producer in ((KAFKA_39, ME), (KAFKA_4, Producer(10, 4))):
            before = known(state, producer, *([0] if state is TransactionState.PREPARE_COMMIT else []))
            after, answer = end(before, parameters, commit=commit)
            assert (after, answer.error) == (before, error)

    @pytest.mark.parametrize(
        "state", [TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
    )
    def test_in_version_2_an_empty_transaction_may_be_aborted_but_not_committed(self, state: TransactionState) -> None:
        after, answer = end(known(state), KAFKA_4, commit=False)
        assert (after.state, answer.producer) == (TransactionState.PREPARE_ABORT, Producer(10, 4))

        assert end(known(state), KAFKA_4, commit=True) == (known(state), Answer(Error.INVALID_TXN_STATE))

    @pytest.mark.parametrize("commit", [True, False])
    def test_nothing_is_to_be_ended_before(self, commit: bool) -> None:
        assert end(known(TransactionState.EMPTY), KAFKA_39, commit=commit)[1] == Answer(Error.INVALID_TXN_STATE)

    @BOTH
    def test_others_are_refused(self, parameters: Parameters) -> None:
        before = known(TransactionState.ONGOING, ME, 0)
        for epoch in (1, 2, 4):
            assert end(before, parameters, commit=True, producer=Producer(10, epoch))[1].error == Error.PRODUCER_FENCED
        assert end(before, parameters, commit=True, producer=Producer(9, 3))[1].error == (
            Error.INVALID_PRODUCER_ID_MAPPING
        )

    def test_in_version_2_an_old_request_cannot_end_the_next_transaction(self) -> None:
        ended, _ = end(known(TransactionState.ONGOING, ME, 0), KAFKA_4, commit=False)
        completed = complete(marked(ended, 0), KAFKA_4)
        began, _ = add_partitions(completed, AddPartitionsToTxn(Producer(10, 4), frozenset({0})), KAFKA_4)
        assert began is not None
        assert end(began, KAFKA_4, commit=False)[1] == Answer(Error.PRODUCER_FENCED)

    def test_in_version_2_after_the_last_epoch_comes_another_id(self) -> None:
        last = Producer(10, LAST_EPOCH)
        ended, answer = end(known(TransactionState.ONGOING, last, 0), KAFKA_4, commit=True, producer=last)

        assert answer == Answer(producer=Producer(FRESH, 0))
        assert marker(ended, 0) == Marker(10, LAST_EPOCH + 1, True, 0, transaction_version=2)
        completed = complete(marked(ended, 0), KAFKA_4)
        assert completed is not None
        assert completed.producer == Producer(FRESH, 0)
        assert completed.next_id == NO_PRODUCER_ID
        assert end(completed, KAFKA_4, commit=True, producer=last) == (completed, answer)


class TestTimeOut:
    def test_the_owner_is_fenced(self) -> None:
        aborting = abort_timed_out(known(TransactionState.ONGOING, ME, 0), KAFKA_39, fresh=FRESH)
        assert aborting is not None
        assert aborting.producer == Producer(10, 4)
        completed = complete(marked(aborting, 0), KAFKA_39)
        assert completed is not None
        assert end(completed, KAFKA_39, commit=True)[1].error == Error.PRODUCER_FENCED

    def test_in_version_2_an_owner_who_aborts_late_goes_on(self) -> None:
        aborting = abort_timed_out(known(TransactionState.ONGOING, ME, 0), KAFKA_4, fresh=FRESH)
        assert aborting is not None
        completed = complete(marked(aborting, 0), KAFKA_4)
        assert completed is not None
        assert end(completed, KAFKA_4, commit=False)[1] == Answer(producer=Producer(10, 4))
        assert end(completed, KAFKA_4, commit=True)[1].error == Error.INVALID_TXN_STATE

    @pytest.mark.parametrize("state", [state for state in TransactionState if state is not TransactionState.ONGOING])
    def test_only_open_transactions_time_out(self, state: TransactionState) -> None:
        assert abort_timed_out(known(state), KAFKA_4, fresh=FRESH) is None


class TestMarkers:
    def test_completion_waits_for_the_last_one(self) -> None:
        ended = known(TransactionState.PREPARE_COMMIT, ME, 0, 1)

        assert complete(marked(ended, 0), KAFKA_39) is None
        assert complete(marked(marked(ended, 0), 1), KAFKA_39) == known(TransactionState.COMPLETE_COMMIT)
        early = replace(KAFKA_39, dropped=frozenset({mutants.COMPLETE_WAITS_FOR_MARKERS}))
        assert complete(marked(ended, 0), early) == known(TransactionState.COMPLETE_COMMIT)

    def test_nothing_else_is_completed(self) -> None:
        assert complete(known(TransactionState.ONGOING, ME, 0), KAFKA_39) is None

    def test_the_next_coordinator_sends_all_of_them(self) -> None:
        ended = known(TransactionState.PREPARE_COMMIT, ME, 0, 1)

        assert loaded(marked(ended, 0), KAFKA_39) == ended
        assert loaded(known(TransactionState.ONGOING, ME, 0), KAFKA_39) == known(TransactionState.ONGOING, ME, 0)

    def test_the_next_coordinator_does_not_know_the_epoch_before(self) -> None:
        """Who had its epoch raised and asks again, as the answer was lost with its coordinator, is fenced."""
        raised, _ = init_producer_id(known(TransactionState.EMPTY), InitProducerId(expected=ME), KAFKA_39, fresh=9)
        assert raised is not None
        again = InitProducerId(expected=ME)

        _, answer = init_producer_id(raised, again, KAFKA_39, fresh=9)
        assert answer.producer == raised.producer
        _, answer = init_producer_id(loaded(raised, KAFKA_39), again, KAFKA_39, fresh=9)
        assert answer == Answer(Error.PRODUCER_FENCED)
