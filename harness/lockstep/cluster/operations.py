"""Operations on a cluster that keeps serving: a rolling upgrade, and the migration from ZooKeeper to KRaft.

Each is a sequence of phases, told as they are *observed* from outside, never as we think we have brought them about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from lockstep.clients.wire.features import METADATA_VERSION, Features, ask_features, raise_feature
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.config import Stage
from lockstep.cluster.node import Node
from lockstep.errors import ClusterError, UsageError
from lockstep.plan.plan import Operation
from lockstep.spec.cluster import ClusterSpec, Mode, NodeRole, release
from lockstep.wait import wait_until

PHASE_S = 120.0
HIGHEST_BEFORE_4 = (3, 9)
STATE = re.compile(r"changing the migration state from \w+ to (\w+)")
DUAL_WRITE = re.compile(r"transitioning from \w+ to (DUAL_WRITE) state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Something that was seen to be so, and what showed it."""

    name: str
    seen: dict[str, Any]


def carry_out(cluster: Cluster, operation: Operation, to: str) -> Iterator[Phase]:
    """One operation by its name in a plan."""
    require(cluster.spec, operation, to)
    yield from upgrade(cluster, to) if operation is Operation.UPGRADE else migrate(cluster)


def require(spec: ClusterSpec, operation: Operation, to: str) -> ClusterSpec:
    """Refuse what cannot be done to a cluster of this spec; nothing is touched. Returns what it would be afterwards."""
    if operation is Operation.UPGRADE:
        if spec.mode is Mode.ZK and release(to) >= (4,):
            raise UsageError(f"Kafka {to} has no ZooKeeper mode: migrate this cluster to KRaft first")
        newest = max(spec.versions, key=release)
        if release(to) <= release(newest):
            raise UsageError(f"{to} is not newer than {newest}, which this cluster runs")
        return _upgraded(spec, to)
    if spec.mode is not Mode.ZK or not any(node.role is NodeRole.CONTROLLER for node in spec.nodes):
        raise UsageError("only a ZooKeeper cluster with controllers to migrate to can be migrated: --controllers 1")
    if release(spec.kafka)[:2] != HIGHEST_BEFORE_4:
        raise UsageError(f"the migration is that of Kafka 3.9: upgrade from {spec.kafka} first")
    return _migrated(spec)


def upgrade(cluster: Cluster, to: str) -> Iterator[Phase]:
    """Upgrade every broker and controller to another Kafka version, one at a time, then let them use it.

    Controllers go first: an old broker understands a new controller's records up to the finalized version. In the end
    KRaft clusters finalize the metadata version, other features stay as they are; ZooKeeper clusters are restarted once
    more with the new protocol between brokers. ZooKeeper servers stay what they are.
    """
    names = [node.name for node in cluster.spec.nodes if node.role is not NodeRole.ZOOKEEPER]
    for name in names:
        before = _features(cluster, cluster.nodes[name])
        cluster.restart(name, kafka=to)
        yield _runs(cluster, name, to, before)
    cluster.spec = _upgraded(cluster.spec, to)
    if cluster.spec.mode is not Mode.ZK:
        yield _finalized(cluster)
        return
    for name in names:
        cluster.restart(name)
    yield Phase(name="finalized", seen={"inter_broker_protocol_version": cluster.spec.oldest})


def migrate(cluster: Cluster) -> Iterator[Phase]:
    """Bring a ZooKeeper cluster to KRaft (KIP-866) while it serves; in the end ZooKeeper is stopped."""
    controllers = [node for node in cluster.spec.nodes if node.role is NodeRole.CONTROLLER]
    brokers = [cluster.broker(id_).name for id_ in cluster.broker_ids]
    yield _led_by_a_broker(cluster)

    with cluster.znodes() as session:
        cluster_id = session.get("/cluster/id")
    assert cluster_id is not None
    for node in controllers:
        cluster.format(node.name, cluster_id.json()["id"])
        cluster.nodes[node.name].start()
    yield _controllers_wait(cluster)

    for name in brokers:
        cluster.restart(name, stage=Stage.HYBRID)
    yield _dual_write(cluster)

    for name in brokers:
        cluster.restart(name, stage=Stage.KRAFT)
        yield _left_zookeeper(cluster, name)

    for node in controllers:
        cluster.restart(node.name, stage=Stage.KRAFT)
    yield _finalized_migration(cluster)

    zookeepers = [node for node in cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER]
    for zookeeper in zookeepers:
        zookeeper.stop()
        del cluster.nodes[zookeeper.name]
    cluster.spec = _migrated(cluster.spec)
    cluster.wait_all_in_sync()
    states = {node.name: node.state() for node in zookeepers}
    yield Phase(name="kraft", seen={"zookeeper": states, "in_sync": True})


def _upgraded(spec: ClusterSpec, to: str) -> ClusterSpec:
    zookeepers = {node.name: node.kafka for node in spec.nodes if node.role is NodeRole.ZOOKEEPER}
    return msgspec.structs.replace(spec, kafka=to, node_kafka=zookeepers)


def _migrated(spec: ClusterSpec) -> ClusterSpec:
    return spec.without_gone(mode=Mode.KRAFT, zookeepers=1)


def _runs(cluster: Cluster, name: str, to: str, before: Features) -> Phase:
    """A node that runs another version says so by the metadata it supports; ZooKeeper-mode brokers say nothing."""
    after = _features(cluster, cluster.nodes[name])
    was, now = before.supported.get(METADATA_VERSION), after.supported.get(METADATA_VERSION)
    if was is not None and now is not None and now <= was:
        raise ClusterError(f"{name} was started with Kafka {to}, and supports no newer metadata than before ({now})")
    seen = {"metadata_version_supported_before": was, "metadata_version_supported_after": now}
    return Phase(name=f"{name} runs {to}", seen=seen)


def _led_by_a_broker(cluster: Cluster) -> Phase:
    with cluster.znodes() as session:
        controller = wait_until(
            lambda: session.get("/controller"), timeout_s=PHASE_S, what="ZooKeeper to name a controller"
        )
    assert controller is not None
    return Phase(name="zookeeper", seen={"controller": controller.json()["brokerid"]})


def _controllers_wait(cluster: Cluster) -> Phase:
    """The quorum has a leader, which has told the others that a migration is to come, and waits for every broker."""
    leader = wait_until(
        lambda: _leader_in(cluster, "PRE_MIGRATION"), timeout_s=PHASE_S, what="the controllers to be ready to migrate"
    )
    with cluster.znodes() as session:
        controller = session.get("/controller")
    assert controller is not None
    return Phase(name="pre-migration", seen={"quorum_leader": leader, "controller": controller.json()["brokerid"]})


def _dual_write(cluster: Cluster) -> Phase:
    """A KRaft controller has taken ZooKeeper's controller node, copied the metadata, and writes to both from now on."""
    ids = {node.spec.id for node in _controllers(cluster)}

    def copied() -> dict[str, Any] | None:
        leader = _leader_in(cluster, "MIGRATION")
        if leader is None or not _told(cluster.nodes[f"{NodeRole.CONTROLLER}-{leader}"], DUAL_WRITE):
            return None
        with cluster.znodes() as session:
            controller, migration = session.get("/controller"), session.get("/migration")
        if controller is None or migration is None or controller.json()["brokerid"] not in ids:
            return None
        state = migration.json()
        return {"controller": controller.json()["brokerid"], **state} if state["kraft_metadata_offset"] >= 0 else None

    seen = wait_until(copied, timeout_s=PHASE_S, what="a KRaft controller to take over from ZooKeeper")
    assert seen is not None
    return Phase(name="dual-write", seen=seen)


def _left_zookeeper(cluster: Cluster, name: str) -> Phase:
    """A broker in KRaft mode no longer registers with ZooKeeper, while the others still do."""
    id_ = str(cluster.nodes[name].spec.id)

    def left() -> dict[str, Any] | None:
        with cluster.znodes() as session:
            registered, migration = session.children("/brokers/ids"), session.get("/migration")
        if id_ in registered or migration is None:
            return None
        return {"still_in_zookeeper": registered, "kraft_metadata_offset": migration.json()["kraft_metadata_offset"]}

    seen = wait_until(left, timeout_s=PHASE_S, what=f"{name} to leave ZooKeeper")
    assert seen is not None
    return Phase(name=f"{name} in KRaft", seen=seen)


def _finalized_migration(cluster: Cluster) -> Phase:
    """The quorum has written down that the migration is over: ZooKeeper is not needed, and no way leads back."""
    leader = wait_until(
        lambda: _leader_in(cluster, "POST_MIGRATION"), timeout_s=PHASE_S, what="the migration to be finalized"
    )
    return Phase(name="finalized", seen={"quorum_leader": leader})


def _leader_in(cluster: Cluster, state: str) -> int | None:
    """The leader of the quorum, once the metadata that it has replayed says that the migration is in this state."""
    quorum = cluster.quorum()
    if quorum is None:
        return None
    states = _told(cluster.nodes[f"{NodeRole.CONTROLLER}-{quorum.leader}"], STATE)
    return quorum.leader if states and states[-1] == state else None


def _told(node: Node, pattern: re.Pattern[str]) -> list[str]:
    """A match in a node's server log; apart from the metadata log, only there is the state of a migration visible."""
    log = node.directory / "server.log"
    return pattern.findall(log.read_text(errors="replace")) if log.exists() else []


def _finalized(cluster: Cluster) -> Phase:
    broker = cluster.nodes[cluster.broker(cluster.broker_ids[0]).name]
    before = _features(cluster, broker)
    level = before.supported[METADATA_VERSION]
    raise_feature(broker.direct, METADATA_VERSION, level, cluster.access())
    wait_until(
        lambda: _features(cluster, broker).finalized.get(METADATA_VERSION) == level,
        timeout_s=PHASE_S,
        what=f"metadata.version {level} to be agreed on",
    )
    seen = {"metadata_version_before": before.finalized.get(METADATA_VERSION), "metadata_version": level}
    return Phase(name="finalized", seen=seen)


def _controllers(cluster: Cluster) -> list[Node]:
    return [node for node in cluster.nodes.values() if node.spec.role is NodeRole.CONTROLLER]


def _features(cluster: Cluster, node: Node) -> Features:
    return wait_until(
        lambda: ask_features(node.direct, cluster.access_to(node)),
        timeout_s=PHASE_S,
        what=f"{node.name} to answer",
        retry_on=(OSError,),
    )
