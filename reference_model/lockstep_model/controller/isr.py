"""AlterPartition: validation order and effect (KIP-497)."""

from __future__ import annotations

from lockstep_model.controller.assignment import complete_reassignment
from lockstep_model.controller.change import change, wanted
from lockstep_model.controller.state import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import AlterPartition, BrokerId, Registration
from lockstep_model.replication.mutants import BROKER_EPOCH_OF_MEMBERS, FENCED_CANNOT_JOIN, PARTITION_EPOCH_OF_ISR


def alter_partition(
    parameters: Parameters, controller: Controller, request: AlterPartition
) -> tuple[Controller, Error]:
    """AlterPartition (KIP-497): the controller commits the ISR that the leader proposes, or returns an error."""
    if parameters.mode is Mode.ZK:
        begun, error = begin_alter_partition(parameters, controller, request)
        return begun.finished(), error
    return _alter_partition_kraft(parameters, controller, request)


def _alter_partition_kraft(
    parameters: Parameters, controller: Controller, request: AlterPartition
) -> tuple[Controller, Error]:
    """KRaft: ReplicationControlManager.alterPartition.

    If the new ISR completes a reassignment, another leader may be elected; the response is then NEW_LEADER_ELECTED.
    """
    refusal = _refusal_kraft(parameters, controller, request)
    if refusal is not Error.NONE:
        return controller, refusal
    partition = controller.partition
    target = wanted(parameters, partition, controller.active_brokers())
    target = target._replace(isr=request.isr, recovering=request.recovering)
    changed = change(parameters, partition, target)
    error = Error.NONE if changed.leader == request.broker else Error.NEW_LEADER_ELECTED
    return controller.with_partition(changed), error


def _refusal_kraft(parameters: Parameters, controller: Controller, request: AlterPartition) -> Error:
    """KRaft: the error of the first check that fails, in this order.

    ReplicationControlManager.validateAlterPartitionData.
    """
    partition = controller.partition
    broker = controller.broker(request.broker)
    if broker is None or broker.epoch != request.broker_epoch:
        return Error.STALE_BROKER_EPOCH
    if not partition.replicas:
        return Error.UNKNOWN_TOPIC_ID
    if _ahead(partition, request):
        return Error.NOT_CONTROLLER
    if request.leader_epoch < partition.leader_epoch:
        return Error.FENCED_LEADER_EPOCH
    if request.broker != partition.leader:
        return Error.INVALID_REQUEST
    if parameters.guards(PARTITION_EPOCH_OF_ISR) and request.partition_epoch < partition.partition_epoch:
        return Error.INVALID_UPDATE_VERSION
    if not request.isr.issubset(partition.replicas) or partition.leader not in request.isr:
        return Error.INVALID_REQUEST
    if _recovers_badly(partition, request):
        return Error.INVALID_REQUEST
    if not all(_may_join(parameters, controller, request, member) for member in request.isr):
        return Error.INELIGIBLE_REPLICA
    return Error.NONE


def _may_join(parameters: Parameters, controller: Controller, request: AlterPartition, member: BrokerId) -> bool:
    """Whether a broker may join the ISR: not fenced or shutting down (KIP-841), broker epoch as proposed (KIP-903).

    ReplicationControlManager.ineligibleReplicasForIsr.
    """
    if parameters.guards(FENCED_CANNOT_JOIN) and not controller.active(member):  # KIP-841
        return False
    broker, epochs = controller.broker(member), dict(request.epochs)
    if broker is None or member not in epochs or not parameters.guards(BROKER_EPOCH_OF_MEMBERS):
        return broker is not None
    return epochs[member] == broker.epoch  # KIP-903: else the broker restarted after it caught up


def begin_alter_partition(
    parameters: Parameters, controller: Controller, request: AlterPartition
) -> tuple[Controller, Error]:
    """ZooKeeper: KafkaController.tryProcessAlterPartition, then the writes that complete a pending reassignment.

    Unlike KRaft, it checks neither that the sender is the leader nor that the ISR is a subset of the replicas.
    """
    partition = controller.partition
    broker = controller.broker(request.broker)
    if broker is None or broker.fenced or broker.epoch != request.broker_epoch:
        return controller, Error.STALE_BROKER_EPOCH
    if not partition.replicas:
        return controller, Error.UNKNOWN_TOPIC_ID
    if _ahead(partition, request):
        return controller, Error.NOT_CONTROLLER
    if request.leader_epoch < partition.leader_epoch:
        return controller, Error.FENCED_LEADER_EPOCH
    altered = partition._replace(leader=request.broker, isr=request.isr, recovering=request.recovering)
    if altered == partition:  # before the partition-epoch check, so that a retry succeeds
        return controller, Error.NONE
    if parameters.guards(PARTITION_EPOCH_OF_ISR) and request.partition_epoch < partition.partition_epoch:
        return controller, Error.INVALID_UPDATE_VERSION
    if _recovers_badly(partition, request):
        return controller, Error.INVALID_REQUEST
    if parameters.guards(FENCED_CANNOT_JOIN) and not request.isr <= controller.active_brokers():
        return controller, Error.INELIGIBLE_REPLICA
    altered = altered._replace(partition_epoch=partition.partition_epoch + 1)
    controller = controller.with_partition(altered)
    return controller.will_write(*complete_reassignment(parameters, controller)), Error.NONE


def _ahead(partition: Registration, request: AlterPartition) -> bool:
    """Whether the request has a higher epoch than this controller, which is then probably no longer the active one."""
    return request.leader_epoch > partition.leader_epoch or request.partition_epoch > partition.partition_epoch


def _recovers_badly(partition: Registration, request: AlterPartition) -> bool:
    """Whether the request enters RECOVERING, or stays in it with more than one ISR member (KIP-704)."""
    return request.recovering and (len(request.isr) > 1 or not partition.recovering)
