"""Transactions on one partition's log, the last stable offset (LSO), and the aborted transaction index.

Every replica derives them from its own log and high watermark (ProducerStateManager, TransactionIndex; KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Batch, Marker, Offset, ProducerId
from lockstep_model.transactions import mutants


class OngoingTxn(NamedTuple):
    """A transaction without a marker in this log (ongoingTxns)."""

    first_offset: Offset
    producer_id: ProducerId


class CompletedTxn(NamedTuple):
    """A transaction with its marker in the log, not yet below the high watermark (unreplicatedTxns)."""

    first_offset: Offset
    marker_offset: Offset


class AbortedTxn(NamedTuple):
    """An aborted transaction, listed in Fetch responses: read_committed consumers skip its records (AbortedTxn)."""

    producer_id: ProducerId
    first_offset: Offset
    marker_offset: Offset
    last_stable_offset: Offset
    """The LSO when its marker was appended: no transaction whose marker comes later begins below it."""


class Transactions(NamedTuple):
    """Transactions of one log: ongoing and unreplicated ascend by first offset, aborted by marker offset."""

    ongoing: tuple[OngoingTxn, ...] = ()
    unreplicated: tuple[CompletedTxn, ...] = ()
    aborted: tuple[AbortedTxn, ...] = ()


def followed(transactions: Transactions, logged: Batch | Marker, offset: Offset) -> Transactions:
    """Transactions after a batch or marker is appended (ProducerAppendInfo.append, ProducerStateManager.update)."""
    if isinstance(logged, Marker):
        return _ended(transactions, logged, offset)
    if not logged.transactional or any(one.producer_id == logged.producer_id for one in transactions.ongoing):
        return transactions
    begun = OngoingTxn(first_offset=offset, producer_id=logged.producer_id)
    return transactions._replace(ongoing=(*transactions.ongoing, begun))


def _ended(transactions: Transactions, marker: Marker, offset: Offset) -> Transactions:
    """Transactions after a marker (ProducerAppendInfo.appendEndTxnMarker, ProducerStateManager.completeTxn).

    A marker without an ongoing transaction changes nothing.
    """
    mine = next((one for one in transactions.ongoing if one.producer_id == marker.producer_id), None)
    if mine is None:
        return transactions
    others = tuple(one for one in transactions.ongoing if one is not mine)
    aborted = AbortedTxn(
        producer_id=marker.producer_id,
        first_offset=mine.first_offset,
        marker_offset=offset,
        last_stable_offset=others[0].first_offset if others else offset + 1,  # ProducerStateManager.lastStableOffset
    )
    return Transactions(
        ongoing=others,
        unreplicated=tuple(sorted((*transactions.unreplicated, CompletedTxn(mine.first_offset, offset)))),
        aborted=transactions.aborted if marker.commit else (*transactions.aborted, aborted),
    )


def replicated(transactions: Transactions, high_watermark: Offset) -> Transactions:
    """Markers below the high watermark are replicated (ProducerStateManager.onHighWatermarkUpdated)."""
    return transactions._replace(
        unreplicated=tuple(one for one in transactions.unreplicated if one.marker_offset >= high_watermark)
    )


def first_unstable_offset(transactions: Transactions, parameters: Parameters) -> Offset | None:
    """First offset of the oldest ongoing or unreplicated transaction (ProducerStateManager.firstUnstableOffset)."""
    starts: list[Offset] = []
    if parameters.guards(mutants.OPEN_HOLDS_LSO):
        starts += [one.first_offset for one in transactions.ongoing]
    if parameters.guards(mutants.UNREPLICATED_HOLDS_LSO):
        starts += [one.first_offset for one in transactions.unreplicated]
    return min(starts, default=None)


def last_stable_offset(transactions: Transactions, high_watermark: Offset, parameters: Parameters) -> Offset:
    """The LSO: the first unstable offset, at most the high watermark (UnifiedLog.lastStableOffset)."""
    unstable = first_unstable_offset(transactions, parameters)
    return high_watermark if unstable is None else min(unstable, high_watermark)


def aborted_between(transactions: Transactions, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
    """The abortedTransactions of a Fetch response for these offsets (TransactionIndex.collectAbortedTxns)."""
    listed = []
    for one in transactions.aborted:
        if one.marker_offset >= start and one.first_offset < end:
            listed.append(one)
        if one.last_stable_offset >= end:
            break
    return tuple(listed)


def readable(
    logged: Iterable[tuple[Offset, Batch | Marker]], aborted: Iterable[AbortedTxn], end: Offset
) -> Iterable[Offset]:
    """Offsets of the records that a read_committed consumer returns (CompletedFetch.nextFetchedRecord).

    The consumer reads whole batches: the LSO is never inside a batch.
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
