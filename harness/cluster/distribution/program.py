"""What can be run from Kafka's jars as a node."""

from __future__ import annotations

from enum import Enum


class Program(Enum):
    """A main class in one of its uses: each loads other classes, so each has a class-data archive of its own."""

    KRAFT = ("kraft", "kafka.Kafka")
    ZK_BROKER = ("zk-broker", "kafka.Kafka")
    ZOOKEEPER = ("zookeeper", "org.apache.zookeeper.server.quorum.QuorumPeerMain")

    def __init__(self, label: str, main: str) -> None:
        self.label = label
        self.main = main
