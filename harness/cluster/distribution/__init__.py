"""The Kafka distribution: the jars of one version, and everything needed to start nodes from them quickly."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.cache import cache_dir
from harness.cluster.distribution.archive import ARCHIVE, trained, trained_path, usable
from harness.cluster.distribution.command import java_command
from harness.cluster.distribution.jars import HashMismatch, ensure_jars, verify_jars
from harness.cluster.distribution.lock import Jar, Lock, known_versions, read_lock, write_lock
from harness.cluster.distribution.storage import format_storage, random_id
from harness.java import Java
from harness.progress import Progress

__all__ = [
    "ARCHIVE",
    "Distribution",
    "HashMismatch",
    "Jar",
    "Lock",
    "distribution",
    "distribution_directory",
    "ensure_jars",
    "known_versions",
    "random_id",
    "read_lock",
    "trained_path",
    "usable",
    "verify_jars",
    "write_lock",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One Kafka version, ready to run with one Java."""

    version: str
    java: Java
    jars: tuple[Path, ...]
    trained: Path
    """What the training run left: the class-data archive and the learnt storage files."""

    @property
    def classpath(self) -> str:
        return os.pathsep.join(str(jar) for jar in self.jars)

    @property
    def archive(self) -> Path:
        return self.trained / ARCHIVE

    def command(
        self,
        *args: str,
        log_directory: Path,
        main: str = "kafka.Kafka",
        heap_min_mb: int = 96,
        heap_max_mb: int = 256,
        system_properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
    ) -> list[str]:
        """The command line that runs `main` with `args`; it logs to `server.log` in `log_directory`."""
        return java_command(
            self.java,
            self.classpath,
            *args,
            main=main,
            log_directory=log_directory,
            heap_min_mb=heap_min_mb,
            heap_max_mb=heap_max_mb,
            system_properties=system_properties,
            jvm=[f"-XX:SharedArchiveFile={self.archive}", "-Xshare:auto", *jvm],
        )

    def format(self, directory: Path, *, cluster_id: str, node_id: int, directory_id: str | None = None) -> None:
        """Format a node's log directory as `StorageTool format` does for a cluster with static voters."""
        format_storage(self.trained, directory, cluster_id=cluster_id, node_id=node_id, directory_id=directory_id)


def distribution(version: str, java: Java, progress: Progress, *, repair: bool = False) -> Distribution:
    """Kafka `version`, downloaded and trained if this machine has not done so yet; `repair` replaces damaged jars."""
    directory = distribution_directory(version)
    jars = ensure_jars(read_lock(version), directory / "jars", progress, repair=repair)
    classpath = os.pathsep.join(str(jar) for jar in jars)
    return Distribution(
        version=version, java=java, jars=jars, trained=trained(directory, version, java, classpath, progress)
    )


def distribution_directory(version: str) -> Path:
    """Where a version lives in the cache."""
    return cache_dir() / "kafka" / version
