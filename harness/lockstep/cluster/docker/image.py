"""Which image the nodes run on: the official one where it can be had, else one built here from the locked jars."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import IO

from docker import DockerClient as Sdk
from docker.errors import BuildError, ImageNotFound

from lockstep.cluster.distribution import Distribution, Lock, distribution_directory, read_lock
from lockstep.cluster.distribution.jars import ensure_jars
from lockstep.cluster.docker.base import BASE_VARIABLE, find_base, make_base
from lockstep.cluster.docker.engine import ENGINE_ERRORS, connect, engine_errors
from lockstep.errors import EnvironmentError_
from lockstep.host.cache import cache_dir, exclusive
from lockstep.progress import Progress

OFFICIAL = "apache/kafka"
BUILT = "lockstep/kafka"
LIBS = "/opt/kafka/libs"
"""Where both images keep their jars."""

JARS_LABEL = "lockstep.jars"
REGISTRY_TIMEOUT_S = 8
BUILD_TIMEOUT_S = 600


def prepare_image(version: str, kafka: Distribution, progress: Progress) -> str:
    """The image to run a Kafka version on, pulled or built if none is here; offline once one is."""
    official, built = f"{OFFICIAL}:{version}", f"{BUILT}:{version}"
    lock = read_lock(version)
    with closing(connect(BUILD_TIMEOUT_S).client) as client:
        if _labels(client, official) is not None:
            return official
        with exclusive(cache_dir() / f"image-{version}"):  # several may want it at the same moment
            if _is_built(client, built, lock):
                return built
            if _pulled(client, official, progress):
                return official
            _build(client, built, lock, kafka.jars, _base(client, progress), progress)
            return built


def build_image(version: str, progress: Progress, base: str | None = None) -> str:
    """Build `lockstep/kafka:<version>` on `base`, else on LOCKSTEP_BASE_IMAGE, a local image with a Java, or Debian."""
    lock = read_lock(version)
    with closing(connect(BUILD_TIMEOUT_S).client) as client:
        jars = ensure_jars(lock, distribution_directory(version) / "jars", progress)
        _build(client, f"{BUILT}:{version}", lock, jars, base or _base(client, progress), progress)
    return f"{BUILT}:{version}"


def _base(client: Sdk, progress: Progress) -> str:
    return os.environ.get(BASE_VARIABLE) or find_base(client) or make_base(client, progress)


def _build(client: Sdk, name: str, lock: Lock, jars: Iterable[Path], base: str, progress: Progress) -> None:
    with progress.action(f"building {name} on {base}"), tempfile.TemporaryFile() as context:
        _write_context(context, jars)
        with engine_errors(f"building {name}"):
            try:
                client.images.build(
                    fileobj=context,
                    custom_context=True,
                    tag=name,
                    buildargs={"BASE": base},
                    labels={JARS_LABEL: _digest(lock)},
                    rm=True,
                    forcerm=True,
                )
            except (BuildError, ImageNotFound) as error:
                raise EnvironmentError_(
                    f"{name} could not be built on {base} ({error}): choose a base with a Java 17 or newer with "
                    f"lockstep image build --base IMAGE or {BASE_VARIABLE}"
                ) from error


def _pulled(client: Sdk, official: str, progress: Progress) -> bool:
    """Pull the official image if a registry has it; without a network that is known quickly."""
    try:
        with closing(connect(REGISTRY_TIMEOUT_S).client) as impatient:
            impatient.images.get_registry_data(official)
        with progress.action(f"pulling {official}"):
            client.images.pull(official)
    except ENGINE_ERRORS:
        progress.say(f"{official} cannot be pulled here, so an image is built from the locked jars")
        return False
    return True


def _is_built(client: Sdk, built: str, lock: Lock) -> bool:
    labels = _labels(client, built)
    return labels is not None and labels.get(JARS_LABEL) == _digest(lock)


def _labels(client: Sdk, image: str) -> dict[str, str] | None:
    """The labels of a local image; None when it is not here."""
    with engine_errors(f"looking for {image}"):
        try:
            return client.images.get(image).labels
        except ImageNotFound:
            return None


def _digest(lock: Lock) -> str:
    """Changes with the jars and with the Dockerfile, so that an image of yesterday's is not taken for today's."""
    digest = hashlib.sha256(_dockerfile().read_bytes())
    for jar in lock.jars:
        digest.update(jar.sha256.encode())
    return digest.hexdigest()


def _write_context(context: IO[bytes], jars: Iterable[Path]) -> None:
    with tarfile.open(fileobj=context, mode="w") as tar:
        tar.add(_dockerfile(), "Dockerfile")
        for jar in jars:
            tar.add(jar, f"libs/{jar.name}")
    context.seek(0)


def _dockerfile() -> Path:
    """Beside the package in a checkout, inside it in an installed wheel."""
    shipped = Path(__file__).parents[1] / "compose" / "Dockerfile"
    return shipped if shipped.exists() else Path(__file__).parents[4] / "compose" / "Dockerfile"
