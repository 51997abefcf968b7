"""What nodes log, and how they are told: Kafka 4 logs through log4j2, 3.x through reload4j (log4j 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Logging:
    """A configuration that has a node write `server.log` in its `kafka.logs.dir`."""

    file: Path
    name: str
    """The system property that names the file."""
    prefix: str

    def properties(self, file: Path) -> dict[str, str]:
        """The system properties for a JVM that finds the configuration at `file`.

        By property and not on the class path: class-data sharing refuses a class path with a directory in it.
        """
        return {self.name: f"{self.prefix}{file}"}


LOG4J2 = Logging(file=Path(__file__).parent / "log4j2.properties", name="log4j2.configurationFile", prefix="")
RELOAD4J = Logging(file=Path(__file__).parent / "log4j.properties", name="log4j.configuration", prefix="file:")


def logging_in(jars: Iterable[str]) -> Logging:
    """How a server with jars of these names logs."""
    return LOG4J2 if any(jar.startswith("log4j-core-") for jar in jars) else RELOAD4J
