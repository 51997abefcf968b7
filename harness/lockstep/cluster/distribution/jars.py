"""The jars of a lock in the user's cache: downloaded once, in parallel, and never used unless they match."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests
import tenacity

from lockstep.cluster.distribution.lock import Jar, Lock
from lockstep.cluster.distribution.repository import REPOSITORY_VARIABLE, repository_url, without_credentials
from lockstep.errors import EnvironmentError_
from lockstep.host.cache import atomically, exclusive
from lockstep.progress import Advance, Progress

PARALLEL = 8
CHUNK_BYTES = 1 << 18
TIMEOUT_S = (10, 60)
ATTEMPTS = 5

# The JVM refuses a class-data archive when a jar's time differs, so a jar that is downloaded again must not look newer.
JAR_TIME_S = 1_600_000_000


class HashMismatch(EnvironmentError_):
    """A jar is not the one its lock names."""

    def __init__(self, jar: Jar, where: str, found: str, fix: str) -> None:
        super().__init__(f"{jar.file_name} {where} does not match its lock ({found}, not {_mark(jar.sha256)}): {fix}")
        self.jar = jar


def ensure_jars(lock: Lock, directory: Path, progress: Progress, *, repair: bool = False) -> tuple[Path, ...]:
    """Every jar of `lock` in `directory`, verified, in class-path order; offline when all are there.

    A jar that is there but wrong is refused by name; with `repair` it is downloaded again.
    """
    paths = tuple(directory / jar.file_name for jar in lock.jars)
    if not all(path.exists() for path in paths) or repair:
        with exclusive(directory):
            wanted = [
                jar
                for jar, path in zip(lock.jars, paths, strict=True)
                if not path.exists() or (repair and not _matches(jar, path))
            ]
            _download(lock.kafka, wanted, directory, progress)
    verify_jars(lock, directory)
    return paths


def verify_jars(lock: Lock, directory: Path) -> None:
    """Refuse the first jar that is not the one its lock names; cheap enough for every start (0.1 s)."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(lambda jar: _verify(jar, directory / jar.file_name), lock.jars))


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify(jar: Jar, path: Path) -> None:
    found = sha256_of(path)
    if found != jar.sha256:
        raise HashMismatch(jar, f"in {path.parent}", _mark(found), "delete it or run lockstep doctor --fix")
    if path.stat().st_mtime != JAR_TIME_S:
        os.utime(path, (JAR_TIME_S, JAR_TIME_S))


def _matches(jar: Jar, path: Path) -> bool:
    return sha256_of(path) == jar.sha256


def _download(kafka: str, jars: list[Jar], directory: Path, progress: Progress) -> None:
    if not jars:
        return
    directory.mkdir(parents=True, exist_ok=True)
    repository = repository_url()
    with (
        progress.transfer(f"downloading Kafka {kafka}", sum(jar.size for jar in jars)) as advance,
        requests.Session() as session,
    ):
        session.mount("https://", requests.adapters.HTTPAdapter(pool_maxsize=PARALLEL))
        with ThreadPoolExecutor(PARALLEL) as pool:
            fetched = [
                pool.submit(_fetch, session, repository, jar, directory / jar.file_name, advance) for jar in jars
            ]
            try:
                for future in fetched:
                    future.result()
            except BaseException:  # also Ctrl-C: do not sit through the rest of the queue
                pool.shutdown(cancel_futures=True)
                raise


def _fetch(session: requests.Session, repository: str, jar: Jar, path: Path, advance: Advance) -> None:
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(multiplier=0.5, max=10),
        retry=tenacity.retry_if_exception(_passes),
        reraise=True,
    )
    try:
        retrying(_fetch_once, session, f"{repository}/{jar.repository_path}", jar, path, advance)
    except requests.RequestException as error:
        raise EnvironmentError_(
            f"cannot download {jar.file_name} from {without_credentials(repository)} ({_reason(error)}): "
            f"check the network, or set {REPOSITORY_VARIABLE} to a Maven repository that can be reached"
        ) from error
    except OSError as error:
        raise EnvironmentError_(f"cannot keep {jar.file_name} in {path.parent}: {error.strerror}") from error


def _fetch_once(session: requests.Session, url: str, jar: Jar, path: Path, advance: Advance) -> None:
    digest = hashlib.sha256()
    done = 0
    with atomically(path) as temporary:
        try:
            with session.get(url, stream=True, timeout=TIMEOUT_S) as answer, temporary.open("wb") as file:
                answer.raise_for_status()
                for chunk in answer.iter_content(CHUNK_BYTES):
                    file.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    advance(len(chunk))
        except BaseException:
            advance(-done)  # the bar must not count these bytes twice
            raise
        if digest.hexdigest() != jar.sha256:
            raise HashMismatch(
                jar, "as downloaded", _mark(digest.hexdigest()), f"set {REPOSITORY_VARIABLE} to a faithful mirror"
            )
        os.utime(temporary, (JAR_TIME_S, JAR_TIME_S))


def _passes(error: BaseException) -> bool:
    """Whether a failed request may succeed if it is made again."""
    if isinstance(error, requests.HTTPError):
        return error.response.status_code >= 500 or error.response.status_code == 429
    passing = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, passing)


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.HTTPError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _mark(sha256: str) -> str:
    return f"sha256 {sha256[:12]}"
