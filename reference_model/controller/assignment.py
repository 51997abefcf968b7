"""Which brokers hold a partition: its creation, and reassignments with their end or their cancellation."""

from __future__ import annotations

from reference_model.controller import zookeeper
from reference_model.controller.change import Election, change, wanted
from reference_model.controller.state import Controller, first
from reference_model.errors import Error
from reference_model.parameters import Mode, Parameters
from reference_model.registration import NO_LEADER, BrokerId, Registration


def create(parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]) -> tuple[Controller, Error]:
    """Create the partition with this assignment: those who are active are in sync, and the first of them leads.

    ReplicationControlManager.createTopic. In ZooKeeper mode a partition waits for the first of its brokers, so create
    it again when one is there (PartitionStateMachine.initializeLeaderAndIsrForPartitions).
    """
    if not _assignable(parameters, controller, replicas):
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    isr = controller.active_brokers().intersection(replicas)
    if not isr:
        waits = parameters.mode is Mode.ZK
        return controller, Error.REQUEST_TIMED_OUT if waits else Error.INVALID_REPLICA_ASSIGNMENT
    created = Registration(replicas=replicas, isr=isr, leader=first(replicas, isr))
    return controller.with_partition(created), Error.NONE


def _assignable(parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]) -> bool:
    """Each broker once, and for KRaft only such as registered (validateManualPartitionAssignment)."""
    known = parameters.mode is Mode.ZK or all(controller.broker(replica) for replica in replicas)
    return bool(replicas) and len(set(replicas)) == len(replicas) and known


def reassign(
    parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]
) -> tuple[Controller, Error]:
    """Move the partition to these brokers: the new ones are added at once, the others leave when all are in sync."""
    if not controller.partition.replicas:
        return controller, Error.UNKNOWN_TOPIC_OR_PARTITION
    if not _assignable(parameters, controller, replicas):
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    if parameters.mode is Mode.ZK:
        return _reassign_zookeeper(parameters, controller, replicas)
    partition = controller.partition
    removing = frozenset(partition.replicas) - frozenset(replicas)
    adding = frozenset(replicas) - frozenset(partition.replicas)
    target = wanted(parameters, partition, controller.active_brokers())._replace(
        replicas=(*replicas, *sorted(removing)),
        removing=removing or partition.removing,  # as ReplicationControlManager.changePartitionReassignment does
        adding=adding or partition.adding,
        election=Election.ONLINE,
    )
    return controller.with_partition(change(parameters, partition, target)), Error.NONE


def cancel_reassignment(parameters: Parameters, controller: Controller) -> tuple[Controller, Error]:
    """Back to the replicas of before; refused where nobody of them is in sync, unless that may be lost."""
    partition = controller.partition
    if not partition.replicas:
        return controller, Error.UNKNOWN_TOPIC_OR_PARTITION
    if not partition.adding and not partition.removing:
        return controller, Error.NO_REASSIGNMENT_IN_PROGRESS
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    if parameters.mode is Mode.ZK:
        return _reassign_zookeeper(parameters, controller, replicas)
    isr = partition.isr - partition.adding
    if not isr and not parameters.unclean:  # PartitionReassignmentRevert
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    target = wanted(parameters, partition, controller.active_brokers())._replace(
        replicas=replicas, isr=isr or frozenset({replicas[0]}), adding=frozenset(), removing=frozenset()
    )
    return controller.with_partition(change(parameters, partition, target)), Error.NONE


def _reassign_zookeeper(
    parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]
) -> tuple[Controller, Error]:
    """KafkaController.onPartitionReassignment, with the replicas of a reassignment that this one replaces."""
    before = controller.partition
    origin = [replica for replica in before.replicas if replica not in before.adding]
    assigned = tuple(dict.fromkeys((*replicas, *origin)))
    adding = frozenset(assigned).difference(origin)
    if not adding <= controller.active_brokers():  # KafkaController.validateReplicas
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    removing = frozenset(assigned).difference(replicas)
    partition = before._replace(replicas=assigned, adding=adding, removing=removing)
    for replica in before.replicas:
        if replica not in assigned:
            partition = zookeeper.remove_from_isr(parameters, partition, replica)
    controller = controller.with_partition(partition)
    if partition.isr.issuperset(replicas) or not (adding or removing):
        return _completed_zookeeper(parameters, controller), Error.NONE
    begun = zookeeper.written(partition, leader=partition.leader, isr=partition.isr)
    return controller.with_partition(begun), Error.NONE


def complete_reassignment(parameters: Parameters, controller: Controller) -> Controller:
    """ZooKeeper ends a reassignment whose replicas are all in sync (KafkaController.maybeCompleteReassignment)."""
    partition = controller.partition
    staying = [replica for replica in partition.replicas if replica not in partition.removing]
    if not (partition.adding or partition.removing) or not partition.isr.issuperset(staying):
        return controller
    return _completed_zookeeper(parameters, controller)


def resume_reassignment(parameters: Parameters, controller: Controller) -> Controller:
    """ZooKeeper sends all replicas of a reassignment to work again, with a new epoch (maybeResumeReassignments)."""
    partition = controller.partition
    completed = complete_reassignment(parameters, controller)
    if completed != controller or not (partition.adding or partition.removing):
        return completed
    return controller.with_partition(zookeeper.written(partition, leader=partition.leader, isr=partition.isr))


def _completed_zookeeper(parameters: Parameters, controller: Controller) -> Controller:
    """One of the replicas that stay leads, with a new epoch; then the others leave the ISR, one by one."""
    removing, active = controller.partition.removing, controller.active_brokers()
    staying = tuple(replica for replica in controller.partition.replicas if replica not in removing)
    partition = controller.partition._replace(replicas=staying, adding=frozenset(), removing=frozenset())
    leader = partition.leader
    if leader not in staying or leader not in active:  # moveReassignedPartitionLeaderIfRequired
        leader = first(staying, partition.isr & active)
    if leader != NO_LEADER:
        partition = zookeeper.written(partition, leader=leader, isr=partition.isr)
    for replica in sorted(removing):
        partition = zookeeper.remove_from_isr(parameters, partition, replica)
    return controller.with_partition(partition)
