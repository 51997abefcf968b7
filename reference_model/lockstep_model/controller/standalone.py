"""The controller as a state machine of its own: brokers fail, restart and shut down, leaders send AlterPartition.

Leaders may be stale, and so may their requests. There are no records. Instead, `ProvenReplicas` holds the replicas
that have all committed records: a leader saw them catch up, and since then they stayed in the ISR or ELR and lost no
log. Every member of the controller's ISR and ELR must be proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

from lockstep_model.controller.assignment import cancel_reassignment, create, reassign
from lockstep_model.controller.brokers import fence, move, register, shut_down, unfence
from lockstep_model.controller.election import elect_preferred, elect_unclean
from lockstep_model.controller.isr import alter_partition
from lockstep_model.controller.state import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import (
    NO_LEADER,
    AlterPartition,
    BrokerId,
    BrokerRegistration,
    Brokers,
    Register,
    Registration,
)
from lockstep_model.state_machine import Invariant, Machine, Outcomes, Rule, Transition

ProvenReplicas: TypeAlias = Brokers
"""Replicas known to hold all committed records."""


class Node(NamedTuple):
    """A broker process, with the leader's view of the partition if it leads."""

    epoch: int = 0
    """Broker epoch of its registration."""
    up: bool = True
    clean_epoch: int = -1
    """Broker epoch in its clean-shutdown file (KIP-966); -1 after an unclean shutdown."""
    view: Registration | None = None
    """The partition as of this broker's last metadata update, if that made it the leader."""
    seen: tuple[tuple[BrokerId, int], ...] = ()
    """Followers that this leader saw catch up since then, with their broker epochs (KIP-903)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the search."""

    partition_epochs: int = 3
    registrations: int = 1
    """How many times each broker may register again."""
    moves: int = 0
    """How many controller failovers there may be."""
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    """Target assignments for reassignments; the partition is created on all brokers."""


def starts(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> Outcomes:
    """A broker process starts and registers (ClusterControlManager.registerBroker, KafkaController.onBrokerStartup)."""
    if node.up:
        return
    epoch = node.epoch + 1
    request = Register(broker, epoch, incarnation=epoch, previous_epoch=node.clean_epoch)
    known = controller.broker(broker)
    after, error = register(parameters, controller, request, session_over=known is None or known.fenced)
    if error is Error.NONE:
        yield after, Node(epoch), _proven_after(controller, after, proven)


def session_ends(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> Outcomes:
    """A broker's session expires, and the controller fences it; the process may still run (handleBrokerFenced)."""
    after = fence(parameters, controller, broker)
    yield after, node, _proven_after(controller, after, proven)


def heard_again(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> Outcomes:
    """A running broker is unfenced (handleBrokerUnfenced); in ZooKeeper mode it registers in a new session."""
    known = controller.broker(broker)
    if not node.up or known is None or not known.fenced:
        return
    if parameters.mode is Mode.ZK:
        node = node._replace(epoch=node.epoch + 1)
        after, _ = register(parameters, controller, Register(broker, node.epoch))
    else:
        after = unfence(parameters, controller, broker)
    yield after, node, _proven_after(controller, after, proven)


def crashes(broker: BrokerId, node: Node, proven: ProvenReplicas) -> Outcomes:
    """A broker process crashes and loses the unflushed end of its log."""
    if node.up:
        yield Node(node.epoch, up=False), proven - {broker}


def shuts_down(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> Outcomes:
    """Controlled shutdown; a ZooKeeper-mode broker also stops without permission, after its retries."""
    if not node.up:
        return
    after, answer = shut_down(parameters, controller, broker, node.epoch)
    gone = Node(node.epoch, up=False, clean_epoch=node.epoch)
    if answer.error is Error.NONE:
        proven = _proven_after(controller, after, proven)
        if not answer.granted:
            yield after, node, proven
        if answer.granted or parameters.mode is Mode.ZK:
            yield after, gone, proven


def learns(broker: BrokerId, controller: Controller, node: Node) -> Outcomes:
    """A broker applies a metadata update: the present state of the partition."""
    view = controller.partition if controller.partition.leader == broker else None
    if node.up and node.view != view:
        yield controller, node._replace(view=view, seen=())


def sees(
    broker: BrokerId, other: BrokerId, controller: Controller, node: Node, follower: Node, proven: ProvenReplicas
) -> Outcomes:
    """A leader, perhaps a stale one, sees a follower's fetch reach its log end (Partition.updateFollowerFetchState).

    Only the current leader, in the current leader epoch, proves a follower by this.
    """
    if not node.up or not follower.up or node.view is None or other not in node.view.replicas:
        return
    seen = dict(node.seen) | {other: follower.epoch}
    leads = (controller.partition.leader, controller.partition.leader_epoch) == (broker, node.view.leader_epoch)
    yield (
        controller,
        node._replace(seen=tuple(sorted(seen.items()))),
        follower,
        proven | {other} if leads else proven,
    )


def proposes(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> Outcomes:
    """A leader sends AlterPartition with one ISR member more, one less, or the same (KIP-497); it may be stale."""
    if not node.up or node.view is None:
        return
    for isr in _proposals(broker, node.view.isr, dict(node.seen)):
        request = AlterPartition(
            broker,
            node.epoch,
            node.view.leader_epoch,
            node.view.partition_epoch,
            isr,
            epochs=((broker, node.epoch), *node.seen),
        )
        after, error = alter_partition(parameters, controller, request)
        if error is Error.NONE:
            yield after, node._replace(view=after.partition, seen=()), _proven_after(controller, after, proven)


def _proposals(broker: BrokerId, isr: Brokers, seen: dict[BrokerId, int]) -> Iterator[Brokers]:
    """ISRs a leader may propose."""
    yield isr  # the same ISR: leaves RECOVERING (KIP-704)
    for other in sorted(isr - {broker}):
        yield isr - {other}
    for other in sorted(seen.keys() - isr):
        yield isr | {other}


def asked(
    parameters: Parameters,
    request: Callable[[Parameters, Controller], tuple[Controller, Error]],
    controller: Controller,
    proven: ProvenReplicas,
) -> Outcomes:
    """An admin request: ElectLeaders (KIP-460) or AlterPartitionReassignments (KIP-455)."""
    after, _ = request(parameters, controller)
    yield after, _proven_after(controller, after, proven)


def moves(parameters: Parameters, controller: Controller, proven: ProvenReplicas) -> Outcomes:
    """Controller failover (KafkaController.onControllerFailover)."""
    after = move(parameters, controller)
    yield after, _proven_after(controller, after, proven)


def _proven_after(before: Controller, after: Controller, proven: ProvenReplicas) -> ProvenReplicas:
    """The proven replicas after a change: a new leader is proven, a replica that left ISR and ELR is not."""
    was, now = before.partition, after.partition
    if now.leader_epoch != was.leader_epoch:
        return (proven & (now.isr | now.elr)) | ({now.leader} - {NO_LEADER})
    return proven - ((was.isr | was.elr) - (now.isr | now.elr))


def leader_in_isr(controller: Controller) -> bool:
    """I1: the leader is in the ISR."""
    return controller.partition.leader == NO_LEADER or controller.partition.leader in controller.partition.isr


def leader_is_there(controller: Controller) -> bool:
    """The leader is not fenced."""
    leader = controller.broker(controller.partition.leader)
    return leader is None or not leader.fenced


def no_fenced_member(controller: Controller) -> bool:
    """I11: a fenced broker may be in the ISR only as its last member (KIP-841)."""
    fenced = {number for number, broker in controller.brokers if broker.fenced}
    return len(controller.partition.isr) <= 1 or not controller.partition.isr & fenced


def a_replica_may_lead(controller: Controller) -> bool:
    """Without ELR the ISR is never empty: its last member is the only replica known to hold all committed records."""
    return bool(controller.partition.isr)


def valid_isr_and_elr(parameters: Parameters, controller: Controller) -> bool:
    """ValidControllerIsrAndElr of the published specification of KIP-966."""
    partition = controller.partition
    return (
        (partition.isr | partition.elr).issubset(partition.replicas)
        and not partition.isr & partition.elr
        and (not partition.elr or len(partition.isr) < min(parameters.min_isr, len(partition.replicas)))
    )


def last_leader_known(controller: Controller) -> bool:
    """With ISR and ELR empty, the last known leader is recorded (KIP-966).

    The specification's MinIsrRecoveryQuorum needs min.insync.replicas such replicas; Kafka records the last leader
    only.
    """
    partition = controller.partition
    return bool(partition.isr or partition.elr) or len(partition.last_known_elr) == 1


def candidate_proven(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: ProvenReplicas
) -> bool:
    """I4, LeaderCandidateCompleteness without records: a running ISR or ELR member holds all committed records.

    Without ELR the last ISR member stays a candidate even after it lost its log.
    """
    known, partition = controller.broker(broker), controller.partition
    if known is None or not node.up or known.epoch != node.epoch or broker not in partition.isr | partition.elr:
        return True
    last = not parameters.elr and len(partition.isr) == 1
    return last or broker in proven or broker == partition.leader


def epochs_rise(parameters: Parameters, before: Controller, after: Controller) -> bool:
    """I3: epochs never fall; each change raises the partition epoch, each change of the leader the leader epoch."""
    was, now = before.partition, after.partition
    if parameters.mode is Mode.ZK:  # the assignment is in the topic znode, without an epoch
        was = was._replace(replicas=now.replicas, adding=now.adding, removing=now.removing)
    return (
        before.epoch <= after.epoch
        and all(earlier.epoch <= later.epoch for earlier, later in _broker_by_broker(before, after))
        and was.leader_epoch <= now.leader_epoch
        and (was == now or was.partition_epoch < now.partition_epoch)
        and (was.leader == now.leader or was.leader_epoch < now.leader_epoch)
    )


def _broker_by_broker(before: Controller, after: Controller) -> Iterator[tuple[BrokerRegistration, BrokerRegistration]]:
    """Each broker's registration before and after."""
    for (_, earlier), (_, later) in zip(before.brokers, after.brokers, strict=True):
        yield earlier, later


def machine(parameters: Parameters, bounds: Bounds) -> Machine:
    """One partition on all brokers. Parts of the state: the controller, each broker, the proven replicas."""
    brokers = range(parameters.replication)
    registered = Controller(brokers=tuple((broker, BrokerRegistration(epoch=0)) for broker in brokers))
    controller, _ = create(parameters, registered, tuple(brokers))
    nodes = [Node(view=controller.partition if broker == 0 else None) for broker in brokers]
    return Machine(
        initial=(controller, *nodes, controller.partition.isr),
        rules=tuple(_within(bounds, rule) for rule in (*_rules(parameters), *_administration(parameters, bounds))),
        invariants=tuple(_invariants(parameters)),
    )


def _rules(parameters: Parameters) -> Iterator[Rule]:
    brokers, proven = range(parameters.replication), parameters.replication + 1
    for broker in brokers:
        place = broker + 1
        for name, effect in (
            ("starts", starts),
            ("loses its session", session_ends),
            ("is heard again", heard_again),
            ("shuts down", shuts_down),
            ("proposes an ISR", proposes),
        ):
            yield Rule(name=f"{broker} {name}", reads=(0, place, proven), effect=partial(effect, parameters, broker))
        yield Rule(name=f"{broker} crashes", reads=(place, proven), effect=partial(crashes, broker))
        yield Rule(name=f"{broker} learns", reads=(0, place), effect=partial(learns, broker))
        for other in set(brokers) - {broker}:
            reads = (0, place, other + 1, proven)
            yield Rule(name=f"{broker} sees {other} catch up", reads=reads, effect=partial(sees, broker, other))


def _administration(parameters: Parameters, bounds: Bounds) -> Iterator[Rule]:
    """Admin requests and controller failover."""
    reads = (0, parameters.replication + 1)
    requests: dict[str, Callable[[Parameters, Controller], tuple[Controller, Error]]] = {
        "the preferred replica is to lead": elect_preferred,
        "any active replica is to lead": elect_unclean,
    }
    for replicas in bounds.assignments:
        requests[f"to be reassigned to {replicas}"] = partial(reassign, replicas=replicas)
        requests["the reassignment is cancelled"] = cancel_reassignment
    for name, request in requests.items():
        yield Rule(name=name, reads=reads, effect=partial(asked, parameters, request))
    yield Rule(name="the controller moves", reads=reads, effect=partial(moves, parameters))


def _within(bounds: Bounds, rule: Rule) -> Rule:
    """The rule, restricted to outcomes within the bounds."""

    def effect(*parts: object) -> Outcomes:
        for after in rule.effect(*parts):
            if all(_allowed(bounds, part) for part in after):
                yield after

    return Rule(name=rule.name, reads=rule.reads, effect=effect)


def _allowed(bounds: Bounds, part: object) -> bool:
    if isinstance(part, Controller):
        return part.partition.partition_epoch <= bounds.partition_epochs and part.epoch <= bounds.moves
    return not isinstance(part, Node) or part.epoch <= bounds.registrations


def _invariants(parameters: Parameters) -> Iterator[Invariant | Transition]:
    proven = parameters.replication + 1
    yield Transition(name="epochs-rise", place=0, holds=partial(epochs_rise, parameters))
    yield Invariant(name="leader-in-isr", reads=(0,), holds=leader_in_isr)
    yield Invariant(name="leader-is-there", reads=(0,), holds=leader_is_there)
    yield Invariant(name="no-fenced-member", reads=(0,), holds=no_fenced_member)
    yield Invariant(name="valid-isr-and-elr", reads=(0,), holds=partial(valid_isr_and_elr, parameters))
    if parameters.elr:
        yield Invariant(name="last-leader-known", reads=(0,), holds=last_leader_known)
    else:
        yield Invariant(name="a-replica-may-lead", reads=(0,), holds=a_replica_may_lead)
    for broker in range(parameters.replication):
        holds = partial(candidate_proven, parameters, broker)
        yield Invariant(name="candidates-proven", reads=(0, broker + 1, proven), holds=holds)
