"""Elections that somebody asks for (ElectLeaders, KIP-460), or that a controller holds on its own from time to time."""

from __future__ import annotations

from lockstep_model.controller import zookeeper
from lockstep_model.controller.change import Election, change, wanted
from lockstep_model.controller.state import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER


def elect_preferred(parameters: Parameters, controller: Controller) -> tuple[Controller, Error]:
    """Let the first replica of the assignment lead, if it is active and in sync.

    KRaft elects another one where nobody leads and the first cannot (PartitionChangeBuilder.electPreferredLeader).
    """
    partition = controller.partition
    if not partition.replicas:
        return controller, Error.UNKNOWN_TOPIC_OR_PARTITION
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return controller, Error.ELECTION_NOT_NEEDED
    if parameters.mode is Mode.ZK:
        if preferred not in partition.isr or not controller.active(preferred):
            return controller, Error.PREFERRED_LEADER_NOT_AVAILABLE
        elected = zookeeper.written(partition, leader=preferred, isr=partition.isr)
        return controller.with_partition(elected), Error.NONE
    return _held(parameters, controller, Election.PREFERRED, Error.PREFERRED_LEADER_NOT_AVAILABLE)


def elect_unclean(parameters: Parameters, controller: Controller) -> tuple[Controller, Error]:
    """Let anybody lead where nobody does, whatever the topic's unclean.leader.election.enable is."""
    leader = controller.partition.leader
    if not controller.partition.replicas:
        return controller, Error.UNKNOWN_TOPIC_OR_PARTITION
    if parameters.mode is Mode.ZK:
        if controller.active(leader):
            return controller, Error.ELECTION_NOT_NEEDED
        elected = zookeeper.elect_offline(parameters, controller, unclean=True)
        return elected, Error.NONE if elected != controller else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if leader != NO_LEADER:
        return controller, Error.ELECTION_NOT_NEEDED
    return _held(parameters, controller, Election.UNCLEAN, Error.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def unclean_enabled(parameters: Parameters, controller: Controller) -> Controller:
    """unclean.leader.election.enable was set to true, as it is in `parameters`: ZooKeeper's controller elects at once.

    KafkaController.processTopicUncleanLeaderElectionEnable. KRaft's does not look at it before it has a reason.
    """
    if parameters.mode is Mode.KRAFT:
        return controller
    return zookeeper.elect_offline(parameters, controller, unclean=parameters.unclean)


def scan_leaderless(parameters: Parameters, controller: Controller) -> Controller:
    """KRaft elects where nobody leads and it may be unclean, every unclean.leader.election.interval.ms.

    From 3.9 on (ReplicationControlManager.maybeElectUncleanLeaders).
    """
    if parameters.mode is Mode.ZK or not parameters.unclean:
        return controller
    return elect_unclean(parameters, controller)[0]


def _held(
    parameters: Parameters, controller: Controller, election: Election, otherwise: Error
) -> tuple[Controller, Error]:
    """ReplicationControlManager.electLeader: an election that changes nothing has failed."""
    partition = controller.partition
    target = wanted(parameters, partition, controller.active_brokers())._replace(election=election)
    changed = change(parameters, partition, target)
    return controller.with_partition(changed), otherwise if changed == partition else Error.NONE


def min_isr_changed(parameters: Parameters, controller: Controller) -> Controller:
    """min.insync.replicas was set, to whatever value: who was eligible under the old one is so no longer.

    ConfigurationControlManager writes a ClearElrRecord; `parameters` are those with the new value.
    """
    partition = controller.partition
    if not parameters.elr or not (partition.elr or partition.last_known_elr):
        return controller
    cleared = partition._replace(elr=frozenset(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)
    return controller.with_partition(cleared)
