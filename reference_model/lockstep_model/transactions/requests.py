"""Producer requests in the transaction machine.

Every request may be answered, or take effect while its response is lost; then the producer retries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Acceptance, Duplicate
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
from lockstep_model.transactions.partition import Leader, Source, VerifiedBatch, append, check, client_of, keep
from lockstep_model.transactions.state import Coordinator, LateRequest, TransactionBounds


@dataclass(frozen=True, slots=True)
class Requests:
    """Each method is one action: its guard, then all possible next states."""

    parameters: Parameters
    bounds: TransactionBounds

    def initialize(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """InitProducerId: of a new producer, or to bump the epoch (KIP-360)."""
        if client.stage not in (Stage.STARTING, Stage.RENEWING):
            return
        request = InitProducerId(expected=client.producer)
        transactional, answer = rules.init_producer_id(
            coordinator.transactional, request, self.parameters, fresh=coordinator.fresh
        )
        after = coordinator.after(transactional)
        yield clients.initialized(client, answer), after
        if client.stage is Stage.RENEWING:  # a lost response to a new producer equals one more producer
            yield client, after

    def add(self, partition: Partition, client: Client, coordinator: Coordinator) -> Outcomes:
        """AddPartitionsToTxn, sent by the producer in transaction versions 0 and 1."""
        if client.stage is not Stage.WRITING or client.producer is None or partition in client.added:
            return
        request = AddPartitionsToTxn(client.producer, frozenset({partition}))
        transactional, answer = rules.add_partitions(coordinator.transactional, request, self.parameters)
        after = coordinator.after(transactional)
        yield clients.added(client, partition, answer), after
        yield client, after

    def decide(self, decision: Callable[[Client], Client | None], client: Client) -> Outcomes:
        """The producer commits or aborts; its requests without a response may still arrive."""
        after = decision(client)
        if after is not None:
            yield (after,)

    def end(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """EndTxn: the coordinator decides the transaction (TransactionCoordinator.handleEndTransaction)."""
        request = clients.end(client)
        if request is None:
            return
        after, answer = self._ended(coordinator, request, client.source)
        done = clients.ends(client, answer, self.parameters, renews=self.bounds.renews)
        if LateRequest.END in self.bounds.late and done is not client:
            done = done._replace(ends=client.ends | {(request, client.source)})
        yield done, after
        yield client, after

    def end_late(self, client: Client, coordinator: Coordinator) -> Outcomes:
        """A duplicate EndTxn arrives after its producer stopped waiting for the response."""
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
        """Produce: the producer's batch arrives at the leader (ReplicaManager.handleProduceAppend)."""
        batch = clients.batch(client, partition)
        if batch is None or not (self.parameters.transaction_version >= 2 or partition in client.added):
            return
        sending = clients.sends(client, partition)
        if sending != client:
            if LateRequest.PRODUCE in self.bounds.late:
                sending = sending._replace(sent=sending.sent | {(partition, batch)})
            yield sending, coordinator, leader  # still in flight
        for told, after, leading in self._arrived(partition, batch, sending, coordinator, leader):
            yield told, after, leading
            yield sending, after, leading

    def produce_late(self, partition: Partition, client: Client, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A duplicate Produce arrives after its producer stopped waiting for the response."""
        for copy in sorted(client.sent):
            if copy[0] == partition and copy[1] != clients.batch(client, partition):
                rest = client._replace(sent=client.sent - {copy})
                for _, after, leading in self._arrived(partition, copy[1], rest, coordinator, leader):
                    yield rest, after, leading

    def _arrived(
        self, partition: Partition, waiting: VerifiedBatch, client: Client, coordinator: Coordinator, leader: Leader
    ) -> Outcomes:
        """The leader verifies a batch that begins a transaction on its partition (KIP-890).

        In transaction version 2 it has the coordinator add the partition instead (ReplicaManager.handleProduceAppend).
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
        """A verified batch is appended."""
        for waiting in sorted(leader.waiting):
            if client_of(waiting.source) == client.name:
                rest = leader._replace(waiting=leader.waiting - {waiting})
                for told, _, leading in self._appended(partition, waiting, client, None, rest):
                    yield told, leading
                    if told is not client:
                        yield client, leading

    def _appended(
        self,
        partition: Partition,
        waiting: VerifiedBatch,
        client: Client,
        coordinator: Coordinator | None,
        leader: Leader,
    ) -> Outcomes:
        """Append with acks=all: the response follows replication (Partition.appendRecordsToLeader)."""
        checked = check(leader, waiting, self.parameters)
        if isinstance(checked, Error):
            yield clients.refused(client, partition, waiting, checked), coordinator, leader
            return
        offset = checked.first_offset if isinstance(checked, Duplicate) else leader.log.end
        if isinstance(checked, Acceptance):
            leader = append(leader, waiting.batch, waiting.source, replicated_at_once=not self.bounds.lagging)
        told = clients.acknowledged(client, partition, waiting) if offset < leader.high_watermark else client
        yield told, coordinator, leader
