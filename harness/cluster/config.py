"""One `ClusterSpec` renders every node's properties; backends differ only in addresses and paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.cluster.spec import ClusterSpec, Listener, NodeRole, NodeSpec
from harness.network.topology import Address

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

REPLICATED = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "default.replication.factor",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddresses:
    """What a node's properties say about the network."""

    bind: Mapping[Listener, Address]
    advertised: Mapping[Listener, Address]
    voters: Mapping[int, Address]


def node_addresses(
    spec: ClusterSpec,
    node: NodeSpec,
    *,
    bind: Mapping[Listener, Address],
    clients: Mapping[Listener, Address],
    voter_port: int,
) -> NodeAddresses:
    """Clients are told the address of their link, nodes the name of their peer, which means its link to them."""
    return NodeAddresses(
        bind=bind,
        advertised={
            listener: clients.get(listener, Address(host=node.name, port=address.port))
            for listener, address in bind.items()
        },
        voters={
            peer.id: Address(host=peer.name, port=voter_port)
            for peer in spec.nodes
            if Listener.CONTROLLER in peer.listeners
        },
    )


def properties(spec: ClusterSpec, node: NodeSpec, addresses: NodeAddresses, log_dir: str) -> dict[str, str]:
    """The `server.properties` of one node."""
    rendered = COMMON | KRAFT
    rendered |= {name: str(min(3, spec.brokers)) for name in REPLICATED}
    rendered["transaction.state.log.min.isr"] = str(min(2, spec.brokers))
    rendered |= {
        "process.roles": node.role.value,
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{id_}@{address}" for id_, address in addresses.voters.items()),
        "controller.listener.names": Listener.CONTROLLER.value,
        "listeners": _listeners(addresses.bind),
        "listener.security.protocol.map": ",".join(f"{listener}:PLAINTEXT" for listener in Listener),
        "log.dirs": log_dir,
    }
    if node.role is NodeRole.BROKER:
        rendered["advertised.listeners"] = _listeners(addresses.advertised)
        rendered["inter.broker.listener.name"] = Listener.REPL.value
    return rendered | spec.overrides


def render(values: Mapping[str, str]) -> str:
    """Properties as the text of a file."""
    return "".join(f"{name}={value}\n" for name, value in sorted(values.items()))


def _listeners(addresses: Mapping[Listener, Address]) -> str:
    return ",".join(f"{listener}://{address}" for listener, address in addresses.items())
