"""The `docker` backend: every node in a container, every link through the sidecar of its source."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from docker.models.containers import Container
from docker.models.networks import Network

from lockstep.cluster.cluster import DATA, HOSTS, PROPERTIES, Cluster, Place
from lockstep.cluster.config import NodeAddresses
from lockstep.cluster.distribution import Distribution
from lockstep.cluster.distribution.command import java_command
from lockstep.cluster.docker.engine import connect
from lockstep.cluster.docker.image import LIBS
from lockstep.cluster.docker.node import DockerNode
from lockstep.cluster.docker.resources import Resources
from lockstep.cluster.docker.sidecar import (
    ANYWHERE,
    BINARY,
    CLIENT_LINK_PORTS,
    COMMAND,
    LISTENER_PORTS,
    LOG,
    Sidecar,
    publications,
    start_sidecar,
)
from lockstep.network.links import Links, Route
from lockstep.network.topology import Address, Link, links_of
from lockstep.recovery.ledger import Ledger
from lockstep.spec.cluster import CLIENT_LISTENERS, ClusterSpec, NodeSpec

INSIDE = Path("/lockstep")
"""Where a node's directory is in its containers."""
SECRETS = Path("/lockstep-secrets")


class DockerCluster(Cluster):
    """A cluster of containers on one Docker engine, which must be on this machine: it shares directories with us."""

    backend = "docker"

    def __init__(
        self,
        spec: ClusterSpec,
        directory: Path,
        ledger: Ledger,
        *,
        distributions: Mapping[str, Distribution],
        toxiproxy: Path,
        images: Mapping[str, str],
    ) -> None:
        super().__init__(spec, directory, ledger, distributions=distributions, toxiproxy=toxiproxy)
        self._images = images
        self._sidecars: dict[str, Sidecar] = {}
        self._resources: Resources | None = None

    def _provision(self) -> None:
        resources = self._resources = Resources(connect(), self.ledger, self.directory.name)
        network = resources.network("network")
        for node in self.spec.nodes:
            (self._directory_of(node) / DATA).mkdir(parents=True)
        with ThreadPoolExecutor(len(self.spec.nodes)) as pool:
            starting = [pool.submit(self._sidecar, node, resources, network) for node in self.spec.nodes]
            for node, future in zip(self.spec.nodes, starting, strict=True):
                self._sidecars[node.name] = future.result()
        self.links = Links(_route(link, self._sidecars) for link in links_of(self.spec))
        self.links.open()

    def _release(self) -> None:
        if self._resources is not None:
            self._resources.remove_all()
            self._resources.close()
            self._resources = None

    def _sidecar(self, node: NodeSpec, resources: Resources, network: Network) -> Sidecar:
        directory = self._directory_of(node)
        container = self._container(
            resources,
            f"{node.name}-links",
            self._images[node.kafka],
            COMMAND,
            output=LOG,
            mounts={str(directory): (str(INSIDE), "rw"), str(self.toxiproxy.absolute()): (BINARY, "ro")},
            hostname=node.name,
            network=network.name,
            ports=publications(node),
        )
        return start_sidecar(node, container, network, directory / LOG)

    def _place(self, node: NodeSpec) -> Place:
        sidecar = self._sidecars[node.name]
        addresses = NodeAddresses(
            bind={listener: sidecar.bind(listener) for listener in node.listeners},
            clients={
                listener: sidecar.published[port]
                for listener, port in CLIENT_LINK_PORTS.items()
                if listener in node.listeners
            },
            ports=LISTENER_PORTS,
        )
        names = {peer.name: sidecar.meaning_of(peer) for peer in self.spec.nodes}
        return Place(addresses=addresses, names=names, inside=INSIDE)

    @property
    def _secrets_inside(self) -> Path:
        return SECRETS

    def _make(self, node: NodeSpec) -> DockerNode:
        assert self._resources is not None
        if (before := self.nodes.get(node.name)) is not None:
            assert isinstance(before, DockerNode)
            self._resources.remove(before.container)
        directory = self._directory_of(node)
        sidecar = self._sidecars[node.name]
        kafka, program = self.distributions[node.kafka], self._program(node)
        shutil.copyfile(kafka.logging.file, directory / kafka.logging.file.name)
        command = java_command(
            dataclasses.replace(kafka.java, executable=Path("java")),  # the image's own
            f"{LIBS}/*",
            str(INSIDE / PROPERTIES),
            main=program.main,
            log_directory=INSIDE,
            heap_min_mb=program.heap_min_mb,
            heap_max_mb=program.heap_max_mb,
            system_properties={
                "jdk.net.hosts.file": str(INSIDE / HOSTS),
                **kafka.logging.properties(INSIDE / kafka.logging.file.name),
            },
        )
        mounts = {str(directory): (str(INSIDE), "rw")}
        if self.secrets.directory.exists():
            mounts[str(self.secrets.directory)] = (str(SECRETS), "ro")
        container = self._container(
            self._resources,
            node.name,
            self._images[node.kafka],
            command,
            output="stdout.log",
            mounts=mounts,
            network_mode=f"container:{sidecar.container.id}",
        )
        return DockerNode(
            spec=node,
            directory=directory,
            direct=sidecar.direct,
            container=container,
            may_start=partial(self._may_start, node),
        )

    def _container(
        self,
        resources: Resources,
        name: str,
        image: str,
        command: list[str],
        *,
        output: str,
        mounts: Mapping[str, tuple[str, str]],
        **options: Any,
    ) -> Container:
        # The shell only sends the output to where it can be read while it is written, also after we are gone.
        redirect = f'exec "$0" "$@" >>{INSIDE / output} 2>&1'
        return resources.container(
            name,
            image,
            command,
            entrypoint=["/bin/sh", "-c", redirect],
            user=resources.user,
            volumes={here: {"bind": there, "mode": mode} for here, (there, mode) in mounts.items()},
            **options,
        )


def _route(link: Link, sidecars: Mapping[str, Sidecar]) -> Route:
    destination = sidecars[link.destination]
    upstream = destination.bind(link.listener)
    if link.listener in CLIENT_LISTENERS:
        port = CLIENT_LINK_PORTS[link.listener]
        return Route(
            link=link,
            server=destination.server,
            listen=Address(host=ANYWHERE, port=port),
            upstream=upstream,
            published=destination.published[port],
        )
    source = sidecars[link.source]
    listen = Address(host=source.meaning_of(destination.node), port=upstream.port)
    return Route(link=link, server=source.server, listen=listen, upstream=upstream)
