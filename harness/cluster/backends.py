"""Which backend runs a cluster."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path

from harness.cluster.cluster import Cluster
from harness.cluster.distribution import distribution
from harness.cluster.docker import DockerCluster, prepare_image, require_engine
from harness.cluster.process import ProcessCluster
from harness.cluster.spec import ClusterSpec
from harness.java import Java
from harness.ledger import Ledger
from harness.network.server_binary import toxiproxy_server
from harness.progress import Progress


class Backend(StrEnum):
    """What runs the nodes."""

    PROCESS = "process"
    DOCKER = "docker"


OpenCluster = Callable[[Path, Ledger], Cluster]


def prepare(spec: ClusterSpec, backend: Backend, java: Java, progress: Progress) -> OpenCluster:
    """Fetch and build all that a cluster needs, so that what is missing is said before anything is started.

    The result opens the cluster in a directory, with a ledger; it is not started yet, and is a context manager.
    """
    if backend is Backend.DOCKER:
        require_engine()
    kafka = distribution(spec.kafka, java, progress)
    toxiproxy = toxiproxy_server(progress)
    if backend is Backend.DOCKER:
        image = prepare_image(spec.kafka, kafka, progress)
        return partial(DockerCluster, spec, distribution=kafka, toxiproxy=toxiproxy, image=image)
    return partial(ProcessCluster, spec, distribution=kafka, toxiproxy=toxiproxy)
