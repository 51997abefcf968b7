"""Making a lock file: asking Maven's resolver which jars a Kafka version needs, and hashing them."""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests
from jgo.maven import Dependency, MavenContext

from harness.cluster.distribution.jars import PARALLEL, sha256_of
from harness.cluster.distribution.lock import Jar, Lock
from harness.cluster.distribution.repository import REPOSITORY_VARIABLE, repository_url, without_credentials
from harness.errors import EnvironmentError_, UsageError
from harness.progress import Progress

# Since 1.7.34 only a POM that points to slf4j-reload4j, which Maven follows and jgo does not.
RELOCATED = "slf4j-log4j12"

_VERSION = re.compile(r"\d+\.\d+\.\d+")


def lock(version: str, progress: Progress) -> Lock:
    """The lock of a Kafka release: the same jars as `mvn dependency:copy-dependencies -DincludeScope=runtime` gives."""
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a Kafka release such as 4.3.1")
    repository = repository_url()
    roots = [f"org.apache.kafka:{artifact}:{version}" for artifact in ("kafka_2.13", "kafka-tools")]
    with (
        progress.action(f"locking Kafka {version}"),
        tempfile.TemporaryDirectory(prefix="lockstep-lock-") as local,
    ):
        maven = MavenContext(repo_cache=Path(local), remote_repos={"central": repository}, timeout=60)
        try:
            roots += _logging_binding(_closure(maven, roots))
            closure = _closure(maven, roots)
            with ThreadPoolExecutor(PARALLEL) as pool:
                jars = list(pool.map(_jar, closure))
        except (RuntimeError, requests.RequestException) as error:  # jgo reports a missing artifact as RuntimeError
            raise EnvironmentError_(
                f"Kafka {version} cannot be resolved from {without_credentials(repository)}: check that the version "
                f"exists, the network, and {REPOSITORY_VARIABLE} ({error})"
            ) from error
    return Lock(kafka=version, roots=tuple(roots), jars=tuple(sorted(jars, key=lambda jar: jar.coordinate)))


def _closure(maven: MavenContext, roots: list[str]) -> list[Dependency]:
    # "!" as Maven does it: by itself jgo would apply each root's own dependency management to the others.
    inputs, transitive = maven.resolver.resolve([maven.create_dependency(f"{root}!") for root in roots])
    return [dependency for dependency in (*inputs, *transitive) if dependency.artifactId != RELOCATED]


def _logging_binding(closure: list[Dependency]) -> list[str]:
    """What has to be added for the server to log at all.

    Kafka 4 ships log4j2 and the SLF4J API but nothing between them; 3.x brings reload4j with its binding, or asks for
    the binding by its old name.
    """
    versions = {dependency.artifactId: dependency.version for dependency in closure}
    if "slf4j-reload4j" in versions:
        return []
    if "log4j-core" not in versions:
        return [f"org.slf4j:slf4j-reload4j:{versions['slf4j-api']}"]
    artifact = "log4j-slf4j2-impl" if versions["slf4j-api"].startswith("2.") else "log4j-slf4j-impl"
    return [f"org.apache.logging.log4j:{artifact}:{versions['log4j-core']}"]


def _jar(dependency: Dependency) -> Jar:
    path = dependency.artifact.resolve()  # jgo checks the repository's own checksum while downloading
    return Jar(
        coordinate=f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}",
        sha256=sha256_of(path),
        size=path.stat().st_size,
    )
