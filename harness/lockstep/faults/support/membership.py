"""Whether other nodes see a node gone or back: the proof of faults that take one out of service, and of their end."""

from __future__ import annotations

import socket
import time

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.features import ask_features, features
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.faults.fault import Proof
from lockstep.faults.support.roles import controller_id
from lockstep.network.topology import Address
from lockstep.spec.cluster import NodeRole
from lockstep.wait import wait_until

MISSED_S = 60.0
BACK_S = 90.0
ASK_S = 2.0


def missed(cluster: Cluster, node: Node, timeout_s: float = MISSED_S) -> Proof:
    """Wait until a broker is missing from the others' metadata, or a controller or ZooKeeper server does not answer."""
    began_ns = time.monotonic_ns()
    if node.spec.is_broker:
        others = wait_until(
            lambda: _without(cluster, node.spec.id),
            timeout_s=timeout_s,
            what=f"the others to miss {node.name}",
            interval_s=0.1,
        )
        proof: Proof = {"missed_by": others}
    elif node.spec.is_voter:
        wait_until(
            lambda: not answers(cluster, node) and controller_id(cluster) != node.spec.id,
            timeout_s=timeout_s,
            what=f"{node.name} not to answer and not to be the active controller",
            interval_s=0.1,
        )
        proof = {"answers": False, "active_controller": controller_id(cluster)}
    else:
        wait_until(lambda: not _zookeeper_answers(node.direct), timeout_s=timeout_s, what=f"{node.name} not to answer")
        proof = {"answers": False}
    return proof | {"missed_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000}


def returned(cluster: Cluster, node: Node) -> Proof:
    """Wait until a node is in service again in all its roles."""
    began_ns = time.monotonic_ns()
    proof: Proof = {"identity": node.identity}
    if node.spec.is_broker:
        cluster.wait_serving(node.spec.id, BACK_S)
        proof["in_isr_of"] = wait_until(
            lambda: _in_isr_of(cluster, node.spec.id),
            timeout_s=BACK_S,
            what=f"{node.name} to be back in the ISR of what it replicates",
            interval_s=0.25,
        )
    elif node.spec.role is NodeRole.ZOOKEEPER:
        wait_until(lambda: _zookeeper_answers(node.direct), timeout_s=BACK_S, what=f"{node.name} to answer")
        proof["answers"] = True
    if node.spec.is_voter:
        wait_until(
            lambda: ask_features(node.direct, cluster.access_to(node)).finalized,
            timeout_s=BACK_S,
            what=f"{node.name} to answer",
            retry_on=(OSError,),
        )
        proof["active_controller"] = wait_until(
            lambda: controller_id(cluster), timeout_s=BACK_S, what="an active controller"
        )
    return proof | {"back_after_ms": (time.monotonic_ns() - began_ns) // 1_000_000}


def answers(cluster: Cluster, node: Node, timeout_s: float = ASK_S) -> bool:
    """Whether a node itself answers, asked past all links."""
    if node.spec.role is NodeRole.ZOOKEEPER:
        return _zookeeper_answers(node.direct)
    try:
        with Connection(node.direct, cluster.access_to(node), timeout_s) as connection:
            features(connection)
    except OSError:
        return False
    return True


def _without(cluster: Cluster, broker: int) -> list[int]:
    """The brokers that answer, once none of them lists this one as registered and unfenced."""
    views = {id_: view for id_, view in cluster.ask_all().items() if id_ != broker}
    return [] if any(broker in view.brokers for view in views.values()) else sorted(views)


def _in_isr_of(cluster: Cluster, broker: int) -> list[str]:
    """The partitions it replicates, once every broker that runs sees it in the ISR of all of them."""
    views = cluster.ask_all(None)
    mine = [p for view in views.values() for p in view.partitions if broker in p.replicas]
    if broker not in views or any(broker not in p.isr for p in mine):
        return []
    return sorted({f"{p.topic}-{p.partition}" for p in mine}) or ["nothing"]


def _zookeeper_answers(address: Address) -> bool:
    """Whether a server serves: one that has lost its ensemble answers `ruok`, but not `srvr`."""
    try:
        with socket.create_connection((address.host, address.port), ASK_S) as connection:
            connection.settimeout(ASK_S)
            connection.sendall(b"srvr")
            return connection.recv(4096).startswith(b"Zookeeper version")
    except OSError:
        return False
