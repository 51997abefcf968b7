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
            roots.append(_logging_binding(version, _closure(maven, roots)))
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
    return [*inputs, *transitive]


def _logging_binding(version: str, closure: list[Dependency]) -> str:
    """Kafka 4 ships log4j2 and the SLF4J API but nothing between them, and would log nowhere."""
    versions = {dependency.artifactId: dependency.version for dependency in closure}
    if "log4j-core" not in versions:
        raise UsageError(f"Kafka {version} does not log through log4j2: Lockstep runs Kafka 4.0 and newer")
    api_is_two = versions["slf4j-api"].startswith("2.")
    artifact = "log4j-slf4j2-impl" if api_is_two else "log4j-slf4j-impl"
    return f"org.apache.logging.log4j:{artifact}:{versions['log4j-core']}"


def _jar(dependency: Dependency) -> Jar:
    path = dependency.artifact.resolve()  # jgo checks the repository's own checksum while downloading
    return Jar(
        coordinate=f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}",
        sha256=sha256_of(path),
        size=path.stat().st_size,
    )
