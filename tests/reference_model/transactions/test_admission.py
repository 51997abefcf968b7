"""Whether a transactional batch may be appended, by the version of the request that it comes with."""

from __future__ import annotations

import pytest

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.log import Log, Record
from lockstep_model.partition.producer_state import ACCEPTED, Batch, Verification, check
from lockstep_model.transactions.admission import VerificationResult, admit
from lockstep_model.transactions.coordinator import Producer, TransactionMetadata, TransactionState, produce_error
from lockstep_model.transactions.versions import Support, of_offset_commit, of_produce

KAFKA = Parameters()
ME = Producer(7, 3)
FIRST = Batch(*ME, 0, transactional=True)
NOT_ADDED, ADDED = TransactionMetadata(ME), TransactionMetadata(ME, TransactionState.ONGOING, frozenset({0}))


def admitted(transactional: TransactionMetadata | None, version: int, log: Log | None = None) -> VerificationResult:
    return admit(KAFKA, log or Log(), FIRST, None, transactional, 0, of_produce(version))


@pytest.mark.parametrize(
    ("transactional", "version", "error"),
    [
        (ADDED, 10, Error.NONE),
        (ADDED, 12, Error.NONE),
        (NOT_ADDED, 10, Error.INVALID_TXN_STATE),
        (NOT_ADDED, 11, Error.TRANSACTION_ABORTABLE),
        (NOT_ADDED, 12, Error.NONE),
        (None, 12, Error.INVALID_PRODUCER_ID_MAPPING),
        (ADDED._replace(producer=Producer(7, 4)), 11, Error.INVALID_PRODUCER_EPOCH),
        (ADDED._replace(producer=Producer(7, 4)), 12, Error.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_coordinator_is_asked_or_has_to_add_the_partition(
    transactional: TransactionMetadata | None, version: int, error: Error
) -> None:
    answer = admitted(transactional, version)

    assert answer.error is error
    assert answer.verification is not None
    assert (answer.guard is not None) == (error is Error.NONE)
    added = version >= 12 and error is Error.NONE
    assert answer.transactional == (ADDED if added else transactional)


def test_what_was_admitted_is_appended_with_its_guard() -> None:
    answer = admitted(NOT_ADDED, 12)
    entry = Log().known.entry(ME.id)

    assert check(entry, FIRST, KAFKA, verification=answer.verification, guard=answer.guard) == ACCEPTED
    assert check(entry, FIRST, KAFKA, verification=answer.verification) is Error.INVALID_TXN_STATE


def test_nobody_is_asked_about_what_is_open() -> None:
    opened = Log().append([Record(0, 0, FIRST)])
    assert admitted(None, 12, opened) == VerificationResult(None, None)


@pytest.mark.parametrize("why", [Error.NETWORK_EXCEPTION, Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_gives_no_answer(why: Error) -> None:
    """The producer may try again; what stands for it at the leader stays."""
    support = Support.ADD_PARTITION
    answer = admit(KAFKA, Log(), FIRST, None, NOT_ADDED, 0, support, unreachable=why)

    assert answer == VerificationResult(NOT_ADDED, Verification(0, 3, 0, adds=True), why)
    assert produce_error(answer.error, support) is Error.NOT_ENOUGH_REPLICAS


def test_offsets_of_a_transaction_come_without_a_sequence() -> None:
    offsets = Batch(*ME, transactional=True)
    asked = admit(KAFKA, Log(), offsets, None, NOT_ADDED, 0, of_offset_commit(3))
    told = admit(KAFKA, Log(), offsets, None, NOT_ADDED, 0, of_offset_commit(5))

    assert (asked.error, told.error) == (Error.INVALID_TXN_STATE, Error.NONE)
    entry = Log().known.entry(ME.id)
    assert check(entry, offsets, KAFKA, verification=told.verification, guard=told.guard) == ACCEPTED
