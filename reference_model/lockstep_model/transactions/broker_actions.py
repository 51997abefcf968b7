"""Broker actions without a client request: markers, completion, transaction timeout, coordinator and leader change."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Marker, check_marker
from lockstep_model.state_machine import Outcomes
from lockstep_model.transactions import coordinator as rules
from lockstep_model.transactions.coordinator import Partition
from lockstep_model.transactions.partition import Leader, append, replicate, succeeded
from lockstep_model.transactions.state import Coordinator, LateRequest, TransactionBounds


@dataclass(frozen=True, slots=True)
class Background:
    """Each method is one action: its guard, then all possible next states."""

    parameters: Parameters
    bounds: TransactionBounds

    def send_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """WriteTxnMarkers: the leader appends the marker of a decided transaction.

        KafkaApis.handleWriteTxnMarkersRequest.
        """
        transactional = coordinator.transactional
        if transactional is None or partition not in transactional.unmarked:
            return
        marker = rules.marker(transactional, coordinator.epoch)
        if leader.unacknowledged is None or leader.unacknowledged[0] != marker:
            for marked in self._marked(leader, marker):
                yield coordinator, marked._replace(unacknowledged=(marker, leader.log.end))

    def acknowledge_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """WriteTxnMarkers response, after the marker is replicated (TransactionMarkerRequestCompletionHandler)."""
        transactional = coordinator.transactional
        if transactional is None or partition not in transactional.unmarked or leader.unacknowledged is None:
            return
        marker, offset = leader.unacknowledged
        if marker == rules.marker(transactional, coordinator.epoch) and offset < leader.high_watermark:
            after = coordinator._replace(transactional=rules.marked(transactional, partition))
            if LateRequest.MARKER in self.bounds.late:
                after = after._replace(late=after.late | {(partition, marker)})
            yield after, leader._replace(unacknowledged=None)

    def send_marker_late(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A duplicate WriteTxnMarkers request arrives after the coordinator stopped waiting for its response."""
        for copy in sorted(coordinator.late):
            if copy[0] == partition:
                rest = coordinator._replace(late=coordinator.late - {copy})
                for marked in self._marked(leader, copy[1]):
                    yield rest, marked

    def _marked(self, leader: Leader, marker: Marker) -> list[Leader]:
        """The leader with the marker appended; a refused marker is not retried.

        TransactionMarkerRequestCompletionHandler.
        """
        if isinstance(check_marker(leader.entry(marker.producer_id), marker, self.parameters), Error):
            return []
        return [append(leader, marker, replicated_at_once=not self.bounds.lagging)]

    def complete(self, coordinator: Coordinator) -> Outcomes:
        """All markers are acknowledged: CompleteCommit or CompleteAbort (maybeWriteTxnCompletion).

        TransactionMarkerChannelManager.maybeWriteTxnCompletion.
        """
        if coordinator.transactional is not None:
            after = rules.complete(coordinator.transactional, self.parameters)
            if after is not None:
                yield (coordinator._replace(transactional=after),)

    def time_out(self, coordinator: Coordinator) -> Outcomes:
        """An open transaction exceeds its timeout and is aborted (TransactionCoordinator.abortTimedOutTransactions)."""
        if coordinator.transactional is not None and coordinator.timeouts:
            after = rules.abort_timed_out(coordinator.transactional, self.parameters, fresh=coordinator.fresh)
            if after is not None:
                yield (coordinator.after(after)._replace(timeouts=coordinator.timeouts - 1),)

    def take_over(self, coordinator: Coordinator) -> Outcomes:
        """Coordinator failover: the new coordinator loads the transaction log (TransactionCoordinator.onElection).

        Markers of the old coordinator may still be in flight.
        """
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
                transactional=rules.loaded(transactional, self.parameters),
                epoch=coordinator.epoch + 1,
                successors=coordinator.successors - 1,
                late=coordinator.late | under_way,
            ),
        )

    def replicate(self, leader: Leader) -> Outcomes:
        """All followers reach the leader's log end, and the high watermark with them."""
        if leader.high_watermark < leader.log.end:
            yield (replicate(leader),)

    def elect(self, leader: Leader) -> Outcomes:
        """Leader election: the new leader's log ends between the high watermark and the old leader's log end."""
        if leader.elections:
            for log_end in range(leader.high_watermark, leader.log.end + 1):
                yield (succeeded(leader, log_end),)
