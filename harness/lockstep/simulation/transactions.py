"""Transactions: begun, committed, aborted, fenced, timed out, or with a lost EndTxn request or response.

The transaction coordinator of the reference model decides the response to each request, the epoch of each producer and
the outcome of each transaction. Times are drawn so that an event a client waits for comes before its response.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from lockstep.history.schema import Outcome, Role
from lockstep.simulation.rows import Clients, OperationRow
from lockstep.simulation.timeline import MS, PARAMETERS, SECOND, Timeline
from lockstep_model.errors import Error
from lockstep_model.transactions.coordinator import (
    AddPartitionsToTxn,
    EndTxn,
    InitProducerId,
    Producer,
    TransactionMetadata,
    abort_timed_out,
    add_partitions,
    complete,
    end_transaction,
    init_producer_id,
    marked,
    produce_error,
    verify_partition,
)
from lockstep_model.transactions.versions import usual

REPLICATION_MAX_NS = 15 * MS
"""The longest that anything takes to be replicated while nothing is wrong."""
ANSWER_MAX_NS = 5 * MS
"""The longest that an answer takes from then on."""

TIMED_OUT = "_TIMED_OUT"
_SHORTEST_NS = 120 * MS
_PER_ID_MAX = 5_000


class Part(NamedTuple):
    """The records of a transaction in one partition, and its marker there."""

    partition: int
    weight: float
    marker_ns: int
    """When its marker is appended."""
    stable_ns: int
    """When the marker is certainly replicated: the last stable offset may pass the transaction."""


class Refused(NamedTuple):
    """A send of a fenced producer."""

    partition: int
    time_ns: int
    error: str


class Transaction(NamedTuple):
    process: int
    transactional_id: str
    producer: Producer
    begin_ns: int
    sent_ns: int
    """When the last record is sent."""
    end_ns: int
    """When its end is requested: by its producer, by a new instance, or by the coordinator on timeout."""
    committed: bool
    parts: tuple[Part, ...]
    refused: Refused | None = None


COMMIT, ABORT, ZOMBIE, TIMEOUT, LOST_REQUEST, LOST_ANSWER = range(6)


def _kinds(chance: random.Random, number: int) -> list[int]:
    """Every kind there is, most of them commits."""
    few = min(max(number // 40, 1), 16)
    rare = [ABORT] * max(number // 10, 1) + [ZOMBIE, TIMEOUT, LOST_REQUEST, LOST_ANSWER] * few
    kinds = rare + [COMMIT] * (number - len(rare))
    chance.shuffle(kinds)
    return kinds


@dataclass(slots=True, kw_only=True)
class _Session:
    """One transactional id over time."""

    name: str
    chance: random.Random
    clients: Clients
    timelines: Sequence[Timeline]
    fresh: Iterator[int]
    operations: list[OperationRow]
    span_ns: int = 0
    now_ns: int = 0
    process: int = 0
    state: TransactionMetadata | None = None
    producer: Producer = field(default=Producer(-1, -1))

    def run(self, start_ns: int, end_ns: int, number: int) -> Iterator[Transaction]:
        self.span_ns = (end_ns - start_ns) // number
        for index, kind in enumerate(_kinds(self.chance, number)):
            self.now_ns = max(self.now_ns, start_ns + index * self.span_ns)
            if not self.process:
                self._starts()
            yield self._transaction(kind)

    def _starts(self, stable_ns: int = 0) -> None:
        """A new producer with this transactional id: the one before is fenced, and its markers are waited for."""
        self.process = self.clients.add(
            Role.WRITER, acks=-1, idempotent=True, retries=2**31 - 1, in_flight=5, isolation=None
        )
        invoke_ns = self.now_ns
        self.state, answer = init_producer_id(self.state, InitProducerId(), PARAMETERS, fresh=next(self.fresh))
        if answer.error is Error.CONCURRENT_TRANSACTIONS:
            self._marked()
            self.state, answer = init_producer_id(self.state, InitProducerId(), PARAMETERS, fresh=next(self.fresh))
        assert answer.error is Error.NONE, answer
        assert answer.producer is not None
        self.producer = answer.producer
        self.now_ns = max(self.now_ns, stable_ns) + self.chance.randrange(2 * MS, 5 * MS)
        self._did("init-txn", invoke_ns, self.now_ns)
        self.now_ns += MS // 2

    def _transaction(self, kind: int) -> Transaction:
        most = min(3, len(self.timelines))
        partitions = sorted(self.chance.sample(range(len(self.timelines)), self.chance.randint(1, most)))
        process, producer, begin_ns = self.process, self.producer, self.now_ns
        self._did("begin", begin_ns, begin_ns + self.chance.randrange(20_000, 200_000))
        request = AddPartitionsToTxn(producer, frozenset(partitions))
        self.state, answer = add_partitions(self.state, request, PARAMETERS)
        assert answer.error is Error.NONE, answer
        sent_ns = begin_ns + MS + int(0.4 * self.span_ns)
        self.now_ns = end_ns = max(self._answered_ns(partition, sent_ns) for partition in partitions) + MS
        committed = kind in (COMMIT, LOST_ANSWER)
        parts = tuple(self._part(partition, end_ns) for partition in partitions)
        stable_ns = max(part.stable_ns for part in parts)
        if kind in (COMMIT, ABORT):
            self._ends(commit=committed)
        elif kind == ZOMBIE:
            self._starts(stable_ns)
        elif kind == TIMEOUT:
            self._times_out()
        else:
            self._loses(stable_ns if kind == LOST_REQUEST else None)
        self.now_ns = max(self.now_ns, stable_ns)
        refused = self._refused(process, producer, partitions[0]) if kind in (ZOMBIE, TIMEOUT) else None
        return Transaction(process, self.name, producer, begin_ns, sent_ns, end_ns, committed, parts, refused)

    def _answered_ns(self, partition: int, time_ns: int) -> int:
        """When what is sent at this time is certainly answered."""
        timeline = self.timelines[partition]
        appended_ns = timeline.appends.one(time_ns)
        return timeline.commits.one(appended_ns + REPLICATION_MAX_NS + ANSWER_MAX_NS) + ANSWER_MAX_NS

    def _part(self, partition: int, end_ns: int) -> Part:
        timeline = self.timelines[partition]
        asked_ns = end_ns + self.chance.randrange(MS, 3 * MS)
        marker_ns = timeline.appends.one(asked_ns)
        stable_ns = timeline.commits.one(marker_ns + REPLICATION_MAX_NS)
        return Part(partition, self.chance.uniform(0.5, 1.5), marker_ns, stable_ns)

    def _ends(self, *, commit: bool) -> None:
        self.state, answer = end_transaction(
            self.state, EndTxn(self.producer, commit), PARAMETERS, fresh=next(self.fresh)
        )
        assert answer.error is Error.NONE, answer
        assert answer.producer is not None
        self.producer = answer.producer
        invoke_ns = self.now_ns
        self._marked()
        self.now_ns = invoke_ns + self.chance.randrange(2 * MS, 6 * MS)
        self._did("commit-txn" if commit else "abort-txn", invoke_ns, self.now_ns)

    def _times_out(self) -> None:
        """The coordinator aborts it; its producer hears of it when it asks for the end, and is replaced."""
        assert self.state is not None
        self.state = abort_timed_out(self.state, PARAMETERS, fresh=next(self.fresh))
        self._marked()
        self.process = 0

    def _loses(self, aborted_ns: int | None) -> None:
        """The outcome of EndTxn stays unknown to the producer: the response is lost, and the transaction commits.

        With `aborted_ns` the request itself is lost, and a new producer aborts the transaction.
        """
        if aborted_ns is None:
            self.state, answer = end_transaction(
                self.state, EndTxn(self.producer, commit=True), PARAMETERS, fresh=next(self.fresh)
            )
            assert answer.error is Error.NONE, answer
            self._marked()
        invoke_ns = self.now_ns
        self.now_ns += self.chance.randrange(8 * MS, 12 * MS)
        self._did("commit-txn", invoke_ns, self.now_ns, Outcome.UNKNOWN, TIMED_OUT)
        self.process = 0
        if aborted_ns is not None:
            self._starts(aborted_ns)

    def _refused(self, process: int, producer: Producer, partition: int) -> Refused:
        """A fenced producer sends once more and requests a commit; both are refused."""
        send_ns = self.now_ns + self.chance.randrange(MS, 4 * MS)
        end_ns = send_ns + self.chance.randrange(2 * MS, 4 * MS)
        error = produce_error(verify_partition(self.state, producer, partition), usual(PARAMETERS))
        assert error is not Error.NONE
        self.state, answer = end_transaction(
            self.state, EndTxn(producer, commit=True), PARAMETERS, fresh=next(self.fresh)
        )
        assert answer.error is not Error.NONE
        own, self.process = self.process, process
        self._did("commit-txn", end_ns, end_ns + MS, Outcome.FAIL, answer.error.name)
        self.process = own
        return Refused(partition, send_ns, error.name)

    def _marked(self) -> None:
        """The markers are written: the next transaction may begin."""
        assert self.state is not None
        for partition in sorted(self.state.unmarked):
            self.state = marked(self.state, partition)
        self.state = complete(self.state, PARAMETERS)

    def _did(
        self, kind: str, invoke_ns: int, return_ns: int, outcome: Outcome = Outcome.OK, error: str | None = None
    ) -> None:
        self.operations.append(
            OperationRow(self.process, kind, invoke_ns, return_ns, outcome, error, transactional_id=self.name)
        )


def draw_transactions(
    chance: random.Random,
    clients: Clients,
    timelines: Sequence[Timeline],
    start_ns: int,
    end_ns: int,
    *,
    wanted: int,
    ids: int = 2,
) -> tuple[list[Transaction], list[OperationRow]]:
    """About so many transactions of several transactional ids at once, in the order in which they begin."""
    per_id = min(max(wanted // ids, 10), _PER_ID_MAX, (end_ns - start_ns) // _SHORTEST_NS)
    fresh = count(1000)
    operations: list[OperationRow] = []
    found: list[Transaction] = []
    for number in range(ids):
        session = _Session(
            name=f"transfers-{number}",
            chance=chance,
            clients=clients,
            timelines=timelines,
            fresh=fresh,
            operations=operations,
        )
        found += session.run(start_ns, end_ns - 2 * SECOND, per_id)
    return sorted(found, key=lambda one: (one.begin_ns, one.process)), operations
