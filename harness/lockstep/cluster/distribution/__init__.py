"""The Kafka distribution: the jars of one version, and everything needed to start nodes from them quickly."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from lockstep.cluster.distribution.archive import trained_path, usable
from lockstep.cluster.distribution.archive_training import train
from lockstep.cluster.distribution.installation import Distribution
from lockstep.cluster.distribution.jars import HashMismatch, ensure_jars, verify_jars
from lockstep.cluster.distribution.local import identity_of, jars_in, version_in
from lockstep.cluster.distribution.lock import Jar, Lock, known_versions, lock_file, read_lock, write_lock
from lockstep.cluster.distribution.logs import Logging
from lockstep.cluster.distribution.program import Program
from lockstep.cluster.distribution.storage import Format, ScramUser, random_id
from lockstep.errors import UsageError
from lockstep.host.cache import cache_dir
from lockstep.host.java import Java
from lockstep.progress import Progress

__all__ = [
    "Distribution",
    "Format",
    "HashMismatch",
    "Jar",
    "Lock",
    "Logging",
    "Program",
    "ScramUser",
    "described",
    "distribution",
    "distribution_directory",
    "ensure_jars",
    "known_versions",
    "lock_file",
    "random_id",
    "read_lock",
    "usable",
    "verify_jars",
    "version_in",
    "write_lock",
]


def distribution(
    version: str,
    java: Java,
    progress: Progress,
    *,
    programs: Iterable[Program] = (Program.KRAFT,),
    kafka_dir: Path | None = None,
    repair: bool = False,
) -> Distribution:
    """Kafka `version`, downloaded, and trained for `programs`, if this machine has not done so yet.

    `kafka_dir` is a local build of it to use instead; `repair` replaces damaged jars.
    """
    kafka = described(version, java, kafka_dir)
    for program in programs:
        if program not in kafka.programs:
            raise UsageError(f"Kafka {version} has no {program.label}: ZooKeeper mode ended with Kafka 3.9")
    if kafka_dir is None:
        ensure_jars(read_lock(version), distribution_directory(version) / "jars", progress, repair=repair)
    else:
        _forget_others(kafka.trained)
    train(kafka, programs, progress)
    return kafka


def described(version: str, java: Java, kafka_dir: Path | None = None) -> Distribution:
    """Kafka `version` as it will be; downloads and trains nothing."""
    if kafka_dir is not None:
        return _local(version, java, kafka_dir.absolute())
    directory = distribution_directory(version)
    jars = tuple(directory / "jars" / jar.file_name for jar in read_lock(version).jars)
    classpath = os.pathsep.join(str(jar) for jar in jars)
    return Distribution(version=version, java=java, jars=jars, trained=trained_path(directory, java, classpath))


def distribution_directory(version: str) -> Path:
    """Where a version lives in the cache."""
    return cache_dir() / "kafka" / version


def _local(version: str, java: Java, kafka_dir: Path) -> Distribution:
    found = version_in(kafka_dir)
    if found != version:
        raise UsageError(f"{kafka_dir} is Kafka {found}, not {version}: leave the version out, or give that one")
    jars = jars_in(kafka_dir)
    place = cache_dir() / "kafka-dir" / hashlib.sha256(str(kafka_dir).encode()).hexdigest()[:12]
    return Distribution(version=version, java=java, jars=jars, trained=trained_path(place, java, identity_of(jars)))


def _forget_others(trained: Path) -> None:
    """A local build is built again and again: only the archives of its latest jars are worth their space."""
    for other in trained.parent.glob("java-*"):
        if other != trained:
            shutil.rmtree(other, ignore_errors=True)
