"""The command line of a JVM that runs something from Kafka's class path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lockstep.host.java import Java


def java_command(
    java: Java,
    classpath: str,
    *args: str,
    main: str,
    log_directory: Path,
    heap_min_mb: int,
    heap_max_mb: int,
    system_properties: Mapping[str, str],
    jvm: Sequence[str] = (),
) -> list[str]:
    """Small and quick to start (serial collector, C1 only) rather than fast: many nodes share one machine."""
    properties = {"java.awt.headless": "true", "kafka.logs.dir": str(log_directory), **system_properties}
    return [
        str(java.executable),
        f"-Xms{heap_min_mb}m",
        f"-Xmx{heap_max_mb}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *jvm,
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-cp",
        classpath,
        main,
        *args,
    ]
