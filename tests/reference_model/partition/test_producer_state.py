"""Which batches of a producer a leader takes, which it knows already and which it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.partition.producer_state import (
    ACCEPTED,
    LAST_SEQUENCE,
    NO_PRODUCER_ENTRY,
    Acceptance,
    Batch,
    Duplicate,
    Marker,
    ProducerEntry,
    Verification,
    check,
    check_marker,
    followed,
    marked,
    start_verification,
)
from lockstep_model.transactions import mutants

KAFKA_39 = Parameters(transaction_version=0, transactions_of_4=False)
KAFKA_4 = Parameters(transaction_version=2)
PID = 7


def batch(sequence: int, *, epoch: int = 0, records: int = 1, transactional: bool = False) -> Batch:
    return Batch(PID, epoch, sequence, records, transactional)


def after(*batches: Batch | Marker, start: ProducerEntry = NO_PRODUCER_ENTRY) -> ProducerEntry:
    entry, offset = start, 100
    for one in batches:
        entry = followed(entry, one, offset)
        offset += one.records if isinstance(one, Batch) else 1
    return entry


def test_a_new_producer_id_may_begin_with_any_sequence() -> None:
    assert check(NO_PRODUCER_ENTRY, batch(0), KAFKA_4) == ACCEPTED
    assert check(NO_PRODUCER_ENTRY, batch(41), KAFKA_4) == ACCEPTED


@pytest.mark.parametrize(
    ("sequence", "answer"),
    [
        (3, ACCEPTED),
        (4, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (0, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),  # of another length than the batch that began there: no duplicate
    ],
)
def test_the_next_sequence_follows_the_last_one(sequence: int, answer: Acceptance | Error) -> None:
    assert check(after(batch(0, records=3)), batch(sequence), KAFKA_4) == answer


def test_sequences_begin_again_after_the_last_one() -> None:
    wrapped = after(batch(LAST_SEQUENCE - 1, records=3))

    assert wrapped.last_sequence == 0
    assert check(wrapped, batch(1), KAFKA_4) == ACCEPTED
    assert check(after(batch(LAST_SEQUENCE)), batch(0), KAFKA_4) == ACCEPTED
    assert check(after(batch(LAST_SEQUENCE)), batch(1), KAFKA_4) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_batches_are_told_as_duplicates_with_their_offsets() -> None:
    entry = after(*(batch(sequence) for sequence in range(6)))

    assert [check(entry, batch(sequence), KAFKA_4) for sequence in range(1, 6)] == [
        Duplicate(offset) for offset in range(101, 106)
    ]
    assert check(entry, batch(0), KAFKA_4) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_refused_and_a_new_one_begins_at_zero() -> None:
    entry = after(batch(0, epoch=3), batch(1, epoch=3))

    assert check(entry, batch(0, epoch=2), KAFKA_4) == Error.INVALID_PRODUCER_EPOCH
    assert check(entry, batch(0, epoch=4), KAFKA_4) == ACCEPTED
    assert check(entry, batch(2, epoch=4), KAFKA_4) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    entry = after(batch(0, epoch=3), batch(1, epoch=3), batch(0, epoch=4))

    assert check(entry, batch(0, epoch=4), KAFKA_4) == Duplicate(102)
    assert check(entry, batch(1, epoch=4), KAFKA_4) == ACCEPTED


def test_offsets_of_a_transaction_have_no_sequence_but_an_epoch() -> None:
    known = after(Batch(PID, 3, transactional=True))

    assert check(known, Batch(PID, 3, transactional=True), KAFKA_39) == ACCEPTED
    assert check(known, Batch(PID, 2, transactional=True), KAFKA_39) == Error.INVALID_PRODUCER_EPOCH


def test_an_open_transaction_refuses_what_is_outside_of_it() -> None:
    entry = after(batch(0, transactional=True))

    assert entry.transaction_first_offset == 100
    assert check(entry, batch(1, transactional=True), KAFKA_39) == ACCEPTED
    assert check(entry, batch(1), KAFKA_39) == Error.INVALID_TXN_STATE


def verified(entry: ProducerEntry, one: Batch, standing: Verification | None = None) -> Verification:
    verification = start_verification(entry, one, 100, standing, KAFKA_39, adds=False)
    assert isinstance(verification, Verification)
    return verification


def test_a_transaction_begins_only_with_the_guard_that_was_given() -> None:
    first = batch(0, transactional=True)
    standing = verified(NO_PRODUCER_ENTRY, first)

    assert check(NO_PRODUCER_ENTRY, first, KAFKA_39) == Error.INVALID_TXN_STATE
    assert check(NO_PRODUCER_ENTRY, first, KAFKA_39, verification=standing, guard=standing.guard) == ACCEPTED
    assert check(NO_PRODUCER_ENTRY, first, KAFKA_39, verification=standing, guard=99) == Error.INVALID_TXN_STATE
    assert check(NO_PRODUCER_ENTRY, first, KAFKA_39, guard=standing.guard) == Error.INVALID_TXN_STATE
    assert (
        check(NO_PRODUCER_ENTRY, first, Parameters(transaction_version=0, transaction_verification=False)) == ACCEPTED
    )


def test_before_4_0_a_missing_verification_is_told_before_an_old_epoch() -> None:
    entry, late = after(batch(0, epoch=1)), batch(1, transactional=True)
    assert check(entry, late, KAFKA_4) == Error.INVALID_PRODUCER_EPOCH
    assert check(entry, late, KAFKA_39) == Error.INVALID_TXN_STATE
    assert not parameters_for("3.9.2", "kraft").transactions_of_4
    assert parameters_for("4.0.2", "kraft").transactions_of_4


@pytest.mark.parametrize("adds", [False, True])
def test_what_is_open_needs_no_verification_unless_its_epoch_is_new_since_4_0(adds: bool) -> None:
    entry = after(batch(0, transactional=True))
    same, newer = batch(1, transactional=True), batch(0, epoch=1, transactional=True)

    assert start_verification(entry, same, 101, None, KAFKA_39, adds=adds) is None
    assert start_verification(entry, same, 101, None, KAFKA_4, adds=adds) is None
    assert start_verification(entry, newer, 101, None, KAFKA_39, adds=adds) is None
    assert start_verification(entry, newer, 101, None, KAFKA_4, adds=adds) == Verification(
        guard=101, epoch=1, lowest_sequence=0, adds=adds
    )


def test_a_client_of_version_2_has_its_partition_added_whatever_is_configured() -> None:
    unverified = replace(KAFKA_4, transaction_verification=False)
    first = batch(0, transactional=True)
    assert start_verification(NO_PRODUCER_ENTRY, first, 100, None, unverified, adds=False) is None
    assert isinstance(start_verification(NO_PRODUCER_ENTRY, first, 100, None, unverified, adds=True), Verification)


def test_while_a_verification_stands_only_the_lowest_sequence_seen_is_taken() -> None:
    entry = after(batch(0, transactional=True), Marker(PID, 0, commit=True))
    standing = verified(entry, batch(2, transactional=True))
    standing = verified(entry, batch(1, transactional=True), standing)

    def answer(sequence: int) -> Acceptance | Duplicate | Error:
        one = batch(sequence, transactional=True)
        return check(entry, one, KAFKA_39, verification=standing, guard=standing.guard)

    assert answer(2) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert answer(1) == ACCEPTED


def test_a_new_epoch_takes_a_standing_verification_over() -> None:
    standing = verified(NO_PRODUCER_ENTRY, batch(0, transactional=True))

    renewed = verified(NO_PRODUCER_ENTRY, batch(5, epoch=1, transactional=True), standing)

    assert renewed == Verification(guard=standing.guard, epoch=1, lowest_sequence=5)
    assert verified(NO_PRODUCER_ENTRY, batch(3, transactional=True), renewed) == renewed


def test_in_version_2_an_unknown_producer_begins_its_transaction_at_zero() -> None:
    late = batch(2, transactional=True)
    standing = Verification(guard=100, epoch=0, lowest_sequence=2)

    assert check(NO_PRODUCER_ENTRY, late, KAFKA_4, verification=standing, guard=100) == ACCEPTED
    adding = standing._replace(adds=True)
    assert check(NO_PRODUCER_ENTRY, late, KAFKA_4, verification=adding, guard=100) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_not_asked_about_in_version_2() -> None:
    entry = after(batch(0, epoch=3))
    late = batch(0, epoch=2, transactional=True)

    assert start_verification(entry, late, 101, None, KAFKA_4, adds=True) == Error.INVALID_PRODUCER_EPOCH
    assert isinstance(start_verification(entry, late, 101, None, KAFKA_4, adds=False), Verification)


@pytest.mark.parametrize(
    ("marker_epoch", "of_old_transaction", "of_version_2"),
    [
        (2, Error.INVALID_PRODUCER_EPOCH, Error.INVALID_PRODUCER_EPOCH),
        (3, ACCEPTED, Error.INVALID_PRODUCER_EPOCH),
        (4, ACCEPTED, ACCEPTED),
    ],
)
def test_a_marker_needs_the_epoch_of_its_transaction(
    marker_epoch: int, of_old_transaction: Acceptance | Error, of_version_2: Acceptance | Error
) -> None:
    entry = after(batch(0, epoch=3, transactional=True))
    old = Marker(PID, marker_epoch, commit=True)
    new = old._replace(transaction_version=2)

    assert check_marker(entry, old, KAFKA_4) == of_old_transaction
    assert check_marker(entry, new, KAFKA_4) == of_version_2
    assert check_marker(entry, new, parameters_for("4.1.2", "kraft")) == of_old_transaction


def test_a_marker_that_is_sent_again_is_written_again() -> None:
    marker = Marker(PID, 4, commit=True, transaction_version=2)
    entry = after(batch(0, epoch=3, transactional=True), marker)

    assert entry.transaction_first_offset is None
    assert check_marker(entry, marker, KAFKA_4) == ACCEPTED


def test_an_old_coordinator_is_fenced() -> None:
    entry = after(batch(0, transactional=True), Marker(PID, 0, commit=True, coordinator_epoch=5))

    assert check_marker(entry, Marker(PID, 0, commit=False, coordinator_epoch=4), KAFKA_39) == (
        Error.TRANSACTION_COORDINATOR_FENCED
    )
    assert check_marker(entry, Marker(PID, 0, commit=False, coordinator_epoch=5), KAFKA_39) == ACCEPTED


def test_sequences_go_on_after_a_marker_of_the_same_epoch_and_begin_again_after_a_new_one() -> None:
    written = after(batch(0, transactional=True), batch(1, transactional=True))

    same = marked(written, Marker(PID, 0, commit=True))
    assert same.last_sequence == 1
    bumped = marked(written, Marker(PID, 1, commit=True))
    assert bumped.last_sequence == -1
    assert check(bumped, batch(0, epoch=1), KAFKA_4) == ACCEPTED
    assert check(bumped, batch(2, epoch=1), KAFKA_4) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("guard", "refused"),
    [
        (mutants.SEQUENCE_CHECK, batch(4)),
        (mutants.PRODUCER_EPOCH_CHECK, batch(0, epoch=-1)),
    ],
)
def test_a_mutant_takes_what_its_guard_refuses(guard: str, refused: Batch) -> None:
    entry = after(batch(0), batch(1))

    assert isinstance(check(entry, refused, KAFKA_4), Error)
    dropped = frozenset({guard, mutants.SEQUENCE_CHECK})
    assert check(entry, refused, Parameters(dropped=dropped)) == ACCEPTED


@pytest.mark.parametrize(("version", "begins_with_any"), [("4.0.2", True), ("4.1.2", False), ("4.3.1", False)])
def test_from_4_1_on_an_unknown_producer_of_version_2_begins_with_sequence_0(
    version: str, *, begins_with_any: bool
) -> None:
    parameters = parameters_for(version, "kraft")
    third = Batch(7, 0, 2, transactional=True)
    verification = start_verification(NO_PRODUCER_ENTRY, third, 100, None, parameters, adds=True)
    assert isinstance(verification, Verification)
    found = check(NO_PRODUCER_ENTRY, third, parameters, verification=verification, guard=verification.guard)
    assert found == (ACCEPTED if begins_with_any else Error.OUT_OF_ORDER_SEQUENCE_NUMBER)
