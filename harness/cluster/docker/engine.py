"""The Docker engine: finding it, and saying in one sentence what is wrong when it cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from docker.errors import DockerException
from requests.exceptions import RequestException
from testcontainers.core.docker_client import DockerClient

from harness.errors import ClusterError, EnvironmentError_

TIMEOUT_S = 60
ENGINE_ERRORS = (DockerException, RequestException)


def connect(timeout_s: int = TIMEOUT_S) -> DockerClient:
    """A client of the engine that DOCKER_HOST, the Docker context or the default socket names, once it has answered.

    It is testcontainers' client, which knows all the places an engine can be; close its `.client` after use.
    """
    try:
        return DockerClient(timeout=timeout_s)  # asks the engine for its version
    except ENGINE_ERRORS as error:
        reason = _innermost(error)
        fix = "start it (make docker-engine) or set DOCKER_HOST"
        if isinstance(reason, PermissionError):
            fix = "let your user into the docker group, or run as root"
        raise EnvironmentError_(f"no Docker engine can be used ({_words(reason)}): {fix}") from error


def engine_available() -> tuple[bool, str]:
    """Whether an engine answers, and which one or why not."""
    try:
        engine = connect(timeout_s=5)
    except EnvironmentError_ as error:
        return False, str(error)
    with closing(engine.client) as client, engine_errors("the version"):
        return True, f"Docker engine {client.version()['Version']}"


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """What the engine refuses inside this block is a `ClusterError` that tells what was being done."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise ClusterError(f"the Docker engine failed at {what}: {_words(error)}") from error


def _innermost(error: BaseException) -> BaseException:
    """The operating system's own words are at the bottom of what urllib3, requests and docker wrapped around them."""
    seen = [error]
    while (inner := seen[-1].__cause__ or seen[-1].__context__) is not None and inner not in seen:
        seen.append(inner)
    return next((one for one in reversed(seen) if isinstance(one, OSError) and one.strerror), error)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(getattr(error, "explanation", None) or error).strip().rstrip(".")
