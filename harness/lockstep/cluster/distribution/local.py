"""A Kafka directory that the user built or unpacked on this machine: its jars and its version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lockstep.errors import UsageError

RELEASED = ("libs/*.jar",)

# Where a source tree keeps what it built: its modules, one or two levels down, and what those depend on.
BUILT = (
    "*/build/libs/*.jar",
    "*/*/build/libs/*.jar",
    "core/build/dependant-libs-*/*.jar",
    "tools/build/dependant-libs-*/*.jar",
)

_SERVER = re.compile(r"kafka_2\.\d+-(\d+\.\d+\.\d+(?:-SNAPSHOT|-rc\d+)?)\.jar")
_NOT_RUN = re.compile(r"-(?:test|sources|test-sources|src|scaladoc|javadoc)\.jar$")


def version_in(directory: Path) -> str:
    """The Kafka version of an unpacked release or a built source tree."""
    versions = sorted({match[1] for jar in jars_in(directory) if (match := _SERVER.fullmatch(jar.name))})
    if not versions:
        raise UsageError(
            f"{directory} has no kafka_2.13-VERSION.jar in libs or core/build/libs: give --kafka-dir an unpacked Kafka "
            "or a source tree built with ./gradlew jar"
        )
    if len(versions) > 1:
        raise UsageError(f"{directory} holds several Kafka versions ({', '.join(versions)}): clean it and build again")
    return versions[0]


def jars_in(directory: Path) -> tuple[Path, ...]:
    """The class path, as `bin/kafka-run-class.sh` would put it together; of jars of the same name the first counts."""
    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: give --kafka-dir an unpacked Kafka or a built source tree")
    jars: dict[str, Path] = {}
    for place in RELEASED if (directory / "libs").is_dir() else BUILT:
        for jar in sorted(directory.glob(place)):
            if not _NOT_RUN.search(jar.name):
                jars.setdefault(jar.name, jar)
    return tuple(jars.values())


def identity_of(jars: Iterable[Path]) -> str:
    """Changes when a jar does, so that a rebuilt one is not run from the archive of its predecessor."""
    return "\n".join(f"{jar} {(status := jar.stat()).st_size} {status.st_mtime_ns}" for jar in jars)
