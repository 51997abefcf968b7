"""Which brokers hold a partition: its creation, and reassignments with their end or their cancellation."""

from __future__ import annotations

from lockstep_model.controller import zookeeper
from lockstep_model.controller.change import Election, change, wanted
from lockstep_model.controller.state import Controller, Written, first
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, Brokers, Registration


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
        return _reassigned(parameters, controller, replicas)
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
    if not _moves(partition):
        return controller, Error.NO_REASSIGNMENT_IN_PROGRESS
    replicas = tuple(replica for replica in partition.replicas if replica not in partition.adding)
    if parameters.mode is Mode.ZK:
        return _reassigned(parameters, controller, replicas)
    isr = partition.isr - partition.adding
    if not isr and not parameters.unclean:  # PartitionReassignmentRevert
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    target = wanted(parameters, partition, controller.active_brokers())._replace(
        replicas=replicas, isr=isr or frozenset({replicas[0]}), adding=frozenset(), removing=frozenset()
    )
    return controller.with_partition(change(parameters, partition, target)), Error.NONE


def _reassigned(
    parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]
) -> tuple[Controller, Error]:
    begun, error = begin_reassignment(parameters, controller, replicas)
    return begun.finished(), error


def begin_reassignment(
    parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]
) -> tuple[Controller, Error]:
    """ZooKeeper's controller will write all of KafkaController.onPartitionReassignment, one znode after the other.

    First where the partition is and will be, of which no broker is told, and without the replicas of a reassignment
    that this one replaces.
    """
    before = controller.partition
    origin = [replica for replica in before.replicas if replica not in before.adding]
    assigned = tuple(dict.fromkeys((*replicas, *origin)))
    adding = frozenset(assigned).difference(origin)
    if not adding <= controller.active_brokers():  # KafkaController.validateReplicas
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    partition = before._replace(replicas=assigned, adding=adding, removing=frozenset(assigned).difference(replicas))
    writes = [Written(before, shown=partition)] if partition != before else []
    replaced = [replica for replica in before.replicas if replica not in assigned]
    for without in zookeeper.without(parameters, partition, replaced):
        writes.append(Written(without))
        partition = without
    return controller.will_write(*writes, *reassignment(parameters, controller.with_partition(partition))), Error.NONE


def complete_reassignment(parameters: Parameters, controller: Controller) -> tuple[Written, ...]:
    """What ZooKeeper's controller writes if all replicas of a reassignment are in sync (maybeCompleteReassignment)."""
    partition = controller.partition
    return reassignment(parameters, controller) if _moves(partition) and _all_in_sync(partition) else ()


def resume_reassignment(parameters: Parameters, controller: Controller) -> tuple[Written, ...]:
    """What ZooKeeper's controller writes for a reassignment that goes on (maybeResumeReassignments)."""
    return reassignment(parameters, controller) if _moves(controller.partition) else ()


def reassignment(parameters: Parameters, controller: Controller) -> tuple[Written, ...]:
    """Send all replicas of a reassignment to work with a new epoch; or, if all that stay are in sync, end it.

    Then one of them leads, with a new epoch, and the others leave the ISR. Brokers are told so of the assignment that
    comes last in its znode, for a controller that takes over must find what is left to do.
    """
    partition, active = controller.partition, controller.active_brokers()
    if not _all_in_sync(partition):
        return (Written(zookeeper.written(partition, leader=partition.leader, isr=partition.isr)),)
    staying = _staying(partition)
    told = partition._replace(replicas=staying, adding=frozenset(), removing=frozenset())
    leader = told.leader
    if leader not in staying or leader not in active:  # moveReassignedPartitionLeaderIfRequired
        leader = first(staying, told.isr & active)
    led = [zookeeper.written(told, leader=leader, isr=told.isr)] if leader != NO_LEADER else []
    told = led[-1] if led else told
    steps = [*led, *zookeeper.without(parameters, told, sorted(partition.removing))]
    if not _moves(partition):
        return tuple(map(Written, steps))
    assigned = partition.replicas, partition.adding, partition.removing
    return *(Written(step, _assigned(step, *assigned)) for step in steps), Written(steps[-1] if steps else told)


def _assigned(
    partition: Registration, replicas: tuple[BrokerId, ...], adding: Brokers, removing: Brokers
) -> Registration:
    return partition._replace(replicas=replicas, adding=adding, removing=removing)


def _staying(partition: Registration) -> tuple[BrokerId, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.removing)


def _moves(partition: Registration) -> bool:
    return bool(partition.adding or partition.removing)


def _all_in_sync(partition: Registration) -> bool:
    """KafkaController.isReassignmentComplete."""
    return not _moves(partition) or partition.isr.issuperset(_staying(partition))
