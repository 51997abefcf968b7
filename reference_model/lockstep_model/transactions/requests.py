"""What clients ask for, and what becomes of it.

Every request may be answered, or do its work while the answer is lost; then the client asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Accepted, Duplicate
from lockstep_model.state_machine import Outcomes
from lockstep_model.transactions import client as clients
from lockstep_model.transactions import coordinator as rules
from lockstep_model.transactions import versions
from lockstep_model.transactions.admission import admit
from lockstep_model.transactions.client import Client, Stage
from lockstep_model.transactions.coordinator import (
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Partition,
    TransactionState,
)
from lockstep_model.transactions.partition import Leader, Source, Verified, append, check, client_of, keep
from lockstep_model.transactions.state import Coordinator, Late, TransactionBounds


@dataclass(frozen=True, slots=True)
class Requests:
    """Each is one action: its guard, then what stands where afterwards, for each way in which it can happen."""

    parameters: Parameters
    bounds: TransactionBounds

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
        if before is not None and before.state is TransactionState.ONGOING and transactional != before:
            after = after._replace(decided=after.decided | {(source, request.commit)})
        return after, answer

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
        self, partition: Partition, waiting: Verified, client: Client, coordinator: Coordinator, leader: Leader
    ) -> Outcomes:
        """The leader asks the coordinator about a batch that begins a transaction, and keeps it if it may be appended.

        In version 2 it has the coordinator add the partition (ReplicaManager.handleProduceAppend).
        """
        transactional = coordinator.transactional
        batch = waiting.batch
        standing = leader.verification(batch.producer_id)
        support = versions.usual(self.parameters)
        admitted = admit(self.parameters, leader.log, batch, standing, transactional, partition, support)
        leading = keep(leader, batch.producer_id, admitted.verification)
        after = coordinator.after(admitted.transactional)
        if admitted.error is not Error.NONE:
            error = rules.produce_error(admitted.error, support)
            yield clients.refused(client, partition, waiting, error), after, leading
        elif admitted.guard is None:
            yield from self._appended(partition, waiting, client, after, leading)
        else:
            verified = waiting._replace(guard=admitted.guard)
            yield client, after, leading._replace(waiting=leading.waiting | {verified})

    def append_verified(self, partition: Partition, client: Client, leader: Leader) -> Outcomes:
        """A batch that has been verified reaches the log."""
        for waiting in sorted(leader.waiting):
            if client_of(waiting.source) == client.name:
                rest = leader._replace(waiting=leader.waiting - {waiting})
                for told, _, leading in self._appended(partition, waiting, client, None, rest):
                    yield told, leading
                    if told is not client:
                        yield client, leading

    def _appended(
        self, partition: Partition, waiting: Verified, client: Client, coordinator: Coordinator | None, leader: Leader
    ) -> Outcomes:
        """It is answered when it is replicated, as with acks=all."""
        checked = check(leader, waiting, self.parameters)
        if isinstance(checked, Error):
            yield clients.refused(client, partition, waiting, checked), coordinator, leader
            return
        offset = checked.first_offset if isinstance(checked, Duplicate) else leader.log.end
        if isinstance(checked, Accepted):
            leader = append(leader, waiting.batch, waiting.source, replicated_at_once=not self.bounds.lagging)
        told = clients.acknowledged(client, partition, waiting) if offset < leader.high_watermark else client
        yield told, coordinator, leader
