"""The Docker engine: finding it, and saying in one sentence what is wrong when it cannot be used."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from docker.errors import DockerException
from requests.exceptions import RequestException
from testcontainers.core.docker_client import DockerClient, get_docker_host

from lockstep.errors import ClusterError, EnvironmentError_

TIMEOUT_S = 60
ENGINE_ERRORS = (DockerException, RequestException)
DEFAULT_HOST = "unix:///var/run/docker.sock"


def connect(timeout_s: int = TIMEOUT_S) -> DockerClient:
    """A client of the engine that DOCKER_HOST, the Docker context or the default socket names, once it has answered.

    It is testcontainers' client, which knows all the places an engine can be; close its `.client` after use.
    """
    host = get_docker_host() or DEFAULT_HOST
    try:
        _require_socket(host)
        return DockerClient(timeout=timeout_s)  # asks the engine for its version
    except (OSError, *ENGINE_ERRORS) as error:
        fix = "start it (make docker-engine) or set DOCKER_HOST"
        if isinstance(error, PermissionError):
            fix = "let your user into the docker group, or run as root"
        raise EnvironmentError_(f"no Docker engine answers at {host} ({_words(error)}): {fix}") from error


def require_engine() -> None:
    """Raise the sentence with the fix when no engine answers."""
    connect(timeout_s=5).client.close()


def engine_available() -> tuple[bool, str]:
    """Whether an engine answers, and which one or why not."""
    try:
        engine = connect(timeout_s=5)
    except EnvironmentError_ as error:
        return False, str(error)
    with closing(engine.client) as client, engine_errors("telling its version"):
        return True, f"Docker engine {client.version()['Version']}"


@contextmanager
def engine_errors(what: str) -> Iterator[None]:
    """What the engine refuses inside this block is a `ClusterError` that tells what was being done."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise ClusterError(f"the Docker engine failed at {what}: {_words(error)}") from error


def _require_socket(host: str) -> None:
    """Raise the operating system's own words, which the SDK buries; it also forgets to close what it could not open."""
    scheme, _, path = host.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)


def _words(error: BaseException) -> str:
    words = getattr(error, "explanation", None) or getattr(error, "strerror", None) or error
    return str(words).strip().rstrip(".")
