"""One `ClusterSpec` renders every node's properties; backends differ only in addresses and paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import javaproperties

from lockstep.network.topology import Address
from lockstep.spec.cluster import ClusterSpec, Listener, Mode, NodeRole, NodeSpec, release

# Small and fast, and time-outs short enough to see an election in two seconds; kafka-semantics.md §5 has the reasons.
COMMON = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "default.replication.factor": "3",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "num.network.threads": "2",
    "num.io.threads": "4",
}

KRAFT = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.request.timeout.ms": "1000",
    "controller.quorum.append.linger.ms": "5",
    "initial.broker.registration.timeout.ms": "60000",
    "unclean.leader.election.interval.ms": "1000",
}

ZK_BROKER = {
    "zookeeper.session.timeout.ms": "2000",
    "zookeeper.connection.timeout.ms": "30000",
    "controlled.shutdown.retry.backoff.ms": "200",
    "controlled.shutdown.max.retries": "3",
}

ZOOKEEPER = {
    "tickTime": "500",  # a session lasts at least two ticks
    "initLimit": "20",
    "syncLimit": "8",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "*",
}

REPLICATED = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "default.replication.factor",
)


class Stage(StrEnum):
    """Where a node stands between ZooKeeper and KRaft. All but those of a cluster that migrates stay where they are."""

    ZK = "zk"
    HYBRID = "hybrid"  # KIP-866: ZooKeeper-mode brokers led by a KRaft controller, which writes to both
    KRAFT = "kraft"


def first_stage(spec: ClusterSpec, node: NodeSpec) -> Stage:
    """The stage in which a node of this cluster is started first."""
    if spec.mode is not Mode.ZK:
        return Stage.KRAFT
    return Stage.HYBRID if node.role is NodeRole.CONTROLLER else Stage.ZK


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddresses:
    """What a node's properties say about the network: nodes know each other by name, and a name means a link."""

    bind: Mapping[Listener, Address]
    clients: Mapping[Listener, Address]
    """Where clients find this node: the address of their link to it."""
    ports: Mapping[Listener, int]

    def peer(self, node: NodeSpec, listener: Listener) -> Address:
        return Address(host=node.name, port=self.ports[listener])


def properties(
    spec: ClusterSpec,
    node: NodeSpec,
    addresses: NodeAddresses,
    data: str,
    *,
    stage: Stage,
    security: Mapping[str, str],
) -> dict[str, str]:
    """What one node is started with: `server.properties`, or ZooKeeper's own configuration, which has no security."""
    if node.role is NodeRole.ZOOKEEPER:
        return _zookeeper(spec, addresses, data) | spec.node_overrides.get(node.name, {})
    rendered = COMMON | {name: str(min(3, spec.brokers)) for name in REPLICATED}
    rendered["transaction.state.log.min.isr"] = str(min(2, spec.brokers))
    rendered["log.dirs"] = data
    if node.is_broker:
        rendered |= _broker(node, addresses, stage)
    if stage is not Stage.ZK:
        rendered |= _quorum(spec, addresses)
    if stage is Stage.KRAFT or node.is_voter:
        rendered |= _kraft(node, addresses)
    if stage is not Stage.KRAFT:
        rendered |= _zk(spec, addresses, hybrid=stage is Stage.HYBRID)
    if stage is not Stage.KRAFT and node.is_broker:
        rendered |= ZK_BROKER | {
            "broker.id": str(node.id),
            "control.plane.listener.name": Listener.CONTROL.value,
            # What brokers of mixed versions say to each other: only what the oldest of them understands.
            "inter.broker.protocol.version": ".".join(map(str, release(spec.oldest)[:2])),
        }
    return rendered | dict(security) | spec.overrides | spec.node_overrides.get(node.name, {})


def render(values: Mapping[str, str]) -> str:
    """Properties as the text of a file."""
    return javaproperties.dumps(values, timestamp=False, sort_keys=True)


def _broker(node: NodeSpec, addresses: NodeAddresses, stage: Stage) -> dict[str, str]:
    served = {listener: address for listener, address in addresses.bind.items() if _serves(listener, stage)}
    advertised: dict[Listener, Address] = {
        listener: addresses.clients.get(listener, addresses.peer(node, listener))
        for listener in served
        if listener is not Listener.CONTROLLER or _tells_its_endpoints(node)
    }
    return {
        "listeners": _listeners(served),
        "advertised.listeners": _listeners(advertised),
        "inter.broker.listener.name": Listener.REPL.value,
        **({"broker.rack": node.rack} if node.rack else {}),
    }


def _serves(listener: Listener, stage: Stage) -> bool:
    return listener is not Listener.CONTROL or stage is not Stage.KRAFT


def _quorum(spec: ClusterSpec, addresses: NodeAddresses) -> dict[str, str]:
    voters = [node for node in spec.nodes if node.is_voter]
    return KRAFT | {
        "controller.quorum.voters": ",".join(
            f"{node.id}@{addresses.peer(node, Listener.CONTROLLER)}" for node in voters
        ),
        "controller.listener.names": Listener.CONTROLLER.value,
    }


def _kraft(node: NodeSpec, addresses: NodeAddresses) -> dict[str, str]:
    roles = {NodeRole.COMBINED: "broker,controller"}.get(node.role, node.role.value)
    own = {} if node.is_broker else {"listeners": _listeners(addresses.bind)}
    if own and _tells_its_endpoints(node):
        peers = {Listener.CONTROLLER: addresses.peer(node, Listener.CONTROLLER)}
        own |= {"advertised.listeners": _listeners(peers)}
    return {"process.roles": roles, "node.id": str(node.id), **own}


def _tells_its_endpoints(node: NodeSpec) -> bool:
    """Whether a controller sends its endpoints to brokers that fetch from it (KIP-853).

    Unless these are its name, which means a link, brokers reach it past all links after their first reconnect. Older
    controllers are found by the voters' names alone.
    """
    return release(node.kafka) >= (3, 9)


def _zk(spec: ClusterSpec, addresses: NodeAddresses, *, hybrid: bool) -> dict[str, str]:
    servers = [node for node in spec.nodes if node.role is NodeRole.ZOOKEEPER]
    connect = ",".join(str(addresses.peer(node, Listener.ZOOKEEPER)) for node in servers)
    migration = {"zookeeper.metadata.migration.enable": "true", "inter.broker.listener.name": Listener.REPL.value}
    return {"zookeeper.connect": connect, **(migration if hybrid else {})}


def _zookeeper(spec: ClusterSpec, addresses: NodeAddresses, data: str) -> dict[str, str]:
    client = addresses.bind[Listener.ZOOKEEPER]
    rendered = ZOOKEEPER | {
        "dataDir": data,
        "clientPort": str(client.port),
        "clientPortAddress": client.host,
    }
    servers = [node for node in spec.nodes if node.role is NodeRole.ZOOKEEPER]
    if len(servers) > 1:
        quorum, election = addresses.ports[Listener.ZK_QUORUM], addresses.ports[Listener.ZK_ELECTION]
        rendered |= {f"server.{node.id}": f"{node.name}:{quorum}:{election}" for node in servers}
    return rendered


def _listeners(addresses: Mapping[Listener, Address]) -> str:
    return ",".join(f"{listener}://{address}" for listener, address in addresses.items())
