"""Hidden transitions of one transactional id: its coordinator, verification by the leader, and markers.

The coordinator is one part of a state, whichever broker it is: its metadata is replicated in __transaction_state before
it responds. It handles the client's InitProducerId, AddPartitionsToTxn and EndTxn, and the verification that a
partition leader requests for a transactional batch (KIP-890). After EndTxn it sends WriteTxnMarkers to the partition
leader, which appends the marker like any other record, with acks=all.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.stepper.model.state import (
    AdmittedBatch,
    DelayedResponse,
    LateMarker,
    MarkerSent,
    PendingRequest,
    Response,
    Surroundings,
    TransactionalState,
    acts,
    marker_record,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition import produce
from lockstep_model.partition.produce import Acks, DelayedProduce, Produce, Produced
from lockstep_model.partition.producer_state import Marker, ProducerId, check_marker
from lockstep_model.partition.replica import append
from lockstep_model.registration import BrokerId
from lockstep_model.replication.state import Broker
from lockstep_model.transactions import coordinator, versions
from lockstep_model.transactions.admission import admit
from lockstep_model.transactions.coordinator import (
    UNANSWERED,
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    TransactionMetadata,
)

CoordinatorRequest = InitProducerId | AddPartitionsToTxn | EndTxn

PARTITION = 0
"""The partition under test; a transaction contains no other."""
UNSETTLED = (
    Error.NOT_COORDINATOR,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.CONCURRENT_TRANSACTIONS,
)
"""Errors that a coordinator may return while it moves, loads its log or cannot replicate; the last one also while an
earlier append to __transaction_state is pending."""
NO_ID: ProducerId = -7
"""In place of a newly allocated producer id. A walk never needs one: it is too short to exhaust a producer's epochs."""


def asks_coordinator(operation: object) -> bool:
    """Whether an operation is an unhandled request to the transaction coordinator."""
    return isinstance(operation, PendingRequest) and isinstance(operation.request, CoordinatorRequest)


def is_transactional(operation: object) -> bool:
    """Whether an operation is an unhandled Produce request with a transactional batch."""
    if not isinstance(operation, PendingRequest) or not isinstance(operation.request, Produce):
        return False
    return operation.request.batch is not None and operation.request.batch.transactional


def is_decided(transactions: TransactionalState) -> bool:
    """Whether the transaction is in PrepareCommit or PrepareAbort: its markers, or its Complete record, are pending."""
    return transactions.transactional is not None and transactions.transactional.state in coordinator.PREPARED


def has_late_markers(transactions: TransactionalState) -> bool:
    """Whether duplicates of a marker are under way, besides the one that the coordinator waits for."""
    return bool(transactions.late)


def sent_again(parameters: Parameters, transactions: TransactionalState) -> TransactionalState:
    """With one duplicate marker for each reload of the coordinator's log (TransactionCoordinator.onElection).

    onElection removes queued markers, but not those already sent. The coordinator epoch stays the same, so the
    partition leader does not fence the earlier copy, and appends all of them. The transaction may be complete before
    the next copy arrives. A reload that was decided before EndTxn may be carried out after it, and then sends a copy
    too. If it was carried out before, this copy stays in the state but need never be appended.
    """
    marker = _awaited(transactions)
    if marker is None or not parameters.coordinator_reloads:
        return transactions
    copies = (LateMarker(marker, epoch) for epoch in transactions.reloads)
    return transactions._replace(late=(*transactions.late, *copies), reloads=())


def _awaited(transactions: TransactionalState) -> Marker | None:
    """The marker for which the coordinator waits: the partition is not yet known to have it."""
    transactional = transactions.transactional
    if transactional is None or PARTITION not in transactional.unmarked:
        return None
    return coordinator.marker(transactional, coordinator_epoch=0)


def is_uncertain(transactions: TransactionalState) -> bool:
    """Whether a new coordinator may load other metadata than the current one has."""
    return bool(transactions.logged)


class TransactionRules:
    """The effects of the rules; each yields what replaces the parts that its rule reads."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    # Client requests to the coordinator

    def coordinates(
        self, asked: PendingRequest, around: Surroundings, transactions: TransactionalState
    ) -> Iterator[tuple[Response, Surroundings, TransactionalState]]:
        """Coordinator handles InitProducerId, AddPartitionsToTxn or EndTxn.

        TransactionCoordinator.handleInitProducerId, handleAddPartitionsToTransaction, handleEndTransaction.
        Unless it is steady, it may return a retriable error instead. A coordinator that could not replicate its append
        in time returns COORDINATOR_NOT_AVAILABLE, and the append may be in __transaction_state all the same
        (TransactionStateManager.appendTransactionToLog).
        """
        for known in self.on_record(transactions):
            after, answer = self.answered(known.transactional, asked)
            if asked.reply in (None, answer):
                yield Response(answer), around, sent_again(self.parameters, known.wrote(after))
            for error in () if around.steady else UNSETTLED:
                if asked.reply in (None, Answer(error)):
                    yield Response(Answer(error)), around, known
                    for failed in _failed(known, after):
                        yield Response(Answer(error)), around, failed

    def on_record(self, transactions: TransactionalState) -> Iterator[TransactionalState]:
        """Metadata of the coordinator: as before or, if it may have moved, as a new coordinator loads it from the log.

        The log does not hold everything, for example not the last producer epoch (`coordinator.loaded`).
        """
        yield transactions
        if transactions.moved and transactions.transactional is not None:
            loaded = coordinator.loaded(transactions.transactional, self.parameters)
            if loaded != transactions.transactional:
                yield transactions._replace(transactional=loaded)

    def answered(
        self, transactional: TransactionMetadata | None, asked: PendingRequest
    ) -> tuple[TransactionMetadata | None, Answer]:
        """The coordinator's metadata after a request, and its response; before EndTxn v5 that carries no producer."""
        request = asked.request
        match request:
            case InitProducerId():
                return coordinator.init_producer_id(transactional, request, self.parameters, fresh=NO_ID)
            case AddPartitionsToTxn():
                return coordinator.add_partitions(transactional, request, self.parameters)
            case _:
                after, answer = coordinator.end_transaction(transactional, request, self.parameters, fresh=NO_ID)
                raised = versions.raises_epoch(request.version, self.parameters)
                return after, answer if raised else Answer(answer.error)

    # Transactional writes

    def admits(
        self, b: BrokerId, asked: PendingRequest, around: Surroundings, broker: Broker, transactions: TransactionalState
    ) -> Iterator[tuple[AdmittedBatch | Response, Surroundings, Broker, TransactionalState]]:
        """Leader verifies the first transactional batch with the coordinator, or has it add the partition (KIP-890).

        ReplicaManager.maybeStartTransactionVerificationForPartitions, AddPartitionsToTxnManager. A broker that does not
        lead the partition returns its error without verification. The coordinator may be unreachable unless it is
        steady.
        """
        if not acts(around, broker):
            return
        replica, request = broker.replica, asked.request
        if replica.leadership is None:
            _, reply = produce.produce(self.parameters, replica, request)
            if asked.reply in (None, reply):
                yield Response(reply), around, broker, transactions
            return
        support = versions.usual(self.parameters)
        for unreachable in (Error.NONE, *(() if around.steady else sorted(UNANSWERED))):
            admitted = admit(
                self.parameters,
                replica.log,
                request.batch,
                transactions.verification(replica, request.batch.producer_id),
                transactions.transactional,
                PARTITION,
                support,
                unreachable=unreachable,
            )
            after = transactions.wrote(admitted.transactional).verifying(
                replica, request.batch.producer_id, admitted.verification
            )
            if admitted.error is Error.NONE:
                yield AdmittedBatch(b, request._replace(guard=admitted.guard), asked.reply), around, broker, after
                continue
            reply = Produced(coordinator.produce_error(admitted.error, support))
            if asked.reply in (None, reply):
                yield Response(reply), around, broker, after

    def appends(
        self, admitted: AdmittedBatch, around: Surroundings, broker: Broker, transactions: TransactionalState
    ) -> Iterator[tuple[DelayedResponse | Response, Surroundings, Broker, TransactionalState]]:
        """Leader appends a verified batch, or rejects it because its state has changed since the verification.

        For example the leadership moved, or a marker has invalidated the verification guard (UnifiedLog.append).
        """
        if not acts(around, broker):
            return
        request, replica = admitted.request, broker.replica
        assert request.batch is not None
        verification = transactions.verification(replica, request.batch.producer_id)
        after, reply = produce.produce(self.parameters, replica, request, verification)
        written = broker._replace(replica=after)
        if after != replica:
            transactions = transactions.overtaken(request.batch.epoch)
        if isinstance(reply, DelayedProduce):
            waits = DelayedResponse(admitted.broker, replica.broker_epoch, request, reply, admitted.reply)
            yield waits, around, written, transactions
        elif admitted.reply in (None, reply):
            yield Response(reply), around, written, transactions

    # Markers and coordinator failover

    def marks(
        self, transactions: TransactionalState, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[TransactionalState, Surroundings, Broker]]:
        """Leader appends the transaction marker, with acks=all (KafkaApis.handleWriteTxnMarkersRequest).

        The coordinator sends it again to the next leader, after a retriable error or a disconnection
        (TransactionMarkerRequestCompletionHandler), and after a reload or failover (TransactionCoordinator.onElection).
        """
        marker = _awaited(transactions)
        if marker is None:
            return
        for sent, after in self._taken(marker, transactions.sent, around, broker):
            yield transactions.overtaken(marker.epoch)._replace(sent=sent), around, after

    def marks_late(
        self, transactions: TransactionalState, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[TransactionalState, Surroundings, Broker]]:
        """Leader appends a duplicate marker, whatever the transaction's state, unless its producer epoch is too old.

        A leader takes the next copy only after it has responded to the one before, for both arrive over one connection,
        which is muted until the response is sent (SocketServer's Processor).
        """
        copies = (transactions.sent, *(copy.sent for copy in transactions.late))
        if any(one is not None and self._waits(one, broker) for one in copies):
            return
        awaited = _awaited(transactions)
        for place, copy in enumerate(transactions.late):
            if broker.replica.leader_epoch < copy.since:
                continue
            if transactions.sent is None and copy.marker == awaited:
                continue  # copies are identical, so the one that the coordinator waits for may as well be the first
            for sent, after in self._taken(copy.marker, copy.sent, around, broker):
                yield transactions.with_late(place, sent), around, after

    def _waits(self, sent: MarkerSent, broker: Broker) -> bool:
        """Whether a broker has appended this marker and has yet to respond, because it is not committed."""
        replica = broker.replica
        here = (sent.broker, sent.incarnation) == (replica.broker, replica.broker_epoch)
        return here and produce.complete(self.parameters, replica, sent.waiting) is None

    def _taken(
        self, marker: Marker, sent: MarkerSent | None, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[MarkerSent, Broker]]:
        """Leader appends a marker and waits for the high watermark.

        Guard: the broker leads and may append with acks=all, the marker's producer epoch is valid
        (ProducerAppendInfo.appendEndTxnMarker), and this leader epoch has not appended the marker already unless the
        response was lost.
        """
        replica = broker.replica
        if not acts(around, broker):
            return
        awaited = sent is not None and not sent.lost and replica.leader_epoch <= sent.leader_epoch
        if sent is not None and sent.marker == marker and awaited:
            return
        if produce.refusal(self.parameters, replica, Produce(Acks.ALL, ())) is not Error.NONE:
            return
        if isinstance(check_marker(replica.log.known.entry(marker.producer_id), marker, self.parameters), Error):
            return
        waiting = DelayedProduce(replica.log.end, until=replica.log.end + 1)
        taken = MarkerSent(marker, replica.broker, replica.broker_epoch, replica.leader_epoch, waiting)
        after = append(self.parameters, replica, [marker_record(replica.leader_epoch, marker)])
        yield taken, broker._replace(replica=after)

    def completes(
        self, transactions: TransactionalState, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[TransactionalState, Surroundings, Broker]]:
        """Coordinator gets the WriteTxnMarkers response, and completes the transaction or sends the marker again.

        An error such as NOT_ENOUGH_REPLICAS_AFTER_APPEND means that the marker was appended and is sent once more.
        """
        sent = transactions.sent
        if sent is None or sent.marker != _awaited(transactions):
            return
        reply = self._replicated(sent, around, broker)
        if reply is not None and reply.error is not Error.NONE:
            yield transactions._replace(sent=sent._replace(lost=True)), around, broker
        elif reply is not None:
            yield self._ended(transactions)._replace(sent=None), around, broker

    def completes_late(
        self, transactions: TransactionalState, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[TransactionalState, Surroundings, Broker]]:
        """Coordinator gets the response to a duplicate marker, and completes the transaction that it waits for now.

        TransactionMarkerRequestCompletionHandler compares only the coordinator epoch, not the transaction. The marker
        for which the coordinator waited becomes a duplicate in its turn. If no transaction is being completed, the
        response changes nothing.
        """
        for place, copy in enumerate(transactions.late):
            reply = None if copy.sent is None else self._replicated(copy.sent, around, broker)
            if copy.sent is None or reply is None:
                continue
            if reply.error is not Error.NONE:
                yield transactions.with_late(place, copy.sent._replace(lost=True)), around, broker
                continue
            rest = transactions.without_late(place)
            awaited = _awaited(rest)
            if awaited is not None:
                other = LateMarker(awaited, copy.since, rest.sent)
                rest = self._ended(rest)._replace(sent=None, late=(*rest.late, other))
            yield rest, around, broker

    def _replicated(self, sent: MarkerSent, around: Surroundings, broker: Broker) -> Produced | None:
        """The response of the leader that appended a marker; None while it has not responded.

        In ZooKeeper mode a broker whose session expired registers again within the same process, and still responds.
        """
        replica = broker.replica
        same = self.parameters.mode is Mode.ZK or replica.broker_epoch == sent.incarnation
        if sent.broker != replica.broker or not same or not acts(around, broker):
            return None
        return produce.complete(self.parameters, replica, sent.waiting)

    def _ended(self, transactions: TransactionalState) -> TransactionalState:
        """The coordinator has replicated CompleteCommit or CompleteAbort."""
        assert transactions.transactional is not None
        return transactions.wrote(
            coordinator.complete(coordinator.marked(transactions.transactional, PARTITION), self.parameters)
        )

    def completes_without_markers(
        self, transactions: TransactionalState, around: Surroundings
    ) -> Iterator[tuple[TransactionalState, Surroundings]]:
        """Coordinator completes a prepared transaction that contains no partition, and so needs no markers."""
        if transactions.transactional is not None:
            after = coordinator.complete(transactions.transactional, self.parameters)
            if after is not None:
                yield transactions.wrote(after), around

    def is_taken_over(
        self, transactions: TransactionalState, around: Surroundings
    ) -> Iterator[tuple[TransactionalState, Surroundings]]:
        """A new coordinator loads an append that the previous one had reported as failed (TransactionStateManager).

        Any of the candidates may be the last one that was replicated.
        """
        for written in () if around.steady else transactions.logged:
            loaded = coordinator.loaded(written, self.parameters)
            yield transactions._replace(transactional=loaded, logged=(), moved=False), around


def _failed(known: TransactionalState, after: TransactionMetadata | None) -> Iterator[TransactionalState]:
    """The coordinator after an append that failed to replicate.

    It keeps its metadata. But where InitProducerId was to fence a producer with an open transaction, the producer stays
    fenced: the bumped epoch applies from the start of the fencing (TransactionMetadata.prepareFenceProducerEpoch,
    hasFailedEpochFence).
    """
    before = known.transactional
    if before is None or after is None or after == before:
        return
    yield known.failed(after, before)
    fenced = after.producer.epoch > before.producer.epoch and after.state in coordinator.PREPARED
    if fenced:
        yield known.failed(after, before._replace(producer=after.producer))
