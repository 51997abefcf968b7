"""What one replica has on disk while its broker does not run, and nobody can ask it."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.clients.wire.records import FetchedRecord, parse
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.cluster.storage.segments import PartitionLog, checkpoint, checkpoint_lines
from lockstep.errors import ClusterError, FaultError, UsageError
from lockstep.faults.support.log_directories import log_of
from lockstep_model.partition.log import EpochStart

EPOCHS = "leader-epoch-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOnDisk:
    """A log, and what its broker has written down about it: after a kill that may be older than the log."""

    start: int
    """The log start offset: where the first segment begins, or later if records before were deleted on request."""
    end: int
    """The log end offset."""
    records: tuple[FetchedRecord, ...]
    """From the start on."""
    epochs: tuple[EpochStart, ...]
    """The leader epochs and where they begin, as the broker last wrote them down."""
    high_watermark: int | None
    """As the broker last wrote it down; None if it never did."""


def on_disk(cluster: Cluster, broker: int, topic: str, partition: int) -> ReplicaOnDisk | None:
    """What a broker that does not run has of a partition, if it has a replica; its batches must be uncompressed."""
    node = cluster.broker(broker)
    if node.state() is NodeState.RUNNING:
        raise UsageError(f"{node.name} runs: ask it, its files are behind what it knows")
    try:
        log = log_of(cluster, node, f"{topic}-{partition}")
    except FaultError:
        return None
    return read(log)


def read(log: PartitionLog) -> ReplicaOnDisk:
    """What the files of a partition say, and those beside them in its log directory."""
    beside = log.directory.parent
    start = max(int(log.segments[0].stem), checkpoint(beside / LOG_STARTS).get(log.name, 0))
    return ReplicaOnDisk(
        start=start,
        end=log.end(),
        records=_records(log, start),
        epochs=tuple(EpochStart(*map(int, line.split())) for line in checkpoint_lines(log.directory / EPOCHS)),
        high_watermark=checkpoint(beside / HIGH_WATERMARKS).get(log.name),
    )


def _records(log: PartitionLog, start: int) -> tuple[FetchedRecord, ...]:
    try:
        return tuple(record for segment in log.segments for record in parse(segment.read_bytes(), start))
    except ValueError as error:
        raise ClusterError(f"the log of {log.name} in {log.directory} cannot be read: {error}") from error
