"""How a KRaft controller changes a partition: every change, whatever its cause, goes through `change`.

The cause says what it wants (`Wanted`); the reassignment, the eligible leader replicas, the leader, the epochs and the
recovery state follow from it, in this order (PartitionChangeBuilder.build).
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
    """Which leader is looked for (PartitionChangeBuilder.Election)."""

    PREFERRED = auto()
    """The first of the assignment, if it is in the ISR; otherwise as below."""
    ONLINE = auto()
    """The leader that is there, or the first in the assignment that is in the ISR."""
    UNCLEAN = auto()
    """As above, and where there is none any replica at all."""


class Wanted(NamedTuple):
    """What a change is to make of a partition, before its consequences."""

    isr: Brokers
    acceptable: Brokers
    """The brokers that may lead."""
    replicas: tuple[BrokerId, ...]
    adding: Brokers
    removing: Brokers
    recovering: bool
    election: Election = Election.ONLINE
    unclean_shutdown: Brokers = frozenset()
    """Who came back from an unclean end, and may lack what it had."""


class Elected(NamedTuple):
    """Who shall lead, and whether it may lack records that were committed."""

    leader: BrokerId
    unclean: bool = False


def wanted(parameters: Parameters, partition: Registration, acceptable: Brokers) -> Wanted:
    """To leave a partition as it is, with an unclean election where the topic allows it; to be changed by `_replace`.

    KRaft looks at unclean.leader.election.enable in every change but ElectLeaders and the start of a reassignment.
    """
    return Wanted(
        isr=partition.isr,
        acceptable=acceptable,
        replicas=partition.replicas,
        adding=partition.adding,
        removing=partition.removing,
        recovering=partition.recovering,
        election=Election.UNCLEAN if parameters.unclean else Election.ONLINE,
    )


def change(parameters: Parameters, partition: Registration, target: Wanted) -> Registration:
    """The partition after a change, with its epochs; itself where nothing is to be done (PartitionChangeBuilder)."""
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


def _reassignment_completed(parameters: Parameters, target: Wanted) -> Wanted:
    """A reassignment ends when those are in the ISR that must be, which depends on the version (`ReassignmentEnds`)."""
    replicas = tuple(replica for replica in target.replicas if replica not in target.removing)
    isr = target.isr - target.removing
    if not (target.adding or target.removing) or not isr or not replicas:
        return target
    if not isr.issuperset(_wanted_in_sync(parameters, target, frozenset(replicas))):
        return target
    return target._replace(replicas=replicas, isr=isr, adding=frozenset(), removing=frozenset())


def _wanted_in_sync(parameters: Parameters, target: Wanted, staying: Brokers) -> Brokers:
    """Who must be in the ISR for a reassignment to end; one that is removed never is."""
    match parameters.reassignment_ends:
        case ReassignmentEnds.ADDED:
            return target.adding
        case ReassignmentEnds.ALL:
            return staying
        case ReassignmentEnds.ADDED_UNLESS_FEWER:
            return target.adding | staying if len(target.adding) < len(target.removing) else target.adding


def _eligible(parameters: Parameters, partition: Registration, target: Wanted) -> Brokers:
    """The eligible leader replicas: who left an ISR that is below the minimum, and has all that was committed.

    While the ISR is smaller than min.insync.replicas the high watermark stays where it is, so what leaves such an ISR
    lacks nothing, until it loses the end of its log (KIP-966; PartitionChangeBuilder.maybePopulateTargetElr).
    """
    enough = len(target.isr) >= min(parameters.min_isr, len(partition.replicas))  # getTopicEffectiveMinIsr
    if not parameters.elr or (enough and parameters.guards(ELR_BELOW_MINIMUM)):
        return frozenset()
    eligible = (partition.elr | partition.isr) - target.isr
    return eligible - target.unclean_shutdown if parameters.guards(ELR_FORGETS_UNCLEAN) else eligible


def _elect(parameters: Parameters, partition: Registration, target: Wanted, elr: Brokers) -> Elected:
    """Who shall lead: in sync, or eligible, or the last known leader, or anybody (electLeader)."""
    candidates = target.isr or elr  # the ELR counts only once the ISR is empty
    if not parameters.guards(ELECT_IN_SYNC):
        candidates = frozenset(target.replicas)
    order = (partition.leader, *target.replicas)
    if target.election is Election.PREFERRED:
        order = (target.replicas[0], *order)
    leader = first(order, candidates & target.acceptable)
    if leader != NO_LEADER:
        return Elected(leader)
    if _last_known_leader_may_lead(parameters, partition, target, elr):
        return Elected(partition.last_known_elr[0], unclean=True)
    if target.election is Election.UNCLEAN:
        leader = first(target.replicas, target.acceptable)
        return Elected(leader, unclean=leader != NO_LEADER)
    return Elected(NO_LEADER)


def _last_known_leader_may_lead(parameters: Parameters, partition: Registration, target: Wanted, elr: Brokers) -> bool:
    """Nobody is known to be complete any more: the last leader has most, and may lead again if it is there.

    Builds before KAFKA-19522 was fixed did not look whether it is there (canElectLastKnownLeader).
    """
    if not parameters.elr or target.isr or elr or len(partition.last_known_elr) != 1:
        return False
    return partition.last_known_elr[0] in target.acceptable or not parameters.guards(LAST_KNOWN_LEADER_ACTIVE)


def _last_known(parameters: Parameters, partition: Registration, leader: BrokerId) -> tuple[BrokerId, ...]:
    """The last leader, from when nobody leads until somebody does again (maybeUpdateLastKnownLeader)."""
    if not parameters.elr or leader == partition.leader:
        return partition.last_known_elr
    return () if leader != NO_LEADER else partition.last_known_elr or (partition.leader,)


def _with_epochs(parameters: Parameters, partition: Registration, changed: Registration) -> Registration:
    """Every change has its partition epoch; a leader epoch only those after which replicas must begin anew.

    That is with another leader, when replicas are taken from the assignment, and before metadata version 3.6 with
    every smaller ISR (KAFKA-15021; PartitionRegistration.merge).
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
