"""The replica assignment of a partition: creation, reassignment (KIP-455), its completion and its cancellation."""

from __future__ import annotations

from lockstep_model.controller import zookeeper
from lockstep_model.controller.change import Election, change, wanted
from lockstep_model.controller.state import Controller, ZnodeWrite, first
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, Brokers, Registration


def create(parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]) -> tuple[Controller, Error]:
    """CreateTopics with a manual assignment: the active replicas form the ISR, and the first of them is the leader.

    KRaft: ReplicationControlManager.createTopic. In ZooKeeper mode a partition without a live replica stays new, so
    call this again when a broker registers (PartitionStateMachine.initializeLeaderAndIsrForPartitions).
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
    """No duplicate replicas; KRaft also requires that each broker is registered (validateManualPartitionAssignment)."""
    known = parameters.mode is Mode.ZK or all(controller.broker(replica) for replica in replicas)
    return bool(replicas) and len(set(replicas)) == len(replicas) and known


def reassign(
    parameters: Parameters, controller: Controller, replicas: tuple[BrokerId, ...]
) -> tuple[Controller, Error]:
    """AlterPartitionReassignments (KIP-455): adds the new replicas now, removes the old ones when the ISR allows it.

    KRaft: ReplicationControlManager.changePartitionReassignment; ZooKeeper: KafkaController.onPartitionReassignment.
    """
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
    """AlterPartitionReassignments with null replicas (KIP-455): reverts to the replicas before the reassignment.

    KRaft refuses this when none of those replicas is in the ISR, unless the topic allows unclean election
    (PartitionReassignmentRevert).
    """
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
    """ZooKeeper: queues all the znode writes of KafkaController.onPartitionReassignment, in order.

    The first write is the topic znode with the old and the new replicas; brokers are not told of it. Then the replicas
    of a reassignment that this one replaces leave the ISR.
    """
    before = controller.partition
    origin = [replica for replica in before.replicas if replica not in before.adding]
    assigned = tuple(dict.fromkeys((*replicas, *origin)))
    adding = frozenset(assigned).difference(origin)
    if not adding <= controller.active_brokers():  # KafkaController.validateReplicas
        return controller, Error.INVALID_REPLICA_ASSIGNMENT
    partition = before._replace(replicas=assigned, adding=adding, removing=frozenset(assigned).difference(replicas))
    writes = [ZnodeWrite(before, shown=partition)] if partition != before else []
    replaced = [replica for replica in before.replicas if replica not in assigned]
    for without in zookeeper.without(parameters, partition, replaced):
        writes.append(ZnodeWrite(without))
        partition = without
    return controller.will_write(*writes, *reassignment(parameters, controller.with_partition(partition))), Error.NONE


def complete_reassignment(parameters: Parameters, controller: Controller) -> tuple[ZnodeWrite, ...]:
    """ZooKeeper: the writes that end a reassignment once its target replicas are in the ISR.

    maybeCompleteReassignment.
    """
    partition = controller.partition
    return reassignment(parameters, controller) if _moves(partition) and _all_in_sync(partition) else ()


def resume_reassignment(parameters: Parameters, controller: Controller) -> tuple[ZnodeWrite, ...]:
    """ZooKeeper: the writes with which the controller resumes a pending reassignment (maybeResumeReassignments)."""
    return reassignment(parameters, controller) if _moves(controller.partition) else ()


def reassignment(parameters: Parameters, controller: Controller) -> tuple[ZnodeWrite, ...]:
    """ZooKeeper: the writes of KafkaController.onPartitionReassignment from the present ISR on.

    While a target replica is missing from the ISR, the leader epoch is raised so that all replicas, old and new, get a
    LeaderAndIsr request. When the target replicas are all in the ISR, one of them becomes leader with a new leader
    epoch, and the removed replicas leave the ISR. The topic znode with the final assignment is written last, after the
    LeaderAndIsr requests, so that a controller that fails over still finds the reassignment pending.
    """
    partition, active = controller.partition, controller.active_brokers()
    if not _all_in_sync(partition):
        return (ZnodeWrite(zookeeper.written(partition, leader=partition.leader, isr=partition.isr)),)
    staying = _staying(partition)
    told = partition._replace(replicas=staying, adding=frozenset(), removing=frozenset())
    leader = told.leader
    if leader not in staying or leader not in active:  # moveReassignedPartitionLeaderIfRequired
        leader = first(staying, told.isr & active)
    led = [zookeeper.written(told, leader=leader, isr=told.isr)] if leader != NO_LEADER else []
    told = led[-1] if led else told
    steps = [*led, *zookeeper.without(parameters, told, sorted(partition.removing))]
    if not _moves(partition):
        return tuple(map(ZnodeWrite, steps))
    assigned = partition.replicas, partition.adding, partition.removing
    return *(ZnodeWrite(step, _assigned(step, *assigned)) for step in steps), ZnodeWrite(steps[-1] if steps else told)


def _assigned(
    partition: Registration, replicas: tuple[BrokerId, ...], adding: Brokers, removing: Brokers
) -> Registration:
    """The partition with the assignment that the topic znode still shows."""
    return partition._replace(replicas=replicas, adding=adding, removing=removing)


def _staying(partition: Registration) -> tuple[BrokerId, ...]:
    """The target replicas of a reassignment: all but those being removed."""
    return tuple(replica for replica in partition.replicas if replica not in partition.removing)


def _moves(partition: Registration) -> bool:
    """Whether a reassignment of this partition is pending."""
    return bool(partition.adding or partition.removing)


def _all_in_sync(partition: Registration) -> bool:
    """Whether the target replicas are all in the ISR (KafkaController.isReassignmentComplete)."""
    return not _moves(partition) or partition.isr.issuperset(_staying(partition))
