"""The controller alone as a machine: brokers fail, come back and shut down, and leaders propose ISRs, also stale ones.

No records are here. In their place `Proven` says whom the leader saw catch up since it last was no candidate, or lost
its log: whoever the controller takes into the ISR, or keeps as eligible, must be so.
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

Proven: TypeAlias = Brokers
"""Who has all that was committed, as far as a controller can know."""


class Node(NamedTuple):
    """A broker, with what it knows if it leads."""

    epoch: int = 0
    """Under which it registered."""
    up: bool = True
    clean_epoch: int = -1
    """What its disk says of its last shutdown."""
    view: Registration | None = None
    """The partition as it last learned of it, if it led then."""
    seen: tuple[tuple[BrokerId, int], ...] = ()
    """Under which epochs it saw others catch up since then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far to go."""

    partition_epochs: int = 3
    registrations: int = 1
    """How often each broker may register again."""
    moves: int = 0
    """How often the controller may move."""
    assignments: tuple[tuple[BrokerId, ...], ...] = ()
    """To which brokers the partition, which begins on all, may be reassigned."""


def starts(parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven) -> Outcomes:
    """A process that ended is followed by another."""
    if node.up:
        return
    epoch = node.epoch + 1
    request = Register(broker, epoch, incarnation=epoch, previous_epoch=node.clean_epoch)
    known = controller.broker(broker)
    after, error = register(parameters, controller, request, session_over=known is None or known.fenced)
    if error is Error.NONE:
        yield after, Node(epoch), _proven_after(controller, after, proven)


def session_ends(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven
) -> Outcomes:
    """The controller no longer hears of a broker, which may well be there."""
    after = fence(parameters, controller, broker)
    yield after, node, _proven_after(controller, after, proven)


def heard_again(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven
) -> Outcomes:
    """A broker that is there is heard again; with ZooKeeper it needs a new session, and with it a new epoch."""
    known = controller.broker(broker)
    if not node.up or known is None or not known.fenced:
        return
    if parameters.mode is Mode.ZK:
        node = node._replace(epoch=node.epoch + 1)
        after, _ = register(parameters, controller, Register(broker, node.epoch))
    else:
        after = unfence(parameters, controller, broker)
    yield after, node, _proven_after(controller, after, proven)


def crashes(broker: BrokerId, node: Node, proven: Proven) -> Outcomes:
    """A process dies, and loses what it had not flushed."""
    if node.up:
        yield Node(node.epoch, up=False), proven - {broker}


def shuts_down(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven
) -> Outcomes:
    """A broker asks to leave, and goes when it may; with ZooKeeper also when it may not, after some retries."""
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
    """A broker hears of the partition as it is now."""
    view = controller.partition if controller.partition.leader == broker else None
    if node.up and node.view != view:
        yield controller, node._replace(view=view, seen=())


def sees(
    broker: BrokerId, other: BrokerId, controller: Controller, node: Node, follower: Node, proven: Proven
) -> Outcomes:
    """A leader, or who thinks that it is one, sees another broker catch up."""
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


def proposes(parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven) -> Outcomes:
    """A leader asks for an ISR with one more that it saw, or with one less; it may not know that it leads no more."""
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
    yield isr  # as it is: the end of a recovery
    for other in sorted(isr - {broker}):
        yield isr - {other}
    for other in sorted(seen.keys() - isr):
        yield isr | {other}


def asked(
    parameters: Parameters,
    request: Callable[[Parameters, Controller], tuple[Controller, Error]],
    controller: Controller,
    proven: Proven,
) -> Outcomes:
    """Somebody asks for an election, or for other replicas."""
    after, _ = request(parameters, controller)
    yield after, _proven_after(controller, after, proven)


def moves(parameters: Parameters, controller: Controller, proven: Proven) -> Outcomes:
    """Another node becomes the controller."""
    after = move(parameters, controller)
    yield after, _proven_after(controller, after, proven)


def _proven_after(before: Controller, after: Controller, proven: Proven) -> Proven:
    """Who leads has by definition all that counts; who is no candidate any more may miss what comes next."""
    was, now = before.partition, after.partition
    if now.leader_epoch != was.leader_epoch:
        return (proven & (now.isr | now.elr)) | ({now.leader} - {NO_LEADER})
    return proven - ((was.isr | was.elr) - (now.isr | now.elr))


def leader_in_isr(controller: Controller) -> bool:
    """I1."""
    return controller.partition.leader == NO_LEADER or controller.partition.leader in controller.partition.isr


def leader_is_there(controller: Controller) -> bool:
    """Nobody leads whose session is over."""
    leader = controller.broker(controller.partition.leader)
    return leader is None or not leader.fenced


def no_fenced_member(controller: Controller) -> bool:
    """I11: only the last member of an ISR may be one whose session is over."""
    fenced = {number for number, broker in controller.brokers if broker.fenced}
    return len(controller.partition.isr) <= 1 or not controller.partition.isr & fenced


def somebody_may_lead(controller: Controller) -> bool:
    """Without eligible leader replicas the ISR is never empty, or it would not be known who is complete."""
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
    """Where nobody is known to be complete, it is known who led last.

    MinIsrRecoveryQuorum of the same specification has min.insync.replicas such brokers; Kafka keeps the leader only.
    """
    partition = controller.partition
    return bool(partition.isr or partition.elr) or len(partition.last_known_elr) == 1


def candidate_proven(
    parameters: Parameters, broker: BrokerId, controller: Controller, node: Node, proven: Proven
) -> bool:
    """I4, as far as it can be said without records: a candidate that is there has all that was committed.

    Without eligible leader replicas the last member of an ISR is a candidate whatever became of it.
    """
    known, partition = controller.broker(broker), controller.partition
    if known is None or not node.up or known.epoch != node.epoch or broker not in partition.isr | partition.elr:
        return True
    last = not parameters.elr and len(partition.isr) == 1
    return last or broker in proven or broker == partition.leader


def epochs_rise(parameters: Parameters, before: Controller, after: Controller) -> bool:
    """I3: no epoch goes back, no change is without a partition epoch, and none of the leader without a leader epoch."""
    was, now = before.partition, after.partition
    if parameters.mode is Mode.ZK:  # which keeps the assignment elsewhere, in the znode of the topic
        was = was._replace(replicas=now.replicas, adding=now.adding, removing=now.removing)
    return (
        before.epoch <= after.epoch
        and all(earlier.epoch <= later.epoch for earlier, later in _broker_by_broker(before, after))
        and was.leader_epoch <= now.leader_epoch
        and (was == now or was.partition_epoch < now.partition_epoch)
        and (was.leader == now.leader or was.leader_epoch < now.leader_epoch)
    )


def _broker_by_broker(before: Controller, after: Controller) -> Iterator[tuple[BrokerRegistration, BrokerRegistration]]:
    for (_, earlier), (_, later) in zip(before.brokers, after.brokers, strict=True):
        yield earlier, later


def machine(parameters: Parameters, bounds: Bounds) -> Machine:
    """One partition on all brokers. The parts are the controller, each broker, and who is proven."""
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
    """What is asked of the controller, and that it moves."""
    reads = (0, parameters.replication + 1)
    requests: dict[str, Callable[[Parameters, Controller], tuple[Controller, Error]]] = {
        "the preferred replica is to lead": elect_preferred,
        "anybody is to lead": elect_unclean,
    }
    for replicas in bounds.assignments:
        requests[f"to be reassigned to {replicas}"] = partial(reassign, replicas=replicas)
        requests["the reassignment is cancelled"] = cancel_reassignment
    for name, request in requests.items():
        yield Rule(name=name, reads=reads, effect=partial(asked, parameters, request))
    yield Rule(name="the controller moves", reads=reads, effect=partial(moves, parameters))


def _within(bounds: Bounds, rule: Rule) -> Rule:
    """The rule without what goes beyond the bounds."""

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
        yield Invariant(name="somebody-may-lead", reads=(0,), holds=somebody_may_lead)
    for broker in range(parameters.replication):
        holds = partial(candidate_proven, parameters, broker)
        yield Invariant(name="candidates-proven", reads=(0, broker + 1, proven), holds=holds)
