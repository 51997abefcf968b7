"""Elections by ElectLeaders (KIP-460) or by the controller itself, and config changes that affect elections."""

from __future__ import annotations

from lockstep_model.controller import zookeeper
from lockstep_model.controller.change import Election, change, wanted
from lockstep_model.controller.state import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import NO_LEADER


def elect_preferred(parameters: Parameters, controller: Controller) -> tuple[Controller, Error]:
    """ElectLeaders(PREFERRED): the first replica of the assignment becomes leader if it is active and in the ISR.

    For a leaderless partition whose preferred replica is not available, KRaft elects another one
    (PartitionChangeBuilder.electPreferredLeader).
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
    """ElectLeaders(UNCLEAN) (KIP-460): any active replica may become leader of a leaderless partition.

    The topic's unclean.leader.election.enable does not matter. KRaft: ReplicationControlManager.electLeader; ZooKeeper:
    Election.leaderForOffline.
    """
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
    """unclean.leader.election.enable became true (as in `parameters`): ZooKeeper's controller elects at once.

    KafkaController.processTopicUncleanLeaderElectionEnable. The KRaft controller applies the value only at its next
    partition change or scan.
    """
    if parameters.mode is Mode.KRAFT:
        return controller
    return zookeeper.elect_offline(parameters, controller, unclean=parameters.unclean)


def scan_leaderless(parameters: Parameters, controller: Controller) -> Controller:
    """KRaft, from 3.9: unclean election for leaderless partitions, every unclean.leader.election.interval.ms.

    ReplicationControlManager.maybeElectUncleanLeaders; only for topics with unclean.leader.election.enable=true.
    """
    if parameters.mode is Mode.ZK or not parameters.unclean:
        return controller
    return elect_unclean(parameters, controller)[0]


def _held(
    parameters: Parameters, controller: Controller, election: Election, otherwise: Error
) -> tuple[Controller, Error]:
    """KRaft: ElectLeaders for one partition; an election without effect is an error.

    ReplicationControlManager.electLeader.
    """
    partition = controller.partition
    target = wanted(parameters, partition, controller.active_brokers())._replace(election=election)
    changed = change(parameters, partition, target)
    return controller.with_partition(changed), otherwise if changed == partition else Error.NONE


def min_isr_changed(parameters: Parameters, controller: Controller) -> Controller:
    """KRaft with ELR: any change of min.insync.replicas clears the ELR and the last known ELR (KIP-966).

    ConfigurationControlManager writes a ClearElrRecord. `parameters` hold the new value.
    """
    partition = controller.partition
    if not parameters.elr or not (partition.elr or partition.last_known_elr):
        return controller
    cleared = partition._replace(elr=frozenset(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)
    return controller.with_partition(cleared)
