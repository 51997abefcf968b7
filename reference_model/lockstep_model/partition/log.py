"""The log of one replica: records with their leader epochs, the leader epoch cache, and producer state (UnifiedLog).

The leader epoch cache (LeaderEpochFileCache) is kept beside the records because an epoch may have no record: a new
leader assigns its epoch at its log end offset before it appends. Followers truncate by this cache (KIP-101, KIP-279).
Producer state outlives the records of its producers (`known_producers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from lockstep_model.parameters import Parameters
from lockstep_model.partition.known_producers import KnownProducers
from lockstep_model.partition.last_stable_offset import Transactions, last_stable_offset, replicated
from lockstep_model.partition.producer_state import Batch, Marker

Offset: TypeAlias = int
Epoch: TypeAlias = int

NO_EPOCH: Epoch = -1
NO_PRODUCER_STATE = KnownProducers()


class Record(NamedTuple):
    """One record at one offset."""

    epoch: Epoch
    """partitionLeaderEpoch: the epoch of the leader that appended it."""
    value: int
    """The identity of the record: unique in the partition."""
    batch: Batch | Marker | None = None
    """The batch whose base offset this is, if the batch has a producer id."""


class EpochStart(NamedTuple):
    """A leader epoch and its start offset (EpochEntry)."""

    epoch: Epoch
    start: Offset


class EpochEnd(NamedTuple):
    """A leader epoch and its end offset, as in OffsetForLeaderEpoch responses and in divergingEpoch of Fetch."""

    epoch: Epoch
    end: Offset


class Log(NamedTuple):
    """Records from the log start offset on, the leader epoch cache, and producer state (UnifiedLog)."""

    records: tuple[Record, ...] = ()
    start: Offset = 0
    epochs: tuple[EpochStart, ...] = ()
    """The leader epoch cache, ascending by epoch and by start offset."""
    producers: KnownProducers | None = None
    """Producer state; None until a batch with a producer id is appended, which keeps states of the search small."""

    @property
    def known(self) -> KnownProducers:
        """Producer state, empty if no batch had a producer id."""
        return self.producers or NO_PRODUCER_STATE

    @property
    def end(self) -> Offset:
        """The log end offset (LEO): the offset of the next record."""
        return self.start + len(self.records)

    @property
    def latest_epoch(self) -> Epoch:
        """The latest epoch of the cache, sent as lastFetchedEpoch; NO_EPOCH if it is empty (UnifiedLog.latestEpoch)."""
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    def read(self, offset: Offset, end: Offset) -> tuple[Record, ...]:
        """The records from `offset` up to, not including, `end`."""
        return self.records[max(offset - self.start, 0) : max(end - self.start, 0)]

    def batches(self) -> Iterator[tuple[Offset, Batch | Marker]]:
        """The batches that have a producer id, each with its base offset."""
        for index, record in enumerate(self.records):
            if record.batch is not None:
                yield self.start + index, record.batch

    def transactions(self, high_watermark: Offset) -> Transactions:
        """Transactions with this high watermark: those with a marker below it are replicated."""
        return replicated(self.known.transactions, high_watermark)

    def last_stable_offset(self, high_watermark: Offset, parameters: Parameters) -> Offset:
        """The LSO, at least the log start offset (UnifiedLog.maybeIncrementFirstUnstableOffset)."""
        return max(last_stable_offset(self.transactions(high_watermark), high_watermark, parameters), self.start)

    def append(self, records: Iterable[Record]) -> Log:
        """Append as leader or follower; the first record of an epoch assigns its start offset (UnifiedLog.append)."""
        log = self
        for record in records:
            log = log.assign(record.epoch, log.end)
            producers = log.producers if record.batch is None else log.known.followed(record.batch, log.end)
            log = log._replace(records=(*log.records, record), producers=producers)
        return log

    def roll(self) -> Log:
        """Roll the active segment at the log end offset (UnifiedLog.roll)."""
        return self._replace(producers=self.producers and self.producers.rolled(self.end))

    def assign(self, epoch: Epoch, start: Offset) -> Log:
        """Assign a start offset to an epoch, and drop conflicting entries (LeaderEpochFileCache.assign).

        An epoch without records is dropped for the next epoch with the same start offset.
        """
        if self.epochs and self.epochs[-1].epoch == epoch and self.epochs[-1].start <= start:
            return self
        kept = tuple(entry for entry in self.epochs if entry.epoch < epoch and entry.start < start)
        return self._replace(epochs=(*kept, EpochStart(epoch, start)))

    def end_offset_for(self, epoch: Epoch) -> EpochEnd | None:
        """The largest epoch not above the requested one, and its end offset (LeaderEpochFileCache.endOffsetFor).

        None is UNDEFINED_EPOCH: the requested epoch is undefined, or above all epochs of the cache.
        """
        if epoch == NO_EPOCH:
            return None
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, self.end)
        higher = next((entry for entry in self.epochs if entry.epoch > epoch), None)
        if higher is None:
            return None
        floor = max((entry.epoch for entry in self.epochs if entry.epoch <= epoch), default=epoch)
        return EpochEnd(floor, higher.start)

    def truncate(self, end: Offset) -> Log:
        """Truncate to this log end offset (UnifiedLog.truncateTo, LeaderEpochFileCache.truncateFromEnd).

        An epoch that starts at the new end is dropped too, even if no record is: a leader that lost leadership before
        its first append had assigned one.
        """
        end = min(end, self.end)
        start = min(self.start, end)
        producers = self.producers
        if producers is not None and end < self.end:
            producers = producers.truncated(self.batches(), start, end)
        return self._replace(
            records=self.records[: max(end - self.start, 0)],
            start=start,
            epochs=tuple(entry for entry in self.epochs if entry.start < end),
            producers=producers,
        )

    def restart(self, end: Offset) -> Log:
        """The log after a broker restart, with the records below `end` on disk (LogLoader.load)."""
        log = self.truncate(end)
        return log._replace(producers=log.producers and log.producers.restarted(log.batches(), log.start, log.end))

    def delete_before(self, start: Offset) -> Log:
        """Raise the log start offset; the epoch that contains it starts there (LeaderEpochFileCache.truncateFromStart).

        Producer state stays, even of producers without a record left (onLogStartOffsetIncremented).
        """
        if start <= self.start:
            return self
        before = [entry for entry in self.epochs if entry.start <= start]
        first = [EpochStart(before[-1].epoch, start)] if before else []
        return self._replace(
            records=self.records[start - self.start :],
            start=start,
            epochs=(*first, *self.epochs[len(before) :]),
        )


def starting_at(start: Offset) -> Log:
    """An empty log, after a follower's LEO was below the leader's log start (UnifiedLog.truncateFullyAndStartAt)."""
    return Log(start=start)
