"""Every partition change of the KRaft controller, whatever its cause (PartitionChangeBuilder.build).

The cause gives the target (`PartitionChange`). Completion of a reassignment, the ELR, the leader, the recovery state
and the epochs follow from the target.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from lockstep_model.controller.state import first
from lockstep_model.parameters import Parameters, ReassignmentEnds
from lockstep_model.registration import NO_LEADER, BrokerId, Brokers, Registration
from lockstep_model.replication.mutants import (
    ELECT_IN_SYNC,
    ELR_BELOW_MINIMUM,
    ELR_FORGETS_UNCLEAN,
    EPOCH_OF_CHANGE,
    EPOCH_OF_LEADER,
    LAST_KNOWN_LEADER_ACTIVE,
    LAST_MEMBER_STAYS,
)


class Election(Enum):
    """The kind of leader election (PartitionChangeBuilder.Election)."""

    PREFERRED = auto()
    """The preferred replica if it is in the ISR and active; otherwise as ONLINE."""
    ONLINE = auto()
    """The current leader if it may stay, otherwise the first ISR member in assignment order."""
    UNCLEAN = auto()
    """As ONLINE; if that finds no leader, the first active replica (unclean leader election)."""


class PartitionChange(NamedTuple):
    """The target of a partition change, before the changes that follow from it (setters of PartitionChangeBuilder)."""

    isr: Brokers
    acceptable: Brokers
    """Brokers that may lead (isAcceptableLeader)."""
    replicas: tuple[BrokerId, ...]
    adding: Brokers
    removing: Brokers
    recovering: bool
    election: Election = Election.ONLINE
    unclean_shutdown: Brokers = frozenset()
    """Replicas that restarted after an unclean shutdown and may have lost the end of their log (KIP-966)."""


class ElectionResult(NamedTuple):
    """Result of an election: leader, and whether it was unclean (PartitionChangeBuilder.ElectionResult)."""

    leader: BrokerId
    unclean: bool = False


def wanted(parameters: Parameters, partition: Registration, acceptable: Brokers) -> PartitionChange:
    """A target that keeps the partition as it is; callers change it by `_replace`.

    The KRaft controller applies unclean.leader.election.enable in every change but ElectLeaders and the start of a
    reassignment.
    """
    return PartitionChange(
        isr=partition.isr,
        acceptable=acceptable,
        replicas=partition.replicas,
        adding=partition.adding,
        removing=partition.removing,
        recovering=partition.recovering,
        election=Election.UNCLEAN if parameters.unclean else Election.ONLINE,
    )


def change(parameters: Parameters, partition: Registration, target: PartitionChange) -> Registration:
    """The partition after a change, with its new epochs; the same partition if no field changes.

    PartitionChangeBuilder.
    """
    target = _reassignment_completed(parameters, target)
    elr = _eligible(parameters, partition, target)
    elected = _elect(parameters, partition, target, elr)
    moved, isr = elected.leader != partition.leader, target.isr
    if moved and elected.unclean:
        isr, elr = frozenset({elected.leader}), frozenset()
    elif moved and elected.leader in elr:
        isr, elr = frozenset({elected.leader}), elr - {elected.leader}
    elif parameters.guards(LAST_MEMBER_STAYS) and not isr and not parameters.elr:
        isr = partition.isr
    recovering = target.recovering
    if recovering == partition.recovering and moved and elected.unclean:
        recovering = True
    changed = partition._replace(
        replicas=target.replicas,
        adding=target.adding,
        removing=target.removing,
        isr=isr,
        elr=elr,
        leader=elected.leader,
        last_known_elr=_last_known(parameters, partition, elected.leader),
        recovering=recovering,
    )
    return partition if changed == partition else _with_epochs(parameters, partition, changed)


def _reassignment_completed(parameters: Parameters, target: PartitionChange) -> PartitionChange:
    """A reassignment completes when the required replicas are in the ISR (PartitionReassignmentReplicas, KIP-455)."""
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    isr = target.isr - target.removing
    if not (target.adding or target.removing) or not isr or not replicas:
        return target
    if not isr.issuperset(_wanted_in_sync(parameters, target, frozenset(replicas))):
        return target
    return target._replace(replicas=replicas, isr=isr, adding=frozenset(), removing=frozenset())


def _wanted_in_sync(parameters: Parameters, target: PartitionChange, staying: Brokers) -> Brokers:
    """Replicas that must be in the ISR before a reassignment completes; by version, see `ReassignmentEnds`.

    A replica that is being removed never counts.
    """
    match parameters.reassignment_ends:
        case ReassignmentEnds.ADDED:
            return target.adding
        case ReassignmentEnds.ALL:
            return staying
        case ReassignmentEnds.ADDED_UNLESS_FEWER:
            return target.adding | staying if len(target.adding) < len(target.removing) else target.adding


def _eligible(parameters: Parameters, partition: Registration, target: PartitionChange) -> Brokers:
    """The ELR: replicas that left an ISR below min.insync.replicas and hold all committed records (KIP-966).

    While the ISR is below min.insync.replicas the high watermark does not advance, so a replica that leaves such an ISR
    misses no committed record until it loses the end of its log (PartitionChangeBuilder.maybePopulateTargetElr).
    """
    enough = len(target.isr) >= min(parameters.min_isr, len(partition.replicas))  # getTopicEffectiveMinIsr
    if not parameters.elr or (enough and parameters.guards(ELR_BELOW_MINIMUM)):
        return frozenset()
    eligible = (partition.elr | partition.isr) - target.isr
    return eligible - target.unclean_shutdown if parameters.guards(ELR_FORGETS_UNCLEAN) else eligible


def _elect(parameters: Parameters, partition: Registration, target: PartitionChange, elr: Brokers) -> ElectionResult:
    """Leader choice: ISR, then ELR, then the last known leader, then any active replica (electLeader, KIP-966)."""
    candidates = target.isr or elr  # the ELR counts only once the ISR is empty
    if not parameters.guards(ELECT_IN_SYNC):
        candidates = frozenset(target.replicas)
    order = (partition.leader, *target.replicas)
    if target.election is Election.PREFERRED:
        order = (target.replicas[0], *order)
    leader = first(order, candidates & target.acceptable)
    if leader != NO_LEADER:
        return ElectionResult(leader)
    if _last_known_leader_may_lead(parameters, partition, target, elr):
        return ElectionResult(partition.last_known_elr[0], unclean=True)
    if target.election is Election.UNCLEAN:
        leader = first(target.replicas, target.acceptable)
        return ElectionResult(leader, unclean=leader != NO_LEADER)
    return ElectionResult(NO_LEADER)


def _last_known_leader_may_lead(
    parameters: Parameters, partition: Registration, target: PartitionChange, elr: Brokers
) -> bool:
    """With ISR and ELR empty the last known leader may be elected, uncleanly, if it is active.

    canElectLastKnownLeader.

    Builds before the fix of KAFKA-19522 also elected a last known leader that was fenced.
    """
    if not parameters.elr or target.isr or elr or len(partition.last_known_elr) != 1:
        return False
    return partition.last_known_elr[0] in target.acceptable or not parameters.guards(LAST_KNOWN_LEADER_ACTIVE)


def _last_known(parameters: Parameters, partition: Registration, leader: BrokerId) -> tuple[BrokerId, ...]:
    """lastKnownElr: the last leader, kept while the partition has no leader (maybeUpdateLastKnownLeader, KIP-966)."""
    if not parameters.elr or leader == partition.leader:
        return partition.last_known_elr
    return () if leader != NO_LEADER else partition.last_known_elr or (partition.leader,)


def _with_epochs(parameters: Parameters, partition: Registration, changed: Registration) -> Registration:
    """The epochs after a change: the partition epoch always rises, the leader epoch only in some cases.

    The leader epoch rises when the leader changes, when replicas leave the assignment, and before metadata version 3.6
    with every ISR shrink (KAFKA-15021; PartitionRegistration.merge).
    """
    begins_anew = (
        (changed.leader != partition.leader and parameters.guards(EPOCH_OF_LEADER))
        or not set(partition.replicas) <= set(changed.replicas)
        or (parameters.epoch_bump_on_isr_shrink and not partition.isr <= changed.isr)
    )
    return changed._replace(
        leader_epoch=partition.leader_epoch + begins_anew,
        partition_epoch=partition.partition_epoch + parameters.guards(EPOCH_OF_CHANGE),
    )
