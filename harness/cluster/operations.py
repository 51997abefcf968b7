"""What operators do to a cluster that keeps serving: a rolling upgrade, and the migration from ZooKeeper to KRaft.

Each is a sequence of phases, told as they are *observed* from outside, never as we think we have brought them about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.clients.wire.features import METADATA_VERSION, Features, ask_features, raise_feature
from harness.cluster.cluster import Cluster
from harness.cluster.config import Stage
from harness.cluster.node import Node
from harness.cluster.spec import ClusterSpec, Mode, NodeRole, release
from harness.errors import UsageError
from harness.plan import Operation
from harness.wait import wait_until

PHASE_S = 120.0
HIGHEST_BEFORE_4 = (3, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Something that was seen to be so, and what showed it."""

    name: str
    seen: dict[str, Any]


def carry_out(cluster: Cluster, operation: Operation, to: str) -> Iterator[Phase]:
    """One operation by its name in a plan."""
    require(cluster.spec, operation, to)
    yield from upgrade(cluster, to) if operation is Operation.UPGRADE else migrate(cluster)


def require(spec: ClusterSpec, operation: Operation, to: str) -> None:
    """Refuse what cannot be done to a cluster of this spec; nothing is touched."""
    if operation is Operation.UPGRADE:
        if spec.mode is Mode.ZK and release(to) >= (4,):
            raise UsageError(f"Kafka {to} has no ZooKeeper mode: migrate this cluster to KRaft first")
        if release(to) < release(spec.kafka):
            raise UsageError(f"{to} is older than {spec.kafka}, which this cluster runs")
        return
    if spec.mode is not Mode.ZK or not any(node.role is NodeRole.CONTROLLER for node in spec.nodes):
        raise UsageError("only a ZooKeeper cluster with controllers to migrate to can be migrated: --controllers 1")
    if release(spec.kafka)[:2] != HIGHEST_BEFORE_4:
        raise UsageError(f"the migration is that of Kafka 3.9: upgrade from {spec.kafka} first")


def upgrade(cluster: Cluster, to: str) -> Iterator[Phase]:
    """Upgrade every node to another Kafka version, one at a time, then finalize the metadata version.

    Controllers go first: an old broker understands a new controller's records up to the finalized version.
    """
    for name in [node.name for node in cluster.spec.nodes if node.role is not NodeRole.ZOOKEEPER]:
        before = _features(cluster, cluster.nodes[name])
        cluster.restart(name, kafka=to)
        after = _features(cluster, cluster.nodes[name])
        yield Phase(
            name=f"{name} runs {to}",
            seen={
                "metadata_version_supported_before": before.supported.get(METADATA_VERSION),
                "metadata_version_supported_after": after.supported.get(METADATA_VERSION),
            },
        )
    cluster.spec = msgspec.structs.replace(cluster.spec, kafka=to, node_kafka={})
    if cluster.spec.mode is not Mode.ZK:
        yield _finalized(cluster)


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
    for zookeeper in (node for node in cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER):
        zookeeper.stop()
    cluster.spec = msgspec.structs.replace(cluster.spec, mode=Mode.KRAFT, zookeepers=1)
    yield _finished(cluster)


def _led_by_a_broker(cluster: Cluster) -> Phase:
    with cluster.znodes() as session:
        controller = wait_until(
            lambda: session.get("/controller"), timeout_s=PHASE_S, what="ZooKeeper to name a controller"
        )
    assert controller is not None
    return Phase(name="zookeeper", seen={"controller": controller.json()["brokerid"]})


def _controllers_wait(cluster: Cluster) -> Phase:
    """The quorum is up and ready, and waits for every broker to be told of it."""

    def ready() -> list[str]:
        waiting = [node.name for node in _controllers(cluster) if _features(cluster, node).zk_migration_ready]
        return waiting if len(waiting) == len(_controllers(cluster)) else []

    waiting = wait_until(ready, timeout_s=PHASE_S, what="the controllers to be ready to migrate", retry_on=(OSError,))
    with cluster.znodes() as session:
        controller = session.get("/controller")
    assert controller is not None
    return Phase(name="pre-migration", seen={"ready": waiting, "controller": controller.json()["brokerid"]})


def _dual_write(cluster: Cluster) -> Phase:
    """A KRaft controller has taken ZooKeeper's controller node, copied the metadata, and writes to both from now on."""
    ids = {node.spec.id for node in _controllers(cluster)}

    def copied() -> dict[str, Any] | None:
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


def _finished(cluster: Cluster) -> Phase:
    """No controller knows of ZooKeeper any more, no server of it runs, and the brokers are in sync without it."""

    def alone() -> bool:
        return not any(_features(cluster, node).zk_migration_ready for node in _controllers(cluster))

    wait_until(alone, timeout_s=PHASE_S, what="the controllers to finish the migration", retry_on=(OSError,))
    cluster.wait_all_in_sync()
    states = {node.name: node.state() for node in cluster.nodes.values() if node.spec.role is NodeRole.ZOOKEEPER}
    return Phase(name="kraft", seen={"zookeeper": states, "in_sync": True})


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
