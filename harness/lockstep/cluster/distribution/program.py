"""What can be run from Kafka's jars as a node."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Program(Enum):
    """A main class in one of its uses: each loads other classes, so each has a class-data archive of its own."""

    KRAFT = ("kraft", "kafka.Kafka", "kraft", 96, 256)
    ZK_BROKER = ("zk-broker", "kafka.Kafka", "zk", 96, 256)
    ZOOKEEPER = ("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zk", 32, 96)

    def __init__(self, label: str, main: str, training: str, heap_min_mb: int, heap_max_mb: int) -> None:
        self.label = label
        self.main = main
        self.training = training
        """The kind of cluster that is started to make the archive."""
        self.heap_min_mb = heap_min_mb
        self.heap_max_mb = heap_max_mb


def programs_in(jars: Iterable[str]) -> tuple[Program, ...]:
    """What can be run from jars of these names: ZooKeeper and its mode went with Kafka 4.0."""
    if any(jar.startswith("zookeeper-") for jar in jars):
        return tuple(Program)
    return (Program.KRAFT,)
