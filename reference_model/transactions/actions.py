"""Everything that can happen to a client, the coordinator and a partition.

Every request may be answered, or do its work while the answer is lost; then the client asks again. A request may be
late: a copy of it arrives after the client has had its answer, or has given up. Kafka's own clients and brokers do
send copies: after a time-out, over another connection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reference_model.errors import Error
from reference_model.machine import Outcomes
from reference_model.parameters import Parameters
from reference_model.producer_state import NO_EPOCH, Accepted, Duplicate, Marker, ProducerId, check_marker
from reference_model.transactions import client as clients
from reference_model.transactions import coordinator as rules
from reference_model.transactions.client import Client, Stage
from reference_model.transactions.coordinator import (
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Partition,
    Producer,
    State,
    Transactional,
)
from reference_model.transactions.partition import (
    Leader,
    Source,
    Waiting,
    Written,
    append,
    check,
    replicate,
    succeeded,
    verifying,
)


class Late(StrEnum):
    """Which requests can be late."""

    PRODUCE = "produce"
    END = "end"
    MARKER = "marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much can happen."""

    transactions: tuple[int, int] = (2, 0)
    """Of A and of B; a client without any does not start."""
    partitions: int = 1
    late: frozenset[Late] = frozenset()
    timeouts: int = 0
    coordinators: int = 0
    """How many times another coordinator may take over."""
    lagging: bool = False
    """Followers fetch when they like; otherwise everything is replicated at once."""
    elections: int = 0
    """How many times another replica of each partition may lead."""
    renews: bool = True
    """Whether clients take another epoch after they gave up a batch."""
    first_epoch: int = NO_EPOCH
    """Before the first client: epochs near the last one make producer ids change."""


class Coordinator(NamedTuple):
    """The broker that has the transactional id's log, and what its predecessors left under way."""

    transactional: Transactional | None = None
    epoch: int = 0
    fresh: ProducerId = 1
    """The next producer id that nobody has."""
    timeouts: int = 0
    successors: int = 0
    late: frozenset[tuple[Partition, Marker]] = frozenset()
    """Markers that are no longer waited for, but that may yet arrive."""
    decided: frozenset[tuple[Source, bool]] = frozenset()
    """Whose requests ended a transaction, and how: what really happened."""

    def after(self, transactional: Transactional | None) -> Coordinator:
        """With this in its log."""
        used = transactional is not None and self.fresh in (transactional.producer.id, transactional.next_id)
        return self._replace(transactional=transactional, fresh=self.fresh + used)


@dataclass(frozen=True, slots=True)
class Actions:
    """Each is one action: its guard, then what stands where afterwards, for each way in which it can happen."""

    parameters: Parameters
    bounds: Bounds

    # The client and the coordinator

    def initialize(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """A client asks who it is: as a new one, or to take another epoch."""
        if client.stage not in (Stage.STARTING, Stage.RENEWING):
            return
        request = InitProducerId(expected=client.producer)
        transactional, answer = rules.init_producer_id(
            coordinator.transactional, request, self.parameters, fresh=coordinator.fresh
        )
        after = coordinator.after(transactional)
        yield clients.initialized(client, answer), after
        if client.stage is Stage.RENEWING:  # A new client that is not answered is one more client
            yield client, after

    def add(self, partition: Partition, client: Client, coordinator: Coordinator) -> Outcomes:
        """A client of an older version says that it is about to write to a partition."""
        if client.stage is not Stage.WRITING or client.producer is None or partition in client.added:
            return
        request = AddPartitionsToTxn(client.producer, frozenset({partition}))
        transactional, answer = rules.add_partitions(coordinator.transactional, request, self.parameters)
        after = coordinator.after(transactional)
        yield clients.added(client, partition, answer), after
        yield client, after

    def decide(self, decision: Callable[[Client], Client | None], client: Client) -> Outcomes:
        """A client commits or aborts; what it has no answer for may yet arrive."""
        after = decision(client)
        if after is not None:
            yield (after,)

    def end(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """A client ends its transaction."""
        request = clients.end(client)
        if request is None:
            return
        after, answer = self._ended(coordinator, request, client.source)
        done = clients.ends(client, answer, self.parameters, renews=self.bounds.renews)
        if Late.END in self.bounds.late and done is not client:
            done = done._replace(ends=client.ends | {(request, client.source)})
        yield done, after
        yield client, after

    def end_late(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """A copy of a request to end a transaction arrives when nobody waits for it."""
        for copy in sorted(client.ends):
            after, _ = self._ended(coordinator, *copy)
            yield client._replace(ends=client.ends - {copy}), after

    def _ended(self, coordinator: Coordinator, request: EndTxn, source: Source) -> tuple[Coordinator, Answer]:
        before = coordinator.transactional
        transactional, answer = rules.end_transaction(before, request, self.parameters, fresh=coordinator.fresh)
        after = coordinator.after(transactional)
        if before is not None and before.state is State.ONGOING and transactional != before:
            after = after._replace(decided=after.decided | {(source, request.commit)})
        return after, answer

    # The client, the coordinator and a partition

    def produce(self, partition: Partition, client: Client, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A client's batch arrives at a partition."""
        batch = clients.batch(client, partition)
        if batch is None or not (self.parameters.transaction_version >= 2 or partition in client.added):
            return
        sending = clients.sends(client, partition)
        if sending != client:
            if Late.PRODUCE in self.bounds.late:
                sending = sending._replace(sent=sending.sent | {(partition, batch)})
            yield sending, coordinator, leader  # it is under way
        for told, after, leading in self._arrived(partition, batch, sending, coordinator, leader):
            yield told, after, leading
            yield sending, after, leading

    def produce_late(self, partition: Partition, client: Client, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A copy of a batch arrives when nobody waits for it."""
        for copy in sorted(client.sent):
            if copy[0] == partition and copy[1] != clients.batch(client, partition):
                rest = client._replace(sent=client.sent - {copy})
                for _, after, leading in self._arrived(partition, copy[1], rest, coordinator, leader):
                    yield rest, after, leading

    def _arrived(
        self, partition: Partition, waiting: Waiting, client: Client, coordinator: Coordinator, leader: Leader
    ) -> Outcomes:
        """The leader asks the coordinator about a batch that begins a transaction, and keeps it if it may be appended.

        In version 2 it has the coordinator add the partition (ReplicaManager.handleProduceAppend).
        """
        leading, verification = verifying(leader, waiting.batch, self.parameters)
        if isinstance(verification, Error):
            yield clients.refused(client, partition, waiting, verification), coordinator, leading
            return
        if verification is None:
            yield from self._appended(partition, waiting, client, coordinator, leading)
            return
        after, error = self._verified(partition, waiting, coordinator)
        if error is Error.NONE:
            verified = waiting._replace(guard=verification.guard)
            yield client, after, leading._replace(waiting=leading.waiting | {verified})
        else:
            told = rules.produce_error(error, self.parameters, abortable=True)
            yield clients.refused(client, partition, waiting, told), after, leading

    def _verified(self, partition: Partition, waiting: Waiting, coordinator: Coordinator) -> tuple[Coordinator, Error]:
        producer = Producer(waiting.batch.producer_id, waiting.batch.epoch)
        if self.parameters.transaction_version < 2:
            return coordinator, rules.verify_partition(coordinator.transactional, producer, partition)
        request = AddPartitionsToTxn(producer, frozenset({partition}))
        transactional, answer = rules.add_partitions(coordinator.transactional, request, self.parameters)
        return coordinator.after(transactional), answer.error

    def append_verified(self, partition: Partition, client: Client, leader: Leader) -> Outcomes:
        """A batch that has been verified reaches the log."""
        for waiting in sorted(leader.waiting):
            if waiting.source.client == client.name:
                rest = leader._replace(waiting=leader.waiting - {waiting})
                for told, _, leading in self._appended(partition, waiting, client, None, rest):
                    yield told, leading
                    if told is not client:
                        yield client, leading

    def _appended(
        self, partition: Partition, waiting: Waiting, client: Client, coordinator: Coordinator | None, leader: Leader
    ) -> Outcomes:
        """It is answered when it is replicated, as with acks=all."""
        checked = check(leader, waiting, self.parameters)
        if isinstance(checked, Error):
            yield clients.refused(client, partition, waiting, checked), coordinator, leader
            return
        offset = checked.first_offset if isinstance(checked, Duplicate) else len(leader.log)
        if isinstance(checked, Accepted):
            written = Written(waiting.batch, waiting.source)
            leader = append(leader, written, replicated_at_once=not self.bounds.lagging)
        told = clients.acknowledged(client, partition, waiting) if offset < leader.high_watermark else client
        yield told, coordinator, leader

    # The coordinator and a partition

    def send_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A partition takes the marker of a decided transaction."""
        transactional = coordinator.transactional
        if transactional is None or partition not in transactional.unmarked:
            return
        marker = rules.marker(transactional, coordinator.epoch)
        if leader.unacknowledged is None or leader.unacknowledged[0] != marker:
            for marked in self._marked(leader, marker):
                yield coordinator, marked._replace(unacknowledged=(marker, len(leader.log)))

    def acknowledge_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """The coordinator learns that a partition's marker is replicated."""
        transactional = coordinator.transactional
        if transactional is None or partition not in transactional.unmarked or leader.unacknowledged is None:
            return
        marker, offset = leader.unacknowledged
        if marker == rules.marker(transactional, coordinator.epoch) and offset < leader.high_watermark:
            after = coordinator._replace(transactional=rules.marked(transactional, partition))
            if Late.MARKER in self.bounds.late:
                after = after._replace(late=after.late | {(partition, marker)})
            yield after, leader._replace(unacknowledged=None)

    def send_marker_late(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A copy of a marker arrives when nobody waits for it."""
        for copy in sorted(coordinator.late):
            if copy[0] == partition:
                rest = coordinator._replace(late=coordinator.late - {copy})
                for marked in self._marked(leader, copy[1]):
                    yield rest, marked

    def _marked(self, leader: Leader, marker: Marker) -> list[Leader]:
        """One that is refused is not sent again (TransactionMarkerRequestCompletionHandler)."""
        if isinstance(check_marker(leader.entry(marker.producer_id), marker, self.parameters), Error):
            return []
        return [append(leader, Written(marker), replicated_at_once=not self.bounds.lagging)]

    # The coordinator

    def complete(self, coordinator: Coordinator) -> Outcomes:
        """All markers are known to be written."""
        if coordinator.transactional is not None:
            after = rules.complete(coordinator.transactional, self.parameters)
            if after is not None:
                yield (coordinator._replace(transactional=after),)

    def time_out(self, coordinator: Coordinator) -> Outcomes:
        """A transaction was open for too long."""
        if coordinator.transactional is not None and coordinator.timeouts:
            after = rules.abort_timed_out(coordinator.transactional, self.parameters, fresh=coordinator.fresh)
            if after is not None:
                yield (coordinator.after(after)._replace(timeouts=coordinator.timeouts - 1),)

    def take_over(self, coordinator: Coordinator) -> Outcomes:
        """Another broker loads the log; the markers of the one before are still under way."""
        transactional = coordinator.transactional
        if transactional is None or not coordinator.successors:
            return
        decided = transactional.state in rules.PREPARED
        under_way = {
            (partition, rules.marker(transactional, coordinator.epoch))
            for partition in (transactional.partitions if decided else ())
        }
        yield (
            coordinator._replace(
                transactional=rules.loaded(transactional),
                epoch=coordinator.epoch + 1,
                successors=coordinator.successors - 1,
                late=coordinator.late | under_way,
            ),
        )

    # A partition

    def replicate(self, leader: Leader) -> Outcomes:
        """The followers have fetched everything."""
        if leader.high_watermark < len(leader.log):
            yield (replicate(leader),)

    def elect(self, leader: Leader) -> Outcomes:
        """Another replica leads, with everything that is committed and perhaps more."""
        if leader.elections:
            for log_end in range(leader.high_watermark, len(leader.log) + 1):
                yield (succeeded(leader, log_end),)
