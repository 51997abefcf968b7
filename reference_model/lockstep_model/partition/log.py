"""The log of one replica: records, each with the epoch of the leader that wrote it, and what is kept beside them.

Where epochs begin is kept (LeaderEpochFileCache), because an epoch is known before its first record is: a leader enters
its epoch as soon as it is elected. Followers find the end of what they share with a leader by it. What is known of
producers is kept too, and outlives their records (`known_producers`).
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
NOBODY_KNOWN = KnownProducers()


class Record(NamedTuple):
    """One record at one offset."""

    epoch: Epoch
    """Of the leader that appended it."""
    value: int
    """What tells it from all others."""
    batch: Batch | Marker | None = None
    """The batch that begins with it, where its producer has an id."""


class EpochStart(NamedTuple):
    """Where an epoch begins (EpochEntry)."""

    epoch: Epoch
    start: Offset


class EpochEnd(NamedTuple):
    """Where an epoch ends: the answer to OffsetForLeaderEpoch, and how a leader tells a follower of divergence."""

    epoch: Epoch
    end: Offset


class Log(NamedTuple):
    """Records at the offsets from `start` on, the leader epoch cache, and what is known of producers."""

    records: tuple[Record, ...] = ()
    start: Offset = 0
    epochs: tuple[EpochStart, ...] = ()
    """Ascending in both."""
    producers: KnownProducers | None = None
    """None as long as none with an id has written: most logs that are explored have no more than records."""

    @property
    def known(self) -> KnownProducers:
        """What is known of producers."""
        return self.producers or NOBODY_KNOWN

    @property
    def end(self) -> Offset:
        """The log end offset: that of the next record."""
        return self.start + len(self.records)

    @property
    def latest_epoch(self) -> Epoch:
        """What a follower sends as the last fetched epoch; NO_EPOCH if it knows none."""
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    def read(self, offset: Offset, end: Offset) -> tuple[Record, ...]:
        """The records from an offset on, up to an end."""
        return self.records[max(offset - self.start, 0) : max(end - self.start, 0)]

    def batches(self) -> Iterator[tuple[Offset, Batch | Marker]]:
        """The batches of producers with an id, and where each begins."""
        for index, record in enumerate(self.records):
            if record.batch is not None:
                yield self.start + index, record.batch

    def transactions(self, high_watermark: Offset) -> Transactions:
        """Those that are open, over and perhaps not replicated yet, and aborted, as of this high watermark."""
        return replicated(self.known.transactions, high_watermark)

    def last_stable_offset(self, high_watermark: Offset, parameters: Parameters) -> Offset:
        """Where readers of committed records stop, which is not below the start (maybeIncrementFirstUnstableOffset)."""
        return max(last_stable_offset(self.transactions(high_watermark), high_watermark, parameters), self.start)

    def append(self, records: Iterable[Record]) -> Log:
        """As a leader or a follower does: a record of a new epoch begins it (UnifiedLog.append)."""
        log = self
        for record in records:
            log = log.assign(record.epoch, log.end)
            producers = log.producers if record.batch is None else log.known.followed(record.batch, log.end)
            log = log._replace(records=(*log.records, record), producers=producers)
        return log

    def roll(self) -> Log:
        """The next record goes to a new segment."""
        return self._replace(producers=self.producers and self.producers.rolled(self.end))

    def assign(self, epoch: Epoch, start: Offset) -> Log:
        """Enter where an epoch begins, over whatever contradicts it (LeaderEpochFileCache.assign).

        An epoch without records gives way to the next one, which begins at the same offset.
        """
        if self.epochs and self.epochs[-1].epoch == epoch and self.epochs[-1].start <= start:
            return self
        kept = tuple(entry for entry in self.epochs if entry.epoch < epoch and entry.start < start)
        return self._replace(epochs=(*kept, EpochStart(epoch, start)))

    def end_offset_for(self, epoch: Epoch) -> EpochEnd | None:
        """The largest epoch here that is not above this one, and where it ends (LeaderEpochFileCache.endOffsetFor)."""
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
        """Cut the log back to this end (UnifiedLog.truncateTo).

        An epoch that begins at the end goes too, even if no record does: a leader that was deposed before it appended
        anything has entered one.
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
        """As a broker finds it when it comes back, with what was on the disk up to this end (LogLoader.load)."""
        log = self.truncate(end)
        return log._replace(producers=log.producers and log.producers.restarted(log.batches(), log.start, log.end))

    def delete_before(self, start: Offset) -> Log:
        """Move the log start up; the epoch that it falls into begins there (LeaderEpochFileCache.truncateFromStart).

        Producers are known as before, even those of which nothing is left (onLogStartOffsetIncremented).
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
    """An empty log, as after a follower found its end below the start of the leader's (truncateFullyAndStartAt)."""
    return Log(start=start)
