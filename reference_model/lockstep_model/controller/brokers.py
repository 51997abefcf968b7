"""Broker lifecycle at the controller: registration, fencing, unfencing, controlled shutdown, controller failover."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lockstep_model.controller import zookeeper
from lockstep_model.controller.assignment import resume_reassignment
from lockstep_model.controller.change import change, wanted
from lockstep_model.controller.state import Controller, ZnodeWrite
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, BrokerRegistration, Register


def register(
    parameters: Parameters, controller: Controller, request: Register, *, session_over: bool = False
) -> tuple[Controller, Error]:
    """BrokerRegistration (ClusterControlManager.registerBroker), or in ZooKeeper mode a new znode under /brokers/ids.

    KRaft refuses a new incarnation of a broker id with DUPLICATE_BROKER_REGISTRATION while the old session may be
    alive. `session_over`: broker.session.timeout.ms has passed since the last heartbeat of this broker id. The
    controller may not have fenced that broker yet; after a controlled shutdown the broker is fenced before its session
    is over.
    """
    if parameters.mode is Mode.ZK:
        return begin_startup(parameters, controller, request).finished(), Error.NONE
    known = controller.broker(request.broker)
    if known is not None and known.incarnation == request.incarnation:  # the same incarnation registers again
        return controller, Error.NONE
    if known is not None and not session_over and (parameters.session_outlasts_fencing or not known.fenced):
        return controller, Error.DUPLICATE_BROKER_REGISTRATION  # ClusterControlManager.registerBroker
    clean = known is not None and known.epoch == request.previous_epoch
    controller = _restarted(parameters, controller, request.broker, clean=clean)
    registration = BrokerRegistration(epoch=request.epoch, fenced=True, incarnation=request.incarnation)
    return controller.with_broker(request.broker, registration), Error.NONE


def _restarted(parameters: Parameters, controller: Controller, broker: BrokerId, *, clean: bool) -> Controller:
    """KRaft: a new incarnation leaves the ISR, and after an unclean shutdown also the ELR (KIP-966, KAFKA-18106).

    After an unclean shutdown the end of the log may be lost (ReplicationControlManager.handleBrokerShutdown). Before
    4.0 and without ELR a new incarnation stays in the ISR until it is fenced.
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
    """ZooKeeper: a broker's znode appears (KafkaController.processBrokerChange, onBrokerStartup).

    A changed czxid means that the broker bounced, so the old session is handled as a failure first. The controller
    sends the broker LeaderAndIsr for its replicas, elects a leader for an offline partition, and resumes a pending
    reassignment.
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
    """ZooKeeper: broker znodes disappear (KafkaController.onBrokerFailure).

    The controller elects a leader for the partition if it is now offline, then removes the failed brokers from the ISR,
    one write per broker.
    """
    begun = controller
    for broker in gone:
        begun = begun.marked(broker, fenced=True, shutting_down=False)
    elected, election = _election(parameters, begun)
    return begun.will_write(*election, *map(ZnodeWrite, zookeeper.without(parameters, elected.partition, sorted(gone))))


def _election(parameters: Parameters, controller: Controller) -> tuple[Controller, tuple[ZnodeWrite, ...]]:
    """ZooKeeper: the offline-partition election, and the znode write it needs if a leader was found."""
    elected = zookeeper.elect_offline(parameters, controller, unclean=parameters.unclean)
    return elected, () if elected == controller else (ZnodeWrite(elected.partition),)


def fence(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """A broker's session expires: the broker leaves the ISR, and a partition it led gets another leader.

    KRaft: ReplicationControlManager.handleBrokerFenced; ZooKeeper: KafkaController.onBrokerFailure. Without ELR the
    last ISR member stays in the ISR and the partition has no leader.
    """
    known = controller.broker(broker)
    if known is None or known.fenced:
        return controller
    if parameters.mode is Mode.ZK:
        return begin_failure(parameters, controller, [broker]).finished()
    return _out_of_isr(parameters, controller, broker).marked(broker, fenced=True)


def _out_of_isr(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """KRaft: removes a broker from the ISR and from leadership.

    ReplicationControlManager.generateLeaderAndIsrUpdates.
    """
    partition = controller.partition
    if broker not in partition.isr:
        return controller
    target = wanted(parameters, partition, controller.active_brokers() - {broker})
    target = target._replace(isr=partition.isr - {broker})
    return controller.with_partition(change(parameters, partition, target))


def unfence(parameters: Parameters, controller: Controller, broker: BrokerId) -> Controller:
    """KRaft: a fenced broker that has caught up may lead leaderless partitions; it does not rejoin any ISR by this.

    ReplicationControlManager.handleBrokerUnfenced. In ZooKeeper mode there is no unfencing: the broker registers again.
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
    """Response to a broker in controlled shutdown: ControlledShutdown in ZooKeeper mode, BrokerHeartbeat in KRaft."""

    error: Error
    granted: bool = False
    """The broker may stop now. In ZooKeeper mode a broker also stops without this, after
    controlled.shutdown.max.retries."""


def shut_down(
    parameters: Parameters,
    controller: Controller,
    broker: BrokerId,
    epoch: int,
    *,
    others_know: bool = True,
    leads_elsewhere: bool = False,
) -> tuple[Controller, ShutdownAnswer]:
    """Controlled shutdown: the broker gives up leadership, leaves the ISR, and cannot rejoin it.

    KRaft: a heartbeat with wantShutDown (BrokerHeartbeatManager.calculateNextBrokerState). A broker without leaderships
    may stop at once. Otherwise it may stop when a later heartbeat finds it without leaderships and `others_know`: the
    heartbeats of all active brokers have passed the offset of its controlled shutdown. `leads_elsewhere`: the broker
    leads another partition.
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
    """ZooKeeper: ControlledShutdown; the last ISR member stays leader until its session ends (doControlledShutdown)."""
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
    """Controller failover: another node becomes the active controller.

    The KRaft controller has replayed the whole metadata log. The ZooKeeper controller does not know which brokers were
    shutting down; it handles absent brokers again and resumes a pending reassignment
    (KafkaController.onControllerFailover).
    """
    if parameters.mode is Mode.KRAFT:
        return controller._replace(epoch=controller.epoch + 1)
    return begin_failover(parameters, controller).finished()


def begin_failover(parameters: Parameters, controller: Controller) -> Controller:
    """ZooKeeper: the new controller reads the znodes and queues the writes of KafkaController.onControllerFailover."""
    begun = controller._replace(
        partition=controller.shown or controller.partition, epoch=controller.epoch + 1, shown=None, writing=()
    )
    for broker, _ in begun.brokers:
        begun = begun.marked(broker, shutting_down=False)
    gone = sorted(begun.partition.isr - begun.active_brokers())
    writes = list(zookeeper.without(parameters, begun.partition, gone))  # ReplicaStateMachine.startup
    elected, election = _election(parameters, begun.with_partition(writes[-1]) if writes else begun)
    return begun.will_write(*map(ZnodeWrite, writes), *election, *resume_reassignment(parameters, elected))
