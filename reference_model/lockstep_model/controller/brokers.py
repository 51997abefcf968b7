"""Brokers come, fall silent, are heard again, and leave: what a controller makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_model.controller import zookeeper
from lockstep_model.controller.assignment import resume_reassignment
from lockstep_model.controller.change import change, wanted
from lockstep_model.controller.state import Controller, Written
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Register


def register(
    parameters: Parameters, controller: Controller, request: Register, *, session_over: bool = False
) -> tuple[Controller, Error]:
    """A broker comes to the cluster, for the first time or again, perhaps so fast that nobody missed it.

    `session_over`: whether the session's time has passed since the last process with this id was heard of. The
    controller may not have fenced it yet, and one that left in good order is fenced before.
    """
    if parameters.mode is Mode.ZK:
        return begin_startup(parameters, controller, request).finished(), Error.NONE
    known = controller.broker(request.broker)
    if known is not None and known.incarnation == request.incarnation:  # the same process amends its registration
        return controller, Error.NONE
    if known is not None and not session_over and (parameters.session_outlasts_fencing or not known.fenced):
        return controller, Error.DUPLICATE_BROKER_REGISTRATION  # ClusterControlManager.registerBroker
    clean = known is not None and known.epoch == request.previous_epoch
    controller = _restarted(parameters, controller, request.broker, clean=clean)
    registration = BrokerRegistration(epoch=request.epoch, fenced=True, incarnation=request.incarnation)
    return controller.with_broker(request.broker, registration), Error.NONE


def _restarted(parameters: Parameters, controller: Controller, broker: BrokerId, *, clean: bool) -> Controller:
    """A new process stands for this broker: it leaves the ISR, and unless the old one ended cleanly also the ELR.

    It may have lost the end of its log (KIP-966; ReplicationControlManager.handleBrokerShutdown). Before 4.0 it stays
    where it is until it is fenced.
    """
    if not parameters.elr and not parameters.new_incarnation_leaves_isr:
        return controller
    if clean or not parameters.elr:
        return _out_of_isr(parameters, controller, broker)
    partition = controller.partition
    if broker not in partition.isr | partition.elr:
        return controller
    target = wanted(parameters, partition, controller.active_brokers() - {broker})
    target = target._replace(isr=partition.isr - {broker}, unclean_shutdown=frozenset({broker}))
    return controller.with_partition(change(parameters, partition, target))


def begin_startup(parameters: Parameters, controller: Controller, request: Register) -> Controller:
    """ZooKeeper's controller notices a broker's znode; if it replaced another at once, the old broker failed first.

    It tells the broker of its replicas as they are, and will then write who leads where nobody did, and go on with a
    reassignment (KafkaController.processBrokerChange, with bounced brokers by their czxid, and onBrokerStartup).
    """
    known = controller.broker(request.broker)
    registration = BrokerRegistration(epoch=request.epoch)
    failed = controller
    if known is not None and not known.fenced:
        if known.epoch == request.epoch:
            return controller
        failed = begin_failure(parameters, controller, [request.broker])
    elected, election = _election(parameters, failed.finished().with_broker(request.broker, registration))
    moves_here = request.broker in frozenset(controller.partition.replicas) - controller.partition.removing
    resumption = resume_reassignment(parameters, elected) if moves_here else ()
    return controller.with_broker(request.broker, registration).will_write(*failed.writing, *election, *resumption)


def begin_failure(parameters: Parameters, controller: Controller, gone: Iterable[BrokerId]) -> Controller:
    """ZooKeeper's controller notices that brokers are gone, all at once.

    It will write who leads in the place of one, and then who is in the ISR without them, one by one (onBrokerFailure).
    """
    begun = controller
    for broker in gone:
        begun = begun.marked(broker, fenced=True, shutting_down=False)
    elected, election = _election(parameters, begun)
    return begun.will_write(*election, *map(Written, zookeeper.without(parameters, elected.partition, sorted(gone))))


def _election(parameters: Parameters, controller: Controller) -> tuple[Controller, tuple[Written, ...]]:
    """Somebody leads where nobody did, if there is somebody, and this will be written."""
    elected = zookeeper.elect_offline(parameters, controller, unclean=parameters.unclean)
    return elected, () if elected == controller else (Written(elected.partition),)


def fence(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """A broker's session is over: it leaves the ISR, and where it led somebody else does.

    Without eligible leader replicas the last member stays in the ISR, and nobody leads
    (ReplicationControlManager.handleBrokerFenced; KafkaController.onBrokerFailure).
    """
    known = controller.broker(broker)
    if known is None or known.fenced:
        return controller
    if parameters.mode is Mode.ZK:
        return begin_failure(parameters, controller, [broker]).finished()
    return _out_of_isr(parameters, controller, broker).marked(broker, fenced=True)


def _out_of_isr(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """Take a broker from the ISR and from leadership (ReplicationControlManager.generateLeaderAndIsrUpdates)."""
    partition = controller.partition
    if broker not in partition.isr:
        return controller
    target = wanted(parameters, partition, controller.active_brokers() - {broker})
    target = target._replace(isr=partition.isr - {broker})
    return controller.with_partition(change(parameters, partition, target))


def unfence(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """A broker is heard again and has caught up: it may lead where nobody does; no ISR takes it back by this.

    ReplicationControlManager.handleBrokerUnfenced. In ZooKeeper mode brokers are never fenced: they register again.
    """
    known = controller.broker(broker)
    if parameters.mode is Mode.ZK or known is None or not known.fenced or known.shutting_down:
        return controller
    controller = controller.marked(broker, fenced=False)
    partition = controller.partition
    if partition.leader != NO_LEADER:
        return controller
    target = wanted(parameters, partition, controller.active_brokers())
    return controller.with_partition(change(parameters, partition, target))


class ShutdownAnswer(NamedTuple):
    """What a broker is told that asked to shut down."""

    error: Error
    granted: bool = False
    """Nothing keeps it any more; a broker that is not let go goes after some retries."""


def shut_down(
    parameters: Parameters,
    controller: Controller,
    broker: BrokerId,
    epoch: int,
    *,
    others_know: bool = True,
    leads_elsewhere: bool = False,
) -> tuple[Controller, ShutdownAnswer]:
    """A broker asks to leave in good order: it gives up leadership and leaves the ISR, and cannot come back into it.

    It asks again until it may go: from KRaft at once if it leads nothing, otherwise as soon as it led nothing any more
    when it asked again, and `others_know`: all active brokers have read of its leaving, as their heartbeats say.
    `leads_elsewhere`: it leads a partition that is not this one.
    """
    if parameters.mode is Mode.ZK:
        return _controlled_shutdown_zookeeper(parameters, controller, broker, epoch)
    known = controller.broker(broker)
    if known is None or known.epoch != epoch:  # ClusterControlManager.checkBrokerEpoch
        return controller, ShutdownAnswer(Error.STALE_BROKER_EPOCH)
    leads = controller.partition.leader == broker or leads_elsewhere
    if known.fenced:  # from here on BrokerHeartbeatManager.calculateNextBrokerState
        return controller, ShutdownAnswer(Error.NONE, granted=True)
    if leads and not known.shutting_down:
        controller = _out_of_isr(parameters, controller, broker).marked(broker, shutting_down=True)
        return controller, ShutdownAnswer(Error.NONE)
    if known.shutting_down and (leads or not others_know):
        return controller, ShutdownAnswer(Error.NONE)
    return fence(parameters, controller, broker), ShutdownAnswer(Error.NONE, granted=True)


def _controlled_shutdown_zookeeper(
    parameters: Parameters, controller: Controller, broker: BrokerId, epoch: int
) -> tuple[Controller, ShutdownAnswer]:
    """The last member of an ISR goes on leading until its session ends (KafkaController.doControlledShutdown)."""
    known = controller.broker(broker)
    if known is None or known.fenced:
        return controller, ShutdownAnswer(Error.BROKER_NOT_AVAILABLE)
    if epoch < known.epoch:
        return controller, ShutdownAnswer(Error.STALE_BROKER_EPOCH)
    controller = controller.marked(broker, shutting_down=True)
    partition = controller.partition
    if len(partition.replicas) == 1:
        return controller, ShutdownAnswer(Error.NONE, granted=True)
    if partition.leader == broker:
        partition = zookeeper.elect_instead_of_leaving(controller)
    else:
        partition = zookeeper.remove_from_isr(parameters, partition, broker)
    granted = partition.leader != broker
    return controller.with_partition(partition), ShutdownAnswer(Error.NONE, granted=granted)


def move(parameters: Parameters, controller: Controller) -> Controller:
    """Another node becomes the controller.

    KRaft's has read all that was on record. ZooKeeper's does not know who was shutting down, and does again for every
    broker that is not there, and for a reassignment, what its predecessor did (KafkaController.onControllerFailover).
    """
    if parameters.mode is Mode.KRAFT:
        return controller._replace(epoch=controller.epoch + 1)
    return begin_failover(parameters, controller).finished()


def begin_failover(parameters: Parameters, controller: Controller) -> Controller:
    """ZooKeeper's new controller knows what the znodes show, and has it all yet to write."""
    begun = controller._replace(
        partition=controller.shown or controller.partition, epoch=controller.epoch + 1, shown=None, writing=()
    )
    for broker, _ in begun.brokers:
        begun = begun.marked(broker, shutting_down=False)
    gone = sorted(begun.partition.isr - begun.active_brokers())
    writes = list(zookeeper.without(parameters, begun.partition, gone))  # ReplicaStateMachine.startup
    elected, election = _election(parameters, begun.with_partition(writes[-1]) if writes else begun)
    return begun.will_write(*map(Written, writes), *election, *resume_reassignment(parameters, elected))
