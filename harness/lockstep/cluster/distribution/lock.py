"""Lock files: exactly which jars make up one version of the Kafka server, by coordinate and sha256.

A lock names no place to download from: any Maven repository will do, because only bytes that match are ever used.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import msgspec

from lockstep.cluster.distribution.program import Program, programs_in
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.host.cache import atomically, cache_dir

LOCK_FORMAT = 1
SHIPPED_LOCKS = Path(__file__).parent / "locks"

_COORDINATE = re.compile(r"[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+:[A-Za-z0-9_.+-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Jar(msgspec.Struct, frozen=True, kw_only=True):
    """One jar of the class path."""

    coordinate: str
    """`group:artifact:version`"""
    sha256: str
    size: int

    def __post_init__(self) -> None:
        # Both end up in paths and comparisons, so a damaged lock must not get further than here.
        if not _COORDINATE.fullmatch(self.coordinate):
            raise ValueError(f"{self.coordinate!r} is not group:artifact:version")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.sha256!r} is not a sha256")

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"

    @property
    def repository_path(self) -> str:
        """Where every Maven repository keeps it."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file_name}"


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """The whole class path of one Kafka version."""

    format: int = LOCK_FORMAT
    kafka: str
    roots: tuple[str, ...]
    """What was asked for; `jars` is the runtime closure of these."""
    jars: tuple[Jar, ...]

    def __post_init__(self) -> None:
        if self.format != LOCK_FORMAT:
            raise ValueError(f"lock format {self.format} is not {LOCK_FORMAT}")
        if len({jar.file_name for jar in self.jars}) != len(self.jars):
            raise ValueError("two jars share a file name")

    @property
    def size(self) -> int:
        return sum(jar.size for jar in self.jars)

    @property
    def programs(self) -> tuple[Program, ...]:
        """What this version can run."""
        return programs_in(jar.file_name for jar in self.jars)


def known_versions() -> list[str]:
    """Every Kafka version with a lock file, oldest first."""
    return sorted({path.stem for path in _lock_files()}, key=_version_key)


def read_lock(version: str) -> Lock:
    """The lock of a version; one that is not known is the caller's mistake."""
    path = lock_file(version)
    if path is not None:
        return _read(path)
    known = known_versions()
    close = difflib.get_close_matches(version, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)};"
    raise UsageError(f"Kafka {version} has no lock file: {hint} lockstep versions add {version} makes one")


def lock_file(version: str) -> Path | None:
    """Where a version's lock is; None when there is none."""
    return next((path for path in _lock_files() if path.stem == version), None)


def write_lock(lock: Lock) -> Path:
    """Keep a lock in the user's cache, where `read_lock` finds it after the shipped ones."""
    path = _user_locks() / f"{lock.kafka}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomically(path) as temporary:
        temporary.write_bytes(encode(lock))
    return path


def encode(lock: Lock) -> bytes:
    return msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n"


def _read(path: Path) -> Lock:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Lock)
    except (OSError, msgspec.DecodeError) as error:
        raise EnvironmentError_(f"the lock file {path} cannot be read ({error}): restore or delete it") from error


def _lock_files() -> list[Path]:
    return [*sorted(SHIPPED_LOCKS.glob("*.json")), *sorted(_user_locks().glob("*.json"))]


def _user_locks() -> Path:
    return cache_dir() / "locks"


def _version_key(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]
