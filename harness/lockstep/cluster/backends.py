"""Which backend runs a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import partial
from pathlib import Path

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.distribution import Distribution, Program, distribution
from lockstep.cluster.docker import DockerCluster, prepare_image, require_engine
from lockstep.cluster.process import ProcessCluster
from lockstep.errors import UsageError
from lockstep.host.java import Java
from lockstep.network.server_binary import toxiproxy_server
from lockstep.progress import Progress
from lockstep.recovery.ledger import Ledger
from lockstep.spec.cluster import ClusterSpec, Mode, NodeRole


class Backend(StrEnum):
    """How nodes run: as processes, in containers, or outside of Lockstep."""

    PROCESS = "process"
    DOCKER = "docker"
    EXTERNAL = "external"  # the user runs them, without Lockstep


OpenCluster = Callable[[Path, Ledger], Cluster]


def prepare(
    spec: ClusterSpec, backend: Backend, java: Java, progress: Progress, *, also: Collection[str] = ()
) -> OpenCluster:
    """Fetch and build all that a cluster needs, so that what is missing is said before anything is started.

    `also` are versions that nodes will be upgraded to. The result opens the cluster in a directory, with a ledger; it
    is not started yet, and is a context manager.
    """
    if backend is Backend.EXTERNAL:
        raise UsageError("an external cluster is there already: nothing of it can be started")
    if backend is Backend.DOCKER:
        require_engine()
        if spec.kafka_dir is not None:
            raise UsageError("a local Kafka build runs on the process backend only: images are made of locked jars")
    kafkas = distributions(spec, java, progress, also=also)
    toxiproxy = toxiproxy_server(progress)
    if backend is Backend.DOCKER:
        images = {version: prepare_image(version, kafka, progress) for version, kafka in kafkas.items()}
        return partial(DockerCluster, spec, distributions=kafkas, toxiproxy=toxiproxy, images=images)
    return partial(ProcessCluster, spec, distributions=kafkas, toxiproxy=toxiproxy)


def distributions(
    spec: ClusterSpec, java: Java, progress: Progress, *, also: Collection[str] = ()
) -> dict[str, Distribution]:
    """Every Kafka that the nodes of a cluster run, by version, ready to be started."""
    programs = _programs(spec)
    local = Path(spec.kafka_dir) if spec.kafka_dir else None
    kafkas = {
        version: distribution(
            version, java, progress, programs=programs, kafka_dir=local if version == spec.kafka else None
        )
        for version in sorted({*spec.versions, *also})
    }
    if Program.KRAFT in programs:
        kafkas[spec.oldest].learn(spec.features)  # refuses levels that this version does not know
    return kafkas


def _programs(spec: ClusterSpec) -> tuple[Program, ...]:
    if spec.mode is not Mode.ZK:
        return (Program.KRAFT,)
    migrates = any(node.role is NodeRole.CONTROLLER for node in spec.nodes)
    return (Program.ZOOKEEPER, Program.ZK_BROKER, *((Program.KRAFT,) if migrates else ()))
