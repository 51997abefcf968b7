"""Which transactions are open on one partition's log, and how far a reader of committed records may read.

Every replica follows its own log and its own high watermark with it (ProducerStateManager, TransactionIndex).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Batch, Marker, Offset, ProducerId
from lockstep_model.transactions import mutants


class Ongoing(NamedTuple):
    """A transaction whose end is not in the log."""

    first_offset: Offset
    producer_id: ProducerId


class Completed(NamedTuple):
    """A transaction whose marker is in the log, but not known to be replicated."""

    first_offset: Offset
    marker_offset: Offset


class Aborted(NamedTuple):
    """What a fetch tells readers of committed records, who drop the records by it (AbortedTxn)."""

    producer_id: ProducerId
    first_offset: Offset
    marker_offset: Offset
    last_stable_offset: Offset
    """When its marker was appended: nothing that ends later is below it."""


class Transactions(NamedTuple):
    """Those on one log; the first two are in the order of their first offsets, the last in that of their markers."""

    ongoing: tuple[Ongoing, ...] = ()
    unreplicated: tuple[Completed, ...] = ()
    aborted: tuple[Aborted, ...] = ()


def followed(transactions: Transactions, logged: Batch | Marker, offset: Offset) -> Transactions:
    """After this is in the log."""
    if isinstance(logged, Marker):
        return _ended(transactions, logged, offset)
    if not logged.transactional or any(one.producer_id == logged.producer_id for one in transactions.ongoing):
        return transactions
    begun = Ongoing(first_offset=offset, producer_id=logged.producer_id)
    return transactions._replace(ongoing=(*transactions.ongoing, begun))


def _ended(transactions: Transactions, marker: Marker, offset: Offset) -> Transactions:
    """A marker where nothing is open changes nothing (ProducerAppendInfo.appendEndTxnMarker, completeTxn)."""
    mine = next((one for one in transactions.ongoing if one.producer_id == marker.producer_id), None)
    if mine is None:
        return transactions
    others = tuple(one for one in transactions.ongoing if one is not mine)
    aborted = Aborted(
        producer_id=marker.producer_id,
        first_offset=mine.first_offset,
        marker_offset=offset,
        last_stable_offset=others[0].first_offset if others else offset + 1,  # ProducerStateManager.lastStableOffset
    )
    return Transactions(
        ongoing=others,
        unreplicated=tuple(sorted((*transactions.unreplicated, Completed(mine.first_offset, offset)))),
        aborted=transactions.aborted if marker.commit else (*transactions.aborted, aborted),
    )


def replicated(transactions: Transactions, high_watermark: Offset) -> Transactions:
    """The high watermark passed some markers (ProducerStateManager.onHighWatermarkUpdated)."""
    return transactions._replace(
        unreplicated=tuple(one for one in transactions.unreplicated if one.marker_offset >= high_watermark)
    )


def first_unstable_offset(transactions: Transactions, parameters: Parameters) -> Offset | None:
    """Where the first transaction begins that is open, or whose end could still be lost."""
    starts: list[Offset] = []
    if parameters.guards(mutants.OPEN_HOLDS_LSO):
        starts += [one.first_offset for one in transactions.ongoing]
    if parameters.guards(mutants.UNREPLICATED_HOLDS_LSO):
        starts += [one.first_offset for one in transactions.unreplicated]
    return min(starts, default=None)


def last_stable_offset(transactions: Transactions, high_watermark: Offset, parameters: Parameters) -> Offset:
    """Where readers of committed records stop (UnifiedLog.lastStableOffset)."""
    unstable = first_unstable_offset(transactions, parameters)
    return high_watermark if unstable is None else min(unstable, high_watermark)


def aborted_between(transactions: Transactions, start: Offset, end: Offset) -> tuple[Aborted, ...]:
    """What a fetch of these offsets lists (TransactionIndex.collectAbortedTxns)."""
    listed = []
    for one in transactions.aborted:
        if one.marker_offset >= start and one.first_offset < end:
            listed.append(one)
        if one.last_stable_offset >= end:
            break
    return tuple(listed)


def readable(
    logged: Iterable[tuple[Offset, Batch | Marker]], aborted: Iterable[Aborted], end: Offset
) -> Iterable[Offset]:
    """The offsets of the records that a reader of committed records is given (CompletedFetch.nextFetchedRecord).

    It reads whole batches: the last stable offset is never inside of one.
    """
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    dropped: set[ProducerId] = set()
    for offset, one in logged:
        if offset >= end:
            return
        while waiting and waiting[0].first_offset <= offset:
            dropped.add(waiting.pop(0).producer_id)
        if isinstance(one, Marker):
            if not one.commit:
                dropped.discard(one.producer_id)
        elif not (one.transactional and one.producer_id in dropped):
            yield from range(offset, offset + one.records)
