"""What a replica knows of producers beside its log, in memory and on its disk (ProducerStateManager, TransactionIndex).

In memory is all that was appended since it was loaded. Snapshots are on the disk: of where a segment begins, of the end
of the log when it was last closed, recovered or truncated. They have the last batch only of each producer, so that is
all that is known of what is below them after a restart or a truncation. What expires in a day does not expire here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from lockstep_model.partition import last_stable_offset
from lockstep_model.partition.last_stable_offset import Ongoing, Transactions
from lockstep_model.partition.producer_state import NOBODY, Batch, Marker, Offset, ProducerEntry, ProducerId, followed

Entries: TypeAlias = tuple[tuple[ProducerId, ProducerEntry], ...]
"""By producer id, in their order."""
Logged: TypeAlias = Iterable[tuple[Offset, Batch | Marker]]
"""The batches of a log, and where each begins."""


class Snapshot(NamedTuple):
    """What was known of the log below an offset (SnapshotFile)."""

    offset: Offset
    entries: Entries
    of_segment: bool = False
    """Whether a segment begins there: it stays as long as the segment does."""


class KnownProducers(NamedTuple):
    """Everything that one replica knows of producers and their transactions."""

    entries: Entries = ()
    transactions: Transactions = Transactions()
    """Those that are over and unreplicated are filtered by the high watermark when somebody asks."""
    snapshots: tuple[Snapshot, ...] = ()
    """Ascending. One without any entry is as good as none, and is left out."""

    def entry(self, producer_id: ProducerId) -> ProducerEntry:
        """What is known of this producer."""
        return next((entry for number, entry in self.entries if number == producer_id), NOBODY)

    def followed(self, logged: Batch | Marker, offset: Offset) -> KnownProducers:
        """After this is in the log, whoever put it there; nothing is checked."""
        entry = followed(self.entry(logged.producer_id), logged, offset)
        others = (one for one in self.entries if one[0] != logged.producer_id)
        return self._replace(
            entries=tuple(sorted((*others, (logged.producer_id, entry)))),
            transactions=last_stable_offset.followed(self.transactions, logged, offset),
        )

    def rolled(self, end: Offset) -> KnownProducers:
        """A segment begins here (UnifiedLog.roll)."""
        return self._with_snapshot(end, of_segment=True)

    def truncated(self, logged: Logged, start: Offset, end: Offset) -> KnownProducers:
        """The log ends here now: begin with the newest snapshot in range (truncateAndReload, rebuildProducerState).

        A snapshot at the start of the log, or below it, does not count: what was deleted is forgotten.
        """
        snapshots = tuple(snapshot for snapshot in self.snapshots if start < snapshot.offset <= end)
        base = snapshots[-1] if snapshots else Snapshot(start, ())
        known = KnownProducers(base.entries, Transactions(ongoing=_open(base.entries)), snapshots)
        for offset, one in logged:
            if base.offset <= offset < end:
                known = known.followed(one, offset)
        aborted = tuple(one for one in self.transactions.aborted if one.marker_offset < end)
        transactions = known.transactions._replace(aborted=aborted)
        return known._replace(transactions=transactions)._with_snapshot(end)

    def restarted(self, logged: Logged, start: Offset, end: Offset) -> KnownProducers:
        """The broker comes back, however it ended, and this is in its log up to here.

        A clean shutdown leaves a snapshot of the end, and the recovery of the last segment after any other makes one
        (LogManager.shutdown, LogLoader.recoverSegment). Others that belong to no segment go (removeStraySnapshots).
        """
        closed = self._with_snapshot(end)
        kept = tuple(snapshot for snapshot in closed.snapshots if snapshot.of_segment or snapshot.offset == end)
        return closed._replace(snapshots=kept).truncated(logged, start, end)

    def _with_snapshot(self, offset: Offset, *, of_segment: bool = False) -> KnownProducers:
        """ProducerStateManager.takeSnapshot, writeSnapshot"""
        if not self.entries:
            return self
        below = tuple(snapshot for snapshot in self.snapshots if snapshot.offset < offset)
        same = any(snapshot.of_segment for snapshot in self.snapshots if snapshot.offset == offset)
        entries = tuple((number, entry._replace(batches=entry.batches[-1:])) for number, entry in self.entries)
        return self._replace(snapshots=(*below, Snapshot(offset, entries, of_segment or same)))


def _open(entries: Entries) -> tuple[Ongoing, ...]:
    """The transactions that were open (ProducerStateManager.loadProducerEntry)."""
    begun = ((entry.transaction_first_offset, number) for number, entry in entries)
    return tuple(sorted(Ongoing(first_offset, number) for first_offset, number in begun if first_offset is not None))


def replayed(logged: Logged) -> KnownProducers:
    """What a follower knows that has all of this from its leader."""
    known = KnownProducers()
    for offset, one in logged:
        known = known.followed(one, offset)
    return known
