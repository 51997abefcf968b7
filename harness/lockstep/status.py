"""A cluster as it is now, seen by a process that did not start it: kept by `lockstep up`, or in a run going on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lockstep.clients.wire.metadata import ClusterView, ask_metadata
from lockstep.clients.wire.quorum import active_controller
from lockstep.cluster.description import DescribedNode, Description, read_description
from lockstep.cluster.node import NodeState
from lockstep.network.conditions import Open
from lockstep.recovery import os_process
from lockstep.recovery.ledger import LEDGER, Entry, read_ledger
from lockstep.spec.cluster import Mode, NodeRole

ASK_S = 2.0


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a node by the operating system or the container engine."""

    name: str
    role: NodeRole
    kafka: str
    rack: str | None
    state: NodeState
    identity: str
    memory_mb: int | None
    address: str


class PartitionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, as its leader sees it, or else the broker with the newest leader epoch."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class LinkStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One link: in which condition it is, and what it has carried."""

    source: str
    destination: str
    listener: str
    condition: str
    to_destination_bytes: int
    to_source_bytes: int


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    directory: str
    backend: str
    kafka: str
    mode: Mode
    bootstrap: str
    nodes: tuple[NodeStatus, ...]
    controller: int | None
    """The active controller: of the quorum, or the broker that ZooKeeper names."""
    partitions: tuple[PartitionStatus, ...]
    links: int
    links_broken: tuple[LinkStatus, ...]
    """Those that are not as they should be; `lockstep links` shows all."""
    faults: tuple[str, ...]
    """What was broken on purpose and is not healed yet."""


def status(directory: Path) -> Status:
    """Look at the cluster of a directory."""
    description = read_description(directory)
    entries = read_ledger(directory / LEDGER)
    nodes = tuple(_node(node, entries) for node in description.nodes)
    running = {node.name for node in nodes if node.state is NodeState.RUNNING}
    views = _views([node for node in description.nodes if node.name in running], description)
    links = link_statuses(description) if any(node.state is not NodeState.STOPPED for node in nodes) else ()
    return Status(
        directory=str(directory),
        backend=description.backend,
        kafka=description.spec.kafka,
        mode=description.spec.mode,
        bootstrap=description.bootstrap,
        nodes=nodes,
        controller=_controller(description, views),
        partitions=_partitions(views),
        links=len(links),
        links_broken=tuple(link for link in links if link.condition != str(Open())),
        faults=tuple(_fault(entry) for entry in entries if entry.kind == "fault" and entry.open),
    )


def link_statuses(description: Description) -> tuple[LinkStatus, ...]:
    """Every link, as the proxy servers tell it."""
    links = description.attached_links()
    conditions, traffic = links.conditions(), links.traffic()
    return tuple(
        LinkStatus(
            source=link.source,
            destination=link.destination,
            listener=link.listener,
            condition=str(condition),
            to_destination_bytes=traffic[link].to_destination,
            to_source_bytes=traffic[link].to_source,
        )
        for link, condition in conditions.items()
    )


def _node(node: DescribedNode, entries: list[Entry]) -> NodeStatus:
    newest = next((entry for entry in reversed(entries) if entry.fields.get("name") == node.name), None)
    state, identity, memory_mb = (NodeState.STOPPED, "never started", None) if newest is None else _seen(newest)
    return NodeStatus(
        name=node.name,
        role=node.role,
        kafka=node.kafka,
        rack=node.rack,
        state=state,
        identity=identity,
        memory_mb=memory_mb,
        address=str(node.direct),
    )


def _seen(entry: Entry) -> tuple[NodeState, str, int | None]:
    if entry.kind != os_process.KIND:
        from lockstep.cluster.docker import look_at

        return look_at(entry.fields.get("id", ""))
    process = next(iter(os_process.processes_of(entry)), None) if entry.open else None
    if process is None:
        return NodeState.STOPPED, f"pid {entry.fields.get('pid', 'unknown')}", None
    state = NodeState.PAUSED if process.paused() else NodeState.RUNNING
    return state, process.identity, process.memory_mb()


def _views(nodes: list[DescribedNode], description: Description) -> dict[DescribedNode, ClusterView]:
    views = {}
    for node in nodes:
        if node.role in (NodeRole.BROKER, NodeRole.COMBINED):
            try:
                views[node] = ask_metadata(node.direct, None, access=description.access, timeout_s=ASK_S)
            except OSError:
                continue
    return views


def _controller(description: Description, views: dict[DescribedNode, ClusterView]) -> int | None:
    for node, view in views.items():
        if description.spec.mode is Mode.ZK:
            return view.controller if view.controller >= 0 else None
        try:
            return active_controller(node.direct, description.access)
        except OSError:
            continue
    return None


def _partitions(views: dict[DescribedNode, ClusterView]) -> tuple[PartitionStatus, ...]:
    newest: dict[tuple[str, int], PartitionStatus] = {}
    for node, view in views.items():
        for p in view.partitions:
            known = newest.get((p.topic, p.partition))
            own = p.leader == node.id  # an ISR can change within an epoch, and the leader is the first to know
            if known is None or (p.leader_epoch, own) > (known.leader_epoch, False):
                newest[p.topic, p.partition] = PartitionStatus(
                    topic=p.topic,
                    partition=p.partition,
                    leader=p.leader,
                    leader_epoch=p.leader_epoch,
                    replicas=p.replicas,
                    isr=p.isr,
                )
    return tuple(newest[key] for key in sorted(newest))


def _fault(entry: Entry) -> str:
    return f"{entry.fields['fault']} of {entry.fields['target_resolved']} ({entry.fields['target_asked']})"
