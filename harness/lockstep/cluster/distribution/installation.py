"""One Kafka version on this machine: its jars, and the command lines that run them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.cluster.distribution import storage
from lockstep.cluster.distribution.command import java_command
from lockstep.cluster.distribution.logs import Logging, logging_in
from lockstep.cluster.distribution.program import Program, programs_in
from lockstep.cluster.distribution.storage import Features, Format, ScramUser
from lockstep.host.java import Java

TOOL_HEAP_MB = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One Kafka version, to be run with one Java."""

    version: str
    java: Java
    jars: tuple[Path, ...]
    trained: Path
    """What training runs left: class-data archives and learnt storage formats."""

    @property
    def classpath(self) -> str:
        return os.pathsep.join(str(jar) for jar in self.jars)

    @property
    def logging(self) -> Logging:
        return logging_in(jar.name for jar in self.jars)

    @property
    def programs(self) -> tuple[Program, ...]:
        """What this version can run."""
        return programs_in(jar.name for jar in self.jars)

    def archive(self, program: Program) -> Path:
        return self.trained / program.training / f"{program.label}.jsa"

    def command(
        self,
        program: Program,
        *args: str,
        log_directory: Path,
        system_properties: Mapping[str, str] | None = None,
        heap_min_mb: int | None = None,
        heap_max_mb: int | None = None,
        jvm: Sequence[str] = (),
    ) -> list[str]:
        """The command line of a node; it logs to `server.log` in `log_directory`, and has the program's own heap."""
        return java_command(
            self.java,
            self.classpath,
            *args,
            main=program.main,
            log_directory=log_directory,
            heap_min_mb=heap_min_mb or program.heap_min_mb,
            heap_max_mb=heap_max_mb or program.heap_max_mb,
            system_properties=self.logging.properties(self.logging.file) | dict(system_properties or {}),
            jvm=[*_shared(self.archive(program)), *jvm],
        )

    def tool(self, main: str, *args: str, log_directory: Path) -> list[str]:
        """The command line of one of Kafka's tools."""
        return java_command(
            self.java,
            self.classpath,
            *args,
            main=main,
            log_directory=log_directory,
            heap_min_mb=TOOL_HEAP_MB // 2,
            heap_max_mb=TOOL_HEAP_MB,
            system_properties=self.logging.properties(self.logging.file),
            jvm=_shared(self.archive(Program.KRAFT)),
        )

    def learn(self, features: Features | None = None, scram: Sequence[ScramUser] = ()) -> Format:
        """How storage is formatted with these feature levels and users; one JVM serves all nodes of a cluster.

        A feature or level that this version does not know is a usage error.
        """
        return storage.learn(
            self.version,
            lambda work, arguments: self.tool(storage.STORAGE_TOOL, *arguments, log_directory=work),
            self.trained / "formats",
            features or {},
            scram,
        )


def _shared(archive: Path) -> list[str]:
    """The options that make a JVM start from an archive, once there is one."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"] if archive.exists() else []
