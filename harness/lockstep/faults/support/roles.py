"""The node that has a role now: leader, follower, active controller."""

from __future__ import annotations

from collections.abc import Collection

from lockstep.clients.wire.quorum import active_controller
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node
from lockstep.errors import FaultError
from lockstep.plan.targets import ActiveController, FollowerOf, LeaderOf, OneBroker, OneZooKeeper, Target
from lockstep.spec.cluster import Mode, NodeRole
from lockstep.wait import wait_until

KNOWN_S = 30.0


def node_of(cluster: Cluster, target: Target) -> Node:
    """The node that plays a role now."""
    match target:
        case LeaderOf():
            return cluster.broker(cluster.leader(target.topic, target.partition).leader)
        case FollowerOf():
            view = cluster.leader(target.topic, target.partition)
            followers = [id_ for id_ in view.replicas if id_ in view.isr and id_ != view.leader]
            if not followers:
                raise FaultError(f"{target.topic}-{target.partition} has no follower in sync")
            return cluster.broker(followers[0])
        case OneBroker():
            return cluster.broker(target.id)
        case OneZooKeeper():
            return cluster.nodes[f"{NodeRole.ZOOKEEPER}-{target.id}"]
        case ActiveController():
            return controller(cluster)
        case _:
            raise FaultError(f"the {target} is not one node")


def controller(cluster: Cluster) -> Node:
    """The active controller; waits for one if there is none at the moment."""
    id_ = wait_until(lambda: controller_id(cluster), timeout_s=KNOWN_S, what="an active controller")
    assert id_ is not None
    return next(node for node in cluster.nodes.values() if node.spec.id == id_ and _can_control(cluster, node))


def controller_id(cluster: Cluster) -> int | None:
    """The id of the active controller, as the brokers that answer tell it; None if they know of none."""
    if cluster.spec.mode is Mode.ZK:
        told = {view.controller for view in cluster.ask_all().values()}
        return max(told, default=-1) if max(told, default=-1) >= 0 else None
    for id_ in cluster.broker_ids:
        if cluster.expected(id_):
            try:
                known = active_controller(cluster.direct(id_), cluster.access())
            except OSError:
                continue
            if known is not None:
                return known
    return None


def controller_by(cluster: Cluster, brokers: Collection[int]) -> int | None:
    """The id of the active controller, once those of some brokers that answer agree on one."""
    told = set()
    for id_ in brokers:
        if cluster.expected(id_):
            try:
                told.add(_told_by(cluster, id_))
            except OSError:
                continue
    return told.pop() if len(told) == 1 else None


def agreed_controller(cluster: Cluster) -> int | None:
    """The active controller, once all brokers know it: after a change in ZooKeeper mode they may name the old one."""
    told = controller_by(cluster, cluster.broker_ids)
    if cluster.spec.mode is not Mode.ZK or told is None:
        return told
    with cluster.znodes() as session:
        elected = session.get("/controller")
    return told if elected is not None and elected.json()["brokerid"] == told else None


def _told_by(cluster: Cluster, broker: int) -> int | None:
    if cluster.spec.mode is not Mode.ZK:
        return active_controller(cluster.direct(broker), cluster.access())
    known = cluster.ask(broker).controller
    return known if known >= 0 else None


def _can_control(cluster: Cluster, node: Node) -> bool:
    return node.spec.is_broker if cluster.spec.mode is Mode.ZK else node.spec.is_voter
