"""Making a lock file: asking Maven's resolver which jars a Kafka version needs, and hashing them."""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests
from jgo.maven import Dependency, MavenContext

from lockstep.cluster.distribution.jars import PARALLEL, TIMEOUT_S, sha256_of
from lockstep.cluster.distribution.lock import Jar, Lock
from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE, repository_url, without_credentials
from lockstep.errors import EnvironmentError_, UsageError
from lockstep.progress import Progress

# Since 1.7.34 only a POM that points to slf4j-reload4j, which Maven follows and jgo does not.
RELOCATED = "slf4j-log4j12"

# For Kafka releases without log4j-core among their dependencies.
LOG4J2 = "2.25.4"

OLDEST = (3, 6)

_VERSION = re.compile(r"(\d+)\.(\d+)\.\d+")


def lock(version: str, progress: Progress) -> Lock:
    """The lock of a Kafka release: the same jars as `mvn dependency:copy-dependencies -DincludeScope=runtime` gives."""
    repository = repository_url()
    _require_release(version, repository)
    roots = [f"org.apache.kafka:{artifact}:{version}" for artifact in ("kafka_2.13", "kafka-tools")]
    with (
        progress.action(f"locking Kafka {version}"),
        tempfile.TemporaryDirectory(prefix="lockstep-lock-") as local,
    ):
        maven = MavenContext(repo_cache=Path(local), remote_repos={"central": repository}, timeout=60)
        try:
            roots += _logging(_closure(maven, roots))
            closure = _closure(maven, roots)
            with ThreadPoolExecutor(PARALLEL) as pool:
                jars = list(pool.map(_jar, closure))
        except (RuntimeError, requests.RequestException) as error:  # jgo reports a missing artifact as RuntimeError
            raise _unresolved(version, repository, error) from error
    return Lock(kafka=version, roots=tuple(roots), jars=tuple(sorted(jars, key=lambda jar: jar.coordinate)))


def _require_release(version: str, repository: str) -> None:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise UsageError(f"{version!r} is not a Kafka release such as 4.3.1")
    if (int(match[1]), int(match[2])) < OLDEST:
        raise UsageError(f"Kafka {version} is too old: Lockstep runs Kafka {OLDEST[0]}.{OLDEST[1]} and newer")
    name = f"kafka_2.13/{version}/kafka_2.13-{version}.pom"
    try:
        answer = requests.get(f"{repository}/org/apache/kafka/{name}", timeout=TIMEOUT_S)
    except requests.RequestException as error:
        raise _unresolved(version, repository, error) from error
    if answer.status_code == requests.codes.not_found:
        raise UsageError(f"{without_credentials(repository)} has no Kafka {version}: give a version that was released")


def _unresolved(version: str, repository: str, error: Exception) -> EnvironmentError_:
    shown = without_credentials(repository)
    reason = type(error).__name__ if isinstance(error, requests.RequestException) else str(error)
    return EnvironmentError_(
        f"Kafka {version} cannot be resolved from {shown} ({reason.replace(repository, shown)}): check the network "
        f"and {REPOSITORY_VARIABLE}"
    )


def _closure(maven: MavenContext, roots: list[str]) -> list[Dependency]:
    # "!" as Maven does it: by itself jgo would apply each root's own dependency management to the others.
    inputs, transitive = maven.resolver.resolve([maven.create_dependency(f"{root}!") for root in roots])
    return [dependency for dependency in (*inputs, *transitive) if dependency.artifactId != RELOCATED]


def _logging(closure: list[Dependency]) -> list[str]:
    """What has to be added for the server to log at all.

    Kafka 3.x brings reload4j with its SLF4J binding, or asks for the binding by its old name. Kafka 4 is made for
    log4j2, which not every release names among its dependencies, and none the binding.
    """
    versions = {dependency.artifactId: dependency.version for dependency in closure}
    if "slf4j-reload4j" in versions:
        return []
    if "zookeeper" in versions:
        return [f"org.slf4j:slf4j-reload4j:{versions['slf4j-api']}"]
    binding = "log4j-slf4j2-impl" if versions["slf4j-api"].startswith("2.") else "log4j-slf4j-impl"
    missing = (binding,) if "log4j-core" in versions else ("log4j-core", binding)
    return [f"org.apache.logging.log4j:{artifact}:{versions.get('log4j-core', LOG4J2)}" for artifact in missing]


def _jar(dependency: Dependency) -> Jar:
    path = dependency.artifact.resolve()  # jgo checks the repository's own checksum while downloading
    return Jar(
        coordinate=f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}",
        sha256=sha256_of(path),
        size=path.stat().st_size,
    )
