"""What brokers do of themselves: markers, completions, time-outs, and others that take over."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters
from lockstep_model.partition.producer_state import Marker, check_marker
from lockstep_model.state_machine import Outcomes
from lockstep_model.transactions import coordinator as rules
from lockstep_model.transactions.coordinator import Partition
from lockstep_model.transactions.partition import Leader, append, replicate, succeeded
from lockstep_model.transactions.state import Coordinator, Late, TransactionBounds


@dataclass(frozen=True, slots=True)
class Background:
    """Each is one action: its guard, then what stands where afterwards, for each way in which it can happen."""

    parameters: Parameters
    bounds: TransactionBounds

    def send_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """A partition takes the marker of a decided transaction (KafkaApis.handleWriteTxnMarkersRequest)."""
        transactional = coordinator.transactional
        if transactional is None or partition not in transactional.unmarked:
            return
        marker = rules.marker(transactional, coordinator.epoch)
        if leader.unacknowledged is None or leader.unacknowledged[0] != marker:
            for marked in self._marked(leader, marker):
                yield coordinator, marked._replace(unacknowledged=(marker, leader.log.end))

    def acknowledge_marker(self, partition: Partition, coordinator: Coordinator, leader: Leader) -> Outcomes:
        """The coordinator learns that a marker is replicated (TransactionMarkerRequestCompletionHandler)."""
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
        return [append(leader, marker, replicated_at_once=not self.bounds.lagging)]

    def complete(self, coordinator: Coordinator) -> Outcomes:
        """All markers are known to be written (TransactionMarkerChannelManager.maybeWriteTxnCompletion)."""
        if coordinator.transactional is not None:
            after = rules.complete(coordinator.transactional, self.parameters)
            if after is not None:
                yield (coordinator._replace(transactional=after),)

    def time_out(self, coordinator: Coordinator) -> Outcomes:
        """A transaction was open for too long (TransactionCoordinator.abortTimedOutTransactions)."""
        if coordinator.transactional is not None and coordinator.timeouts:
            after = rules.abort_timed_out(coordinator.transactional, self.parameters, fresh=coordinator.fresh)
            if after is not None:
                yield (coordinator.after(after)._replace(timeouts=coordinator.timeouts - 1),)

    def take_over(self, coordinator: Coordinator) -> Outcomes:
        """Another broker loads the log (onElection); the markers of the one before are still under way."""
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
        """The followers have fetched everything."""
        if leader.high_watermark < leader.log.end:
            yield (replicate(leader),)

    def elect(self, leader: Leader) -> Outcomes:
        """Another replica leads, with everything that is committed and perhaps more."""
        if leader.elections:
            for log_end in range(leader.high_watermark, leader.log.end + 1):
                yield (succeeded(leader, log_end),)
