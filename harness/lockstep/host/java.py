"""Finding a Java that can run both Kafka and Spark."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockstep.errors import EnvironmentError_

OLDEST_MAJOR = 17
PREFERRED_MAJORS = (17, 21)  # what Spark is tested with; a newer one is taken only when there is nothing else
SPARK_MODULE = "jdk.incubator.vector"  # Spark refuses to start without it, and jlinked runtimes leave it out
FIX = "install one (apt-get install openjdk-17-jre-headless) or set JAVA_HOME to one"

_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
)
_PROPERTY = re.compile(r"^\s+(java\.(?:home|version|vendor|vm\.version)) = (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """One Java runtime, as it describes itself."""

    executable: Path
    home: Path
    version: str
    vendor: str
    build: str
    """The exact build, which a class-data archive is bound to."""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0].split("-")[0])


class UnsuitableJava(EnvironmentError_):
    """A Java that is there and cannot be used."""


def find_java() -> Java:
    """The first suitable Java of JAVA_HOME, PATH and the usual places; 17 or 21 wherever there is one."""
    spare: Java | None = None
    refused: list[str] = []
    for executable in _candidates():
        try:
            java = describe(executable)
        except UnsuitableJava as error:
            refused.append(str(error))
            continue
        if java.major in PREFERRED_MAJORS:
            return java
        spare = spare or java
    if spare is not None:
        return spare
    found = f" ({'; '.join(refused)})" if refused else ""
    raise EnvironmentError_(f"no full Java {OLDEST_MAJOR} or newer found{found}: {FIX}")


@functools.cache
def describe(executable: Path) -> Java:
    """Ask a Java what it is; raises `UnsuitableJava` with the reason why it will not do."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "--list-modules"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsuitableJava(f"{executable} does not run: {error}") from error
    settings = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    if answer.returncode != 0 or "java.version" not in settings:  # Java 8 does not know --list-modules
        raise UnsuitableJava(f"{executable} is older than Java {OLDEST_MAJOR} or does not run")
    java = Java(
        executable=executable,
        home=Path(settings["java.home"]),
        version=settings["java.version"],
        vendor=settings["java.vendor"],
        build=settings["java.vm.version"],
    )
    if java.major < OLDEST_MAJOR:
        raise UnsuitableJava(f"{executable} is Java {java.version}")
    if f"\n{SPARK_MODULE}@" not in f"\n{answer.stdout}":
        raise UnsuitableJava(f"{executable} lacks the module {SPARK_MODULE} that Spark needs")
    return java


def _candidates() -> Iterator[Path]:
    """Every java executable worth asking, once, without those that are the same file."""
    seen: set[Path] = set()
    for executable in _executables():
        real = executable.resolve()
        if os.access(real, os.X_OK) and real not in seen:
            seen.add(real)
            yield real


def _executables() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java")
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    for place in _PLACES:
        for directory in sorted(Path("/").glob(place.lstrip("/"))):
            yield directory / "bin" / "java"
