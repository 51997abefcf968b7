"""The log and the checkpoints of a replica whose broker is stopped, read from its log directory."""

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
    """A replica's log and checkpoints. After a kill the checkpoints may be older than the log."""

    start: int
    """Log start offset: base offset of the first segment, or higher after DeleteRecords."""
    end: int
    """Log end offset."""
    records: tuple[FetchedRecord, ...]
    """All records from the log start offset."""
    epochs: tuple[EpochStart, ...]
    """Leader epochs and their start offsets, from leader-epoch-checkpoint."""
    high_watermark: int | None
    """High watermark from replication-offset-checkpoint; None if it was never checkpointed."""


def on_disk(cluster: Cluster, broker: int, topic: str, partition: int) -> ReplicaOnDisk | None:
    """A stopped broker's replica of a partition; None if it has no replica. Batches must be uncompressed."""
    node = cluster.broker(broker)
    if node.state() is NodeState.RUNNING:
        raise UsageError(f"{node.name} runs: ask it, its files are behind what it knows")
    try:
        log = log_of(cluster, node, f"{topic}-{partition}")
    except FaultError:
        return None
    return read(log)


def read(log: PartitionLog) -> ReplicaOnDisk:
    """Read a partition's segments, and the checkpoint files of its log directory."""
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
