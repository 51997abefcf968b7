"""Producer state of one replica, in memory and in snapshot files (ProducerStateManager, TransactionIndex).

In memory a producer id has its last five batches. A snapshot file is written where a segment begins, and at the log end
offset at a clean close, a recovery or a truncation. It has only the last batch of each producer id, so after a restart
or a truncation one batch is known of what is below it. Expiry (producer.id.expiration.ms, one day) is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from lockstep_model.partition import last_stable_offset
from lockstep_model.partition.last_stable_offset import OngoingTxn, Transactions
from lockstep_model.partition.producer_state import (
    NO_PRODUCER_ENTRY,
    Batch,
    Marker,
    Offset,
    ProducerEntry,
    ProducerId,
    followed,
)

Entries: TypeAlias = tuple[tuple[ProducerId, ProducerEntry], ...]
"""ProducerStateEntry by producer id, ascending."""
LoggedBatches: TypeAlias = Iterable[tuple[Offset, Batch | Marker]]
"""The batches of a log that have a producer id, each with its base offset."""


class Snapshot(NamedTuple):
    """A producer state snapshot: the entries as of the log below `offset` (SnapshotFile)."""

    offset: Offset
    entries: Entries
    of_segment: bool = False
    """Whether `offset` is the base offset of a segment: such a snapshot is deleted only with its segment."""


class KnownProducers(NamedTuple):
    """Producer entries, transactions and snapshots of one replica (ProducerStateManager)."""

    entries: Entries = ()
    transactions: Transactions = Transactions()
    """Its unreplicated transactions are not pruned here: `Log.transactions` filters them by the high watermark."""
    snapshots: tuple[Snapshot, ...] = ()
    """Ascending by offset. A snapshot without entries restores nothing and is left out."""

    def entry(self, producer_id: ProducerId) -> ProducerEntry:
        """The entry of a producer id (ProducerStateManager.lastEntry)."""
        return next((entry for number, entry in self.entries if number == producer_id), NO_PRODUCER_ENTRY)

    def followed(self, logged: Batch | Marker, offset: Offset) -> KnownProducers:
        """Producer state after an append, by leader or follower; nothing is validated (ProducerStateManager.update)."""
        entry = followed(self.entry(logged.producer_id), logged, offset)
        others = (one for one in self.entries if one[0] != logged.producer_id)
        return self._replace(
            entries=tuple(sorted((*others, (logged.producer_id, entry)))),
            transactions=last_stable_offset.followed(self.transactions, logged, offset),
        )

    def rolled(self, end: Offset) -> KnownProducers:
        """A new segment begins at this offset, with a snapshot (UnifiedLog.roll)."""
        return self._with_snapshot(end, of_segment=True)

    def truncated(self, logged: LoggedBatches, start: Offset, end: Offset) -> KnownProducers:
        """After a truncation the newest snapshot is loaded and the log above it replayed (truncateAndReload).

        A snapshot at or below the log start offset is dropped, and with it the producers of deleted records
        (UnifiedLog.rebuildProducerState).
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

    def restarted(self, logged: LoggedBatches, start: Offset, end: Offset) -> KnownProducers:
        """Producer state after a broker restart, clean or not, with a log that ends at `end` (LogLoader.load).

        A clean shutdown writes a snapshot at the log end offset, log recovery after an unclean one too
        (LogManager.shutdown, LogLoader.recoverSegment). Other snapshots that belong to no segment are deleted
        (ProducerStateManager.removeStraySnapshots).
        """
        closed = self._with_snapshot(end)
        kept = tuple(snapshot for snapshot in closed.snapshots if snapshot.of_segment or snapshot.offset == end)
        return closed._replace(snapshots=kept).truncated(logged, start, end)

    def _with_snapshot(self, offset: Offset, *, of_segment: bool = False) -> KnownProducers:
        """Write a snapshot at this offset, with the last batch per producer id (ProducerStateManager.takeSnapshot)."""
        if not self.entries:
            return self
        below = tuple(snapshot for snapshot in self.snapshots if snapshot.offset < offset)
        same = any(snapshot.of_segment for snapshot in self.snapshots if snapshot.offset == offset)
        entries = tuple((number, entry._replace(batches=entry.batches[-1:])) for number, entry in self.entries)
        return self._replace(snapshots=(*below, Snapshot(offset, entries, of_segment or same)))


def _open(entries: Entries) -> tuple[OngoingTxn, ...]:
    """Ongoing transactions restored from a snapshot (ProducerStateManager.loadProducerEntry)."""
    begun = ((entry.transaction_first_offset, number) for number, entry in entries)
    return tuple(sorted(OngoingTxn(first_offset, number) for first_offset, number in begun if first_offset is not None))


def replayed(logged: LoggedBatches) -> KnownProducers:
    """Producer state of a follower that replicated all these batches, from an empty log on."""
    known = KnownProducers()
    for offset, one in logged:
        known = known.followed(one, offset)
    return known
