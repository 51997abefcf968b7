"""Invariants of idempotence and transactions: I12 and I13 of kafka-semantics.md §2.3, split into checkable parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import LAST_SEQUENCE, Acceptance, Batch, Marker, Offset, check_marker
from lockstep_model.state_machine import Invariant, Transition
from lockstep_model.transactions.client import Client
from lockstep_model.transactions.coordinator import PREPARED, Partition, TransactionState, marker
from lockstep_model.transactions.partition import Leader, Source, source_of
from lockstep_model.transactions.state import Coordinator, TransactionBounds

SEQUENCES = "sequences-contiguous"
READ_COMMITTED = "read-committed"
OWN_COMMIT = "visible-by-own-commit"
COMMIT_KEPT = "commit-kept"
ATOMIC = "committed-or-aborted"
LSO_MONOTONE = "lso-monotone"
LSO_NOT_STUCK = "lso-not-stuck"
NOT_REFUSED = "in-order-not-refused"
NOT_FENCED = "alone-not-fenced"


def of(
    parameters: Parameters,
    bounds: TransactionBounds,
    *,
    coordinator: int,
    clients: tuple[int, ...],
    partitions: tuple[int, ...],
) -> tuple[Invariant | Transition, ...]:
    """All invariants, for a machine whose state has these parts at these places."""
    found: list[Invariant | Transition] = [
        Invariant(name=ATOMIC, reads=(coordinator, *partitions), holds=atomic),
        *(Invariant(name=NOT_REFUSED, reads=(place,), holds=not_misled) for place in clients),
    ]
    if sum(number > 0 for number in bounds.transactions) == 1:
        alone = partial(fenced_in_time, bounds)
        found += [Invariant(name=NOT_FENCED, reads=(place, coordinator), holds=alone) for place in clients]
    for partition, place in enumerate(partitions):
        both = (coordinator, place)
        found += [
            Invariant(name=SEQUENCES, reads=(place,), holds=contiguous),
            Invariant(name=READ_COMMITTED, reads=(place,), holds=partial(reads_committed, parameters)),
            Invariant(name=OWN_COMMIT, reads=both, holds=partial(visible_by_own_commit, parameters)),
            Invariant(name=LSO_NOT_STUCK, reads=both, holds=partial(not_stuck, parameters, partition)),
            Transition(name=LSO_MONOTONE, place=place, holds=partial(lso_rises, parameters)),
            *(
                Invariant(name=COMMIT_KEPT, reads=(client, place), holds=partial(commit_kept, partition))
                for client in clients
            ),
        ]
    return tuple(found)


def contiguous(leader: Leader) -> bool:
    """I12: per producer id and epoch sequence numbers are contiguous, and no record is appended twice."""
    last: dict[tuple[int, int], int] = {}
    sources: set[Source] = set()
    for record in leader.log.records:
        batch = record.batch
        if isinstance(batch, Batch):
            key = (batch.producer_id, batch.epoch)
            if key in last and batch.first_sequence != (last[key] + 1) % (LAST_SEQUENCE + 1):
                return False
            last[key] = batch.last_sequence
            if record.value in sources:
                return False
            sources.add(record.value)
    return True


def outcomes(leader: Leader) -> Iterator[tuple[Offset, Source, bool | None]]:
    """For each record the outcome by the first later marker of its producer: committed, aborted, or None while open."""
    records = leader.log.records
    for offset, record in enumerate(records):
        if isinstance(record.batch, Batch):
            markers = (one.batch for one in records[offset:] if isinstance(one.batch, Marker))
            mine = (one.commit for one in markers if one.producer_id == record.batch.producer_id)
            yield offset, record.value, next(mine, None)


def reads_committed(parameters: Parameters, leader: Leader) -> bool:
    """I13: below the LSO a read_committed consumer sees all committed records and no aborted one."""
    end = leader.last_stable_offset(parameters)
    committed = {offset for offset, _, outcome in outcomes(leader) if outcome and offset < end}
    return leader.readable(parameters) == committed


def visible_by_own_commit(parameters: Parameters, coordinator: Coordinator, leader: Leader) -> bool:
    """A visible record's own transaction was committed: no zombie's or aborted record joins another commit.

    KIP-890.
    """
    readable = leader.readable(parameters)
    return all((leader.log.records[offset].value, True) in coordinator.decided for offset in readable)


def commit_kept(partition: Partition, client: Client, leader: Leader) -> bool:
    """A transaction whose producer got a successful commit response keeps every acknowledged record, none aborted."""
    outcome = {source: decided for _, source, decided in outcomes(leader)}
    return all(
        outcome.get(source_of(client.name, number), False) is not False
        for number, ended in enumerate(client.ended)
        if ended.commit and partition in ended.acknowledged
    )


def atomic(coordinator: Coordinator, *leaders: Leader) -> bool:
    """A transaction is committed or aborted, never both: neither by EndTxn requests nor by markers on any partition."""
    decided = set(coordinator.decided)
    for leader in leaders:
        decided |= {(source, outcome) for _, source, outcome in outcomes(leader) if outcome is not None}
    return not any((source, not commit) in decided for source, commit in decided)


def lso_rises(parameters: Parameters, before: Leader, after: Leader) -> bool:
    """The last stable offset never falls, so no record that read_committed consumers saw is taken back."""
    return after.last_stable_offset(parameters) >= before.last_stable_offset(parameters)


def not_stuck(parameters: Parameters, partition: Partition, coordinator: Coordinator, leader: Leader) -> bool:
    """No hanging transaction: one that is open on a partition is known to the coordinator, whose marker can end it.

    KIP-890.
    """
    transactional = coordinator.transactional
    ongoing = leader.log.known.transactions.ongoing
    if not ongoing or transactional is None:
        return not ongoing
    if transactional.state is TransactionState.ONGOING:
        return partition in transactional.partitions
    if transactional.state not in PREPARED or partition not in transactional.unmarked:
        return False
    end = marker(transactional, coordinator.epoch)
    return isinstance(check_marker(leader.entry(end.producer_id), end, parameters), Acceptance)


def not_misled(client: Client) -> bool:
    """A producer with one batch in flight per partition never gets OUT_OF_ORDER_SEQUENCE_NUMBER."""
    return not client.misled


def fenced_in_time(bounds: TransactionBounds, client: Client, coordinator: Coordinator) -> bool:
    """The only producer of a transactional id is fenced only after a transaction timeout."""
    return not client.fenced or coordinator.timeouts < bounds.timeouts
