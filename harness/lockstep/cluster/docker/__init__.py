"""The `docker` backend: the same `ClusterSpec` in containers, with one Toxiproxy sidecar per node."""

from lockstep.cluster.docker.cluster import DockerCluster
from lockstep.cluster.docker.engine import engine_available, require_engine
from lockstep.cluster.docker.image import build_image, prepare_image
from lockstep.cluster.docker.node import look_at
from lockstep.cluster.docker.resources import heal_container, heal_network

__all__ = [
    "DockerCluster",
    "build_image",
    "engine_available",
    "heal_container",
    "heal_network",
    "look_at",
    "prepare_image",
    "require_engine",
]
