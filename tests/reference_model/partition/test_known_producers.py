"""What a replica still knows of producers after a restart, a truncation or a deletion of records."""

from __future__ import annotations

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.known_producers import replayed
from lockstep_model.partition.log import Log, Offset, Record
from lockstep_model.partition.producer_state import (
    ACCEPTED,
    NO_PRODUCER_ENTRY,
    Acceptance,
    Batch,
    Duplicate,
    Marker,
    appended,
    check,
    marked,
)

KAFKA = Parameters()
PID, OTHER = 7, 9


def batch(sequence: int, *, transactional: bool = False) -> Batch:
    return Batch(PID, 0, sequence, transactional=transactional)


def log_of(*logged: Batch | Marker) -> Log:
    return Log().append(Record(0, value, one) for value, one in enumerate(logged))


SIX = log_of(*(batch(sequence) for sequence in range(6)))
BEGUN = batch(0, transactional=True)
COMMIT, ABORT = Marker(PID, 0, commit=True), Marker(PID, 0, commit=False)


def answers(log: Log, *sequences: int) -> list[Acceptance | Duplicate | Error]:
    return [check(log.known.entry(PID), batch(sequence), KAFKA) for sequence in sequences]


def test_a_log_tells_what_a_leader_knew() -> None:
    first, second = batch(0, transactional=True), batch(1, transactional=True)
    other = Batch(OTHER, 1, 0)
    logged: list[tuple[Offset, Batch | Marker]] = [(0, first), (1, other), (2, second), (3, COMMIT)]

    known = replayed(logged)
    assert dict(known.entries) == {
        PID: marked(appended(appended(NO_PRODUCER_ENTRY, first, 0), second, 2), COMMIT),
        OTHER: appended(NO_PRODUCER_ENTRY, other, 1),
    }
    assert known.entry(8) == NO_PRODUCER_ENTRY
    assert replayed(logged[:3]).entry(PID).transaction_first_offset == 0


def test_a_follower_takes_what_no_leader_would() -> None:
    assert log_of(Batch(PID, 2, 5), Batch(PID, 1, 0)).known.entry(PID).epoch == 1


class TestRestart:
    def test_only_the_last_batch_is_told_as_a_duplicate(self) -> None:
        assert answers(SIX, 1, 5, 6) == [Duplicate(1), Duplicate(5), ACCEPTED]

        refused = Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answers(SIX.restart(6), 4, 5, 6) == [refused, Duplicate(5), ACCEPTED]

    def test_after_a_power_loss_it_is_the_last_batch_of_what_is_left(self) -> None:
        refused = Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answers(SIX.restart(4), 2, 3, 4) == [refused, Duplicate(3), ACCEPTED]

    def test_what_is_appended_afterwards_is_remembered_beside_it(self) -> None:
        on = SIX.restart(6).append([Record(0, 6, batch(6))])
        assert answers(on, 4, 5, 6) == [Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Duplicate(5), Duplicate(6)]

    def test_an_open_transaction_stays_open(self) -> None:
        restarted = log_of(batch(0), batch(1, transactional=True)).restart(2)
        assert restarted.last_stable_offset(2, KAFKA) == 1
        assert restarted.append([Record(0, 2, COMMIT)]).last_stable_offset(3, KAFKA) == 3

    def test_the_end_of_a_transaction_no_longer_holds_readers_up(self) -> None:
        """Nothing is known any more of an end that is not replicated, as it is below the snapshot."""
        ended = log_of(BEGUN, COMMIT)
        assert ended.last_stable_offset(1, KAFKA) == 0
        assert ended.restart(2).last_stable_offset(1, KAFKA) == 1

    def test_what_was_aborted_is_still_listed(self) -> None:
        assert len(log_of(BEGUN, ABORT).restart(2).known.transactions.aborted) == 1
        assert log_of(BEGUN, ABORT).restart(1).known.transactions.aborted == ()

    def test_an_empty_log_knows_nobody(self) -> None:
        """A snapshot at the start of the log does not count."""
        assert SIX.delete_before(5).restart(6).known.entry(PID) != NO_PRODUCER_ENTRY
        assert SIX.delete_before(6).restart(6).known.entry(PID) == NO_PRODUCER_ENTRY


class TestTruncation:
    def test_what_is_left_of_the_log_is_read_again(self) -> None:
        assert answers(SIX.truncate(3), 0, 2, 3) == [Duplicate(0), Duplicate(2), ACCEPTED]
        assert SIX.truncate(0).known.entries == ()
        assert SIX.truncate(9) == SIX

    def test_but_only_from_the_last_snapshot_on(self) -> None:
        rolled = log_of(*(batch(sequence) for sequence in range(3))).roll()
        rolled = rolled.append(Record(0, sequence, batch(sequence)) for sequence in range(3, 6))
        refused = Error.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert answers(rolled, 1, 2) == [Duplicate(1), Duplicate(2)]  # in memory is everything
        assert answers(rolled.truncate(4), 1, 2, 3) == [refused, Duplicate(2), Duplicate(3)]
        assert answers(rolled.truncate(2), 0, 1) == [Duplicate(0), Duplicate(1)]  # below the snapshot, which is gone

    def test_a_restart_leaves_the_snapshots_of_segments_and_of_its_end(self) -> None:
        rolled = SIX.truncate(2).roll().append([Record(0, 2, batch(2)), Record(0, 3, batch(3))]).truncate(3)
        assert [snapshot.offset for snapshot in rolled.known.snapshots] == [2, 3]
        on = rolled.append([Record(0, 3, batch(3))]).restart(4)
        assert [snapshot.offset for snapshot in on.known.snapshots] == [2, 4]

    def test_the_end_of_a_transaction_can_be_cut_off(self) -> None:
        ended = log_of(BEGUN, ABORT)
        assert (ended.last_stable_offset(2, KAFKA), ended.truncate(1).last_stable_offset(1, KAFKA)) == (2, 0)
        assert ended.truncate(1).known.transactions.aborted == ()


class TestDeletedRecords:
    def test_their_producers_are_known_as_before(self) -> None:
        assert answers(SIX.delete_before(6), 1, 5, 6) == answers(SIX, 1, 5, 6)

    def test_a_restart_keeps_them_but_a_truncation_begins_at_the_start(self) -> None:
        two = log_of(Batch(OTHER, 0, 0), *(batch(sequence) for sequence in range(3))).delete_before(1)
        assert two.known.entry(OTHER) != NO_PRODUCER_ENTRY
        assert two.restart(4).known.entry(OTHER) != NO_PRODUCER_ENTRY
        assert two.truncate(3).known.entry(OTHER) == NO_PRODUCER_ENTRY
        assert two.truncate(3).known.entry(PID) != NO_PRODUCER_ENTRY

    def test_a_transaction_that_began_in_them_holds_readers_at_the_start(self) -> None:
        opened = log_of(BEGUN, batch(1, transactional=True), Batch(OTHER, 0, 0))
        assert opened.last_stable_offset(3, KAFKA) == 0
        assert opened.delete_before(1).last_stable_offset(3, KAFKA) == 1

    def test_what_began_in_them_and_was_aborted_is_still_listed(self) -> None:
        aborted = log_of(BEGUN, batch(1, transactional=True), ABORT).delete_before(1)
        assert [one.first_offset for one in aborted.known.transactions.aborted] == [0]
