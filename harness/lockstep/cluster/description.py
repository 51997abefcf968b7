"""`cluster.json`: all that another process needs to look at a running cluster. It names secrets, and holds none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from lockstep.clients.access import Access
from lockstep.clients.properties import read_client_properties
from lockstep.cluster.cluster import Cluster
from lockstep.errors import UsageError
from lockstep.host.disk import replace_file
from lockstep.network.links import Links
from lockstep.network.topology import Address
from lockstep.spec.cluster import ClusterSpec, Listener, NodeRole

CLUSTER = "cluster.json"


class DescribedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, and where it is asked past all links."""

    name: str
    id: int
    role: NodeRole
    kafka: str
    rack: str | None
    host: str
    port: int

    @property
    def direct(self) -> Address:
        return Address(host=self.host, port=self.port)


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that runs, or ran, in a directory."""

    backend: str
    spec: ClusterSpec
    bootstrap: str
    bootstrap_b: str
    client_config: str | None
    """A file of client properties, where the cluster authenticates clients; private, and gone with the cluster."""
    nodes: tuple[DescribedNode, ...]
    links: list[dict[str, Any]]

    @property
    def access(self) -> Access:
        if self.client_config is None:
            return Access(bootstrap=self.bootstrap)
        return read_client_properties(Path(self.client_config), self.bootstrap)

    def attached_links(self) -> Links:
        return Links.attached(self.links)


def describe(cluster: Cluster) -> Description:
    """Write down what runs now; after an upgrade or a migration, again."""
    description = Description(
        backend=cluster.backend,
        spec=cluster.spec,
        bootstrap=cluster.bootstrap(),
        bootstrap_b=cluster.bootstrap(Listener.CLIENT_B),
        client_config=str(cluster.secrets.client_properties()) if cluster.secrets.directory.exists() else None,
        nodes=tuple(
            DescribedNode(
                name=node.name,
                id=node.spec.id,
                role=node.spec.role,
                kafka=node.spec.kafka,
                rack=node.spec.rack,
                host=node.direct.host,
                port=node.direct.port,
            )
            for node in cluster.nodes.values()
        ),
        links=cluster.links.described(),
    )
    replace_file(cluster.directory / CLUSTER, msgspec.json.encode(description))
    return description


def read_description(directory: Path) -> Description:
    path = directory / CLUSTER
    try:
        return msgspec.json.decode(path.read_bytes(), type=Description)
    except FileNotFoundError:
        raise UsageError(f"{directory} has no {CLUSTER}: its cluster never came up") from None
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
