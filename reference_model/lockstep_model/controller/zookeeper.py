"""Partition changes of the ZooKeeper controller: leader election, and removal of brokers from the ISR.

Each write raises the version of the partition's state znode, which is the partition epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockstep_model.controller.state import Controller, first
from lockstep_model.parameters import Parameters
from lockstep_model.registration import NO_LEADER, BrokerId, Brokers, Registration
from lockstep_model.replication.mutants import ELECT_IN_SYNC, LAST_MEMBER_STAYS


def written(partition: Registration, *, leader: BrokerId, isr: Brokers) -> Registration:
    """The partition with this leader and ISR and the next leader epoch (LeaderAndIsr.newLeaderAndIsr)."""
    leader_epoch, partition_epoch = partition.leader_epoch + 1, partition.partition_epoch + 1
    return partition._replace(leader=leader, isr=isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch)


def elect_offline(parameters: Parameters, controller: Controller, *, unclean: bool) -> Controller:
    """Offline-partition election: the first live ISR member, else with unclean election the first live replica.

    Election.leaderForOffline. Brokers that are not live leave the ISR; an unclean leader is its only member.
    """
    partition, active = controller.partition, controller.active_brokers()
    if partition.leader in active:
        return controller
    candidates = partition.isr if parameters.guards(ELECT_IN_SYNC) else frozenset(partition.replicas)
    leader = first(partition.replicas, candidates & active)
    if leader != NO_LEADER:
        return controller.with_partition(written(partition, leader=leader, isr=partition.isr & active))
    leader = first(partition.replicas, active)
    if not unclean or leader == NO_LEADER:
        return controller
    elected = written(partition, leader=leader, isr=frozenset({leader}))
    return controller.with_partition(elected._replace(recovering=True))


def remove_from_isr(parameters: Parameters, partition: Registration, broker: BrokerId) -> Registration:
    """Removes a broker from the ISR, unless it is the last member; if it led, the partition has no leader.

    ReplicaStateMachine.removeReplicasFromIsr. The leader epoch rises even if the ISR stays the same.
    """
    if broker not in partition.isr:
        return partition
    isr = partition.isr - {broker}
    if parameters.guards(LAST_MEMBER_STAYS) and not isr:
        isr = partition.isr
    leader = NO_LEADER if broker == partition.leader else partition.leader
    changed = written(partition, leader=leader, isr=isr)
    if leader == partition.leader and not parameters.epoch_bump_on_isr_shrink:
        return changed._replace(leader_epoch=partition.leader_epoch)
    return changed


def without(parameters: Parameters, partition: Registration, leaving: Iterable[BrokerId]) -> Iterator[Registration]:
    """The partition after each removal of one of these brokers from the ISR, one znode write per broker."""
    for broker in leaving:
        if broker in partition.isr:
            partition = remove_from_isr(parameters, partition, broker)
            yield partition


def elect_instead_of_leaving(controller: Controller) -> Registration:
    """Controlled shutdown of the leader: the first live ISR member that is not shutting down becomes leader.

    Election.leaderForControlledShutdown. Brokers that are shutting down leave the ISR; if no other member is left,
    nothing changes.
    """
    partition = controller.partition
    staying = partition.isr & controller.active_brokers()
    leader = first(partition.replicas, staying)
    if leader == NO_LEADER:
        return partition
    leaving = frozenset(number for number, broker in controller.brokers if broker.shutting_down)
    return written(partition, leader=leader, isr=partition.isr - leaving)
