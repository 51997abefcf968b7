"""__cluster_metadata, tailed with Fetch requests to the quorum leader.

The Fetch carries no replica id, as a consumer's does. The quorum leader responds, but does not count this reader as a
voter or observer (KafkaRaftClient, LeaderState). It also returns uncommitted records; those at or above the high
watermark are ignored, since another leader may truncate them.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from kio.records.schema import RecordBatch
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v13.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v13.response import FetchResponse, PartitionData
from kio.static.primitive import i32, i64

from lockstep.clients.wire.connection import Connection, milliseconds
from lockstep.clients.wire.records import batches
from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError, UsageError
from lockstep.spec.cluster import Listener

METADATA_TOPIC_ID = uuid.UUID(int=1)
"""Topic id of __cluster_metadata, the same in every cluster (Uuid.METADATA_TOPIC_ID)."""
UNKNOWN = -1
MAX_BYTES = 8_388_608
"""Maximum size of a controller's Fetch response. The controller ignores the size that the request names."""
ELSEWHERE = frozenset(
    {
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_leader_or_follower,
        ErrorCode.broker_not_available,
    }
)
"""Errors of a voter that is not the leader of the requested epoch. Its response names the leader and epoch it knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedRecords:
    """The batches that the quorum leader had committed beyond the end of the previous read."""

    batches: tuple[RecordBatch, ...]
    epoch: int
    high_watermark: int

    @property
    def complete(self) -> bool:
        """Whether the read reached the high watermark."""
        return not self.batches or end_of(self.batches[-1]) == self.high_watermark


class MetadataLog(Closeable):
    """Reads the committed batches of the metadata log from its first offset."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._voters = [node for node in cluster.spec.nodes if node.is_voter]
        if any(node.direct_listener is not Listener.CONTROLLER for node in self._voters):
            raise UsageError(
                "controllers that are brokers too cannot be followed: give the cluster its own controllers"
            )
        self._connection: Connection | None = None
        self._epoch = 1
        self._next_offset = 0
        self._last_epoch = 0

    def read(self) -> CommittedRecords | None:
        """The batches committed since the last read; None while the quorum has no leader, or no voter responds."""
        answer = self._fetch()
        if answer is None or answer.high_watermark == UNKNOWN:  # a new leader has none before its first commit
            return None
        committed = tuple(batch for batch in batches(answer.records or b"") if end_of(batch) <= answer.high_watermark)
        if committed:
            self._next_offset, self._last_epoch = end_of(committed[-1]), int(committed[-1].partition_leader_epoch)
        return CommittedRecords(batches=committed, epoch=self._epoch, high_watermark=int(answer.high_watermark))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _fetch(self) -> PartitionData | None:
        """Fetch from the quorum leader. Any other voter refers to the leader, if it knows one."""
        for _ in range(2 * len(self._voters) + 1):
            try:
                answer = self._ask()
            except OSError:
                self._turn_to_next()
                continue
            if answer.error_code is ErrorCode.none:
                if not _has_snapshot(answer):
                    return self._certain(answer)
                self._begin_behind_snapshot(answer)
            elif answer.error_code in ELSEWHERE:
                self._turn_to(int(answer.current_leader.leader_id), int(answer.current_leader.leader_epoch))
            else:
                raise self._refused(answer.error_code)
        return None

    def _ask(self) -> PartitionData:
        if self._connection is None:
            node = self._cluster.nodes[self._voters[0].name]
            if node.state() is not NodeState.RUNNING:
                raise ConnectionRefusedError(f"{node.name} does not run")
            self._connection = Connection(node.direct, self._cluster.access_to(node))
        partition = FetchPartition(
            partition=i32(0),
            current_leader_epoch=i32(self._epoch),
            fetch_offset=i64(self._next_offset),
            last_fetched_epoch=i32(self._last_epoch),
            partition_max_bytes=i32(MAX_BYTES),
        )
        request = FetchRequest(
            max_wait=milliseconds(0),
            min_bytes=i32(0),
            topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
            forgotten_topics_data=(),
        )
        response = self._connection.ask(request)
        assert isinstance(response, FetchResponse)
        if response.error_code is not ErrorCode.none:
            raise self._refused(response.error_code)
        return response.responses[0].partitions[0]

    def _turn_to(self, leader: int, epoch: int) -> None:
        """Turn to the leader that a voter named; to the next voter if it named none, or one of an older epoch."""
        if epoch < self._epoch or leader not in {node.id for node in self._voters}:
            self._turn_to_next()
            return
        self._epoch = epoch
        while self._voters[0].id != leader:
            self._turn_to_next()

    def _turn_to_next(self) -> None:
        self.close()
        self._voters = [*self._voters[1:], self._voters[0]]

    def _begin_behind_snapshot(self, answer: PartitionData) -> None:
        """Continue at offset 1 when the leader refers a Fetch at offset 0 to its snapshot.

        It does so whenever it has a snapshot, even if the log still begins at offset 0.
        """
        if self._next_offset > 0 or answer.log_start_offset > 0:
            raise ClusterError(
                f"records of the metadata log before offset {answer.snapshot_id.end_offset} are in a snapshot only: "
                "follow the controller from the cluster's start on"
            )
        self._next_offset, self._last_epoch = 1, self._epoch

    def _refused(self, error: ErrorCode) -> ClusterError:
        return ClusterError(f"{self._voters[0].name} refuses to tell its metadata: {error.name}")

    def _certain(self, answer: PartitionData) -> PartitionData:
        if answer.diverging_epoch.epoch != UNKNOWN:
            raise ClusterError(
                f"{self._voters[0].name} leads the quorum in epoch {self._epoch} without metadata that was committed: "
                f"it has epoch {answer.diverging_epoch.epoch} up to offset {answer.diverging_epoch.end_offset}, "
                f"and epoch {self._last_epoch} reached offset {self._next_offset}"
            )
        return answer


def end_of(batch: RecordBatch) -> int:
    """The offset after the batch's last record."""
    return int(batch.base_offset + batch.last_offset_delta + 1)


def _has_snapshot(answer: PartitionData) -> bool:
    return answer.snapshot_id.end_offset != UNKNOWN
