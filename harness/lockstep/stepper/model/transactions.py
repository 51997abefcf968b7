"""What happens to the transactions of one transactional id without anybody seeing it, as rules of the reference model.

Its coordinator is one part of a state, whichever broker that is: what it has on record is replicated before it answers.
Requests of the client, and what the leader of the partition asks it about a transactional batch, are answered by it.
When a transaction is decided it has a marker written to the partition, which is a record like others there.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockstep.stepper.model.state import (
    Admitted,
    Answered,
    Asked,
    LateMarker,
    MarkerSent,
    Surroundings,
    Transactions,
    Waits,
    acts,
    marker_record,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition import produce
from lockstep_model.partition.produce import Acks, Produce, Produced, Waiting
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
    Transactional,
)

CoordinatorRequest = InitProducerId | AddPartitionsToTxn | EndTxn

PARTITION = 0
"""The one that is walked on."""
UNSETTLED = (
    Error.NOT_COORDINATOR,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
    Error.COORDINATOR_NOT_AVAILABLE,
    Error.CONCURRENT_TRANSACTIONS,
)
"""What is answered instead while the coordinator moves or cannot replicate; the last, while it waits for that."""
NO_ID: ProducerId = -7
"""The next that is free, which nobody knows: no walk is so long that the epochs of one are used up."""


def asks_coordinator(operation: object) -> bool:
    """Whether it is a request to a transactional id's coordinator."""
    return isinstance(operation, Asked) and isinstance(operation.request, CoordinatorRequest)


def is_transactional(operation: object) -> bool:
    """Whether it is a batch of a transaction."""
    if not isinstance(operation, Asked) or not isinstance(operation.request, Produce):
        return False
    return operation.request.batch is not None and operation.request.batch.transactional


def is_decided(transactions: Transactions) -> bool:
    """Whether markers are under way, or the end is yet to be put on record."""
    return transactions.transactional is not None and transactions.transactional.state in coordinator.PREPARED


def has_late_markers(transactions: Transactions) -> bool:
    """Whether more copies of a marker are under way than the one that is waited for."""
    return bool(transactions.late)


def sent_again(parameters: Parameters, transactions: Transactions) -> Transactions:
    """With the copies of a marker that a coordinator sends when it loads its log again (`TransactionCoordinator`).

    onElection drops what is queued, not what was sent, and its epoch has not risen, so that nobody fences the copy from
    before: all are written. One may be answered, and the transaction over, before the next comes. Where it was told to
    before the transaction was decided it may hear of it after that; if it did not, there is a copy that never comes.
    """
    marker = _awaited(transactions)
    if marker is None or not parameters.coordinator_reloads:
        return transactions
    copies = (LateMarker(marker, epoch) for epoch in transactions.reloads)
    return transactions._replace(late=(*transactions.late, *copies), reloads=())


def _awaited(transactions: Transactions) -> Marker | None:
    """The marker of which the coordinator has yet to learn that the partition has it."""
    transactional = transactions.transactional
    if transactional is None or PARTITION not in transactional.unmarked:
        return None
    return coordinator.marker(transactional, coordinator_epoch=0)


def is_uncertain(transactions: Transactions) -> bool:
    """Whether the next coordinator may know what this one does not."""
    return bool(transactions.logged)


class TransactionRules:
    """Each is one thing that may happen, and what then stands in place of the parts that it reads."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    # What a client asks for

    def coordinates(
        self, asked: Asked, around: Surroundings, transactions: Transactions
    ) -> Iterator[tuple[Answered, Surroundings, Transactions]]:
        """The coordinator does what a client asks for, or says why not.

        One that could not replicate it in time says that it is not available, and may have it in its log all the same.
        """
        for known in self.on_record(transactions):
            after, answer = self.answered(known.transactional, asked)
            if asked.reply in (None, answer):
                yield Answered(answer), around, sent_again(self.parameters, known.wrote(after))
            for error in () if around.steady else UNSETTLED:
                if asked.reply in (None, Answer(error)):
                    yield Answered(Answer(error)), around, known
                    for failed in _failed(known, after):
                        yield Answered(Answer(error)), around, failed

    def on_record(self, transactions: Transactions) -> Iterator[Transactions]:
        """What whoever coordinates knows: the same as before, or if it is another one, what the log tells it."""
        yield transactions
        if transactions.moved and transactions.transactional is not None:
            loaded = coordinator.loaded(transactions.transactional, self.parameters)
            if loaded != transactions.transactional:
                yield transactions._replace(transactional=loaded)

    def answered(self, transactional: Transactional | None, asked: Asked) -> tuple[Transactional | None, Answer]:
        """What the coordinator has on record afterwards, and what it says."""
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

    # What a client writes

    def admits(
        self, b: BrokerId, asked: Asked, around: Surroundings, broker: Broker, transactions: Transactions
    ) -> Iterator[tuple[Admitted | Answered, Surroundings, Broker, Transactions]]:
        """The leader asks the coordinator about a batch that begins a transaction, or has it add the partition."""
        if not acts(around, broker):
            return
        replica, request = broker.replica, asked.request
        if replica.leadership is None:
            _, reply = produce.produce(self.parameters, replica, request)
            if asked.reply in (None, reply):
                yield Answered(reply), around, broker, transactions
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
                yield Admitted(b, request._replace(guard=admitted.guard), asked.reply), around, broker, after
                continue
            reply = Produced(coordinator.produce_error(admitted.error, support))
            if asked.reply in (None, reply):
                yield Answered(reply), around, broker, after

    def appends(
        self, admitted: Admitted, around: Surroundings, broker: Broker, transactions: Transactions
    ) -> Iterator[tuple[Waits | Answered, Surroundings, Broker, Transactions]]:
        """The leader appends a batch that it may, unless something has changed meanwhile."""
        if not acts(around, broker):
            return
        request, replica = admitted.request, broker.replica
        assert request.batch is not None
        verification = transactions.verification(replica, request.batch.producer_id)
        after, reply = produce.produce(self.parameters, replica, request, verification)
        written = broker._replace(replica=after)
        if after != replica:
            transactions = transactions.overtaken(request.batch.epoch)
        if isinstance(reply, Waiting):
            waits = Waits(admitted.broker, replica.broker_epoch, request, reply, admitted.reply)
            yield waits, around, written, transactions
        elif admitted.reply in (None, reply):
            yield Answered(reply), around, written, transactions

    # What the coordinator does by itself

    def marks(
        self, transactions: Transactions, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Transactions, Surroundings, Broker]]:
        """The leader takes a marker, with acks=all. It is sent again to who leads next, or if the answer may be lost.

        (TransactionMarkerRequestCompletionHandler: what can be tried again, and disconnections; onElection.)
        """
        marker = _awaited(transactions)
        if marker is None:
            return
        for sent, after in self._taken(marker, transactions.sent, around, broker):
            yield transactions.overtaken(marker.epoch)._replace(sent=sent), around, after

    def marks_late(
        self, transactions: Transactions, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Transactions, Surroundings, Broker]]:
        """The leader takes one more copy, whatever has become of the transaction, unless its epoch is too old.

        Not before the copy that it has is answered, for both come over one connection (SocketServer's Processor).
        """
        copies = (transactions.sent, *(copy.sent for copy in transactions.late))
        if any(one is not None and self._waits(one, broker) for one in copies):
            return
        awaited = _awaited(transactions)
        for place, copy in enumerate(transactions.late):
            if broker.replica.leader_epoch < copy.since:
                continue
            if transactions.sent is None and copy.marker == awaited:
                continue  # they are all alike: it takes the one that is waited for first
            for sent, after in self._taken(copy.marker, copy.sent, around, broker):
                yield transactions.with_late(place, sent), around, after

    def _waits(self, sent: MarkerSent, broker: Broker) -> bool:
        """Whether a broker has taken a marker and has yet to answer."""
        replica = broker.replica
        here = (sent.broker, sent.incarnation) == (replica.broker, replica.broker_epoch)
        return here and produce.complete(self.parameters, replica, sent.waiting) is None

    def _taken(
        self, marker: Marker, sent: MarkerSent | None, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[MarkerSent, Broker]]:
        """A broker takes a marker, unless it does not lead or has it already and was not asked again."""
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
        waiting = Waiting(replica.log.end, until=replica.log.end + 1)
        taken = MarkerSent(marker, replica.broker, replica.broker_epoch, replica.leader_epoch, waiting)
        after = append(self.parameters, replica, [marker_record(replica.leader_epoch, marker)])
        yield taken, broker._replace(replica=after)

    def completes(
        self, transactions: Transactions, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Transactions, Surroundings, Broker]]:
        """The coordinator learns that the marker is replicated, and the transaction is over.

        Or that it is not, as where the ISR has become too small after it was appended: then it sends it again.
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
        self, transactions: Transactions, around: Surroundings, broker: Broker
    ) -> Iterator[tuple[Transactions, Surroundings, Broker]]:
        """The coordinator learns that another copy is replicated, and takes it for the one that it waits for.

        That one is then the other copy. Nobody looks which transaction was meant, only at the coordinator's epoch
        (TransactionMarkerRequestCompletionHandler); where none is being ended it is an error that changes nothing.
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
        """What the leader that has taken a marker says of it; None while that is nothing.

        In ZooKeeper mode a process registers anew when its session was over, and answers all the same.
        """
        replica = broker.replica
        same = self.parameters.mode is Mode.ZK or replica.broker_epoch == sent.incarnation
        if sent.broker != replica.broker or not same or not acts(around, broker):
            return None
        return produce.complete(self.parameters, replica, sent.waiting)

    def _ended(self, transactions: Transactions) -> Transactions:
        """With the end of the transaction on record."""
        assert transactions.transactional is not None
        return transactions.wrote(
            coordinator.complete(coordinator.marked(transactions.transactional, PARTITION), self.parameters)
        )

    def completes_without_markers(
        self, transactions: Transactions, around: Surroundings
    ) -> Iterator[tuple[Transactions, Surroundings]]:
        """A transaction that wrote nothing anywhere is over when that is on record."""
        if transactions.transactional is not None:
            after = coordinator.complete(transactions.transactional, self.parameters)
            if after is not None:
                yield transactions.wrote(after), around

    def is_taken_over(
        self, transactions: Transactions, around: Surroundings
    ) -> Iterator[tuple[Transactions, Surroundings]]:
        """Another broker coordinates, and finds what the one before could not say that it had written."""
        for written in () if around.steady else transactions.logged:
            loaded = coordinator.loaded(written, self.parameters)
            yield transactions._replace(transactional=loaded, logged=(), moved=False), around


def _failed(known: Transactions, after: Transactional | None) -> Iterator[Transactions]:
    """Where a coordinator could not replicate what it was asked for.

    It goes on as before. But who was to be fenced is, for the next epoch is the one that it goes by from the moment in
    which it begins to fence (TransactionMetadata.prepareFenceProducerEpoch, hasFailedEpochFence).
    """
    before = known.transactional
    if before is None or after is None or after == before:
        return
    yield known.failed(after, before)
    fenced = after.producer.epoch > before.producer.epoch and after.state in coordinator.PREPARED
    if fenced:
        yield known.failed(after, before._replace(producer=after.producer))
