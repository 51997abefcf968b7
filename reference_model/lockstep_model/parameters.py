"""What differs between versions, modes and settings of Kafka, as far as the model's rules look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_model.groups.parameters import GroupParameters, group_parameters_for

ELR_FEATURE = "eligible.leader.replicas.version"
TRANSACTION_FEATURE = "transaction.version"


class Mode(StrEnum):
    """Who keeps the metadata, and how brokers learn of it."""

    ZK = "zk"
    KRAFT = "kraft"


class ReassignmentEnds(StrEnum):
    """KRaft: who must be in the ISR for a reassignment to end (PartitionReassignmentReplicas)."""

    ADDED = "all that were added"
    """Before 3.8."""
    ALL = "all that stay, and all that were added"
    """From 3.8 on (KAFKA-15665)."""
    ADDED_UNLESS_FEWER = "all that were added, and all that stay where there are fewer than before"
    """From 4.2 or 4.3 on (KAFKA-19975): read in 4.3.1, and not in 4.1.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One Kafka, one topic. What is not said is what Kafka 4.1 and later do by default."""

    mode: Mode = Mode.KRAFT
    hw_gate: bool = True
    """The high watermark stays where it is while the ISR is smaller than min.insync.replicas (KIP-966, from 3.7)."""
    min_isr_within_replicas: bool = True
    """min.insync.replicas counts for no more than there are replicas (Partition.effectiveMinIsr, from 3.7)."""
    epoch_bump_on_isr_shrink: bool = False
    """The leader epoch rises when the controller takes a broker out of the ISR, though the leader stays (ZooKeeper,
    and KRaft before metadata version 3.6)."""
    elr: bool = True
    """The controller keeps eligible leader replicas (KIP-966)."""
    transaction_version: int = 2
    """0 and 1: epochs rise only in InitProducerId; 2: with every end of a transaction (KIP-890). What a client asks for
    goes by the versions of its own requests (`transactions.versions`)."""
    transaction_verification: bool = True
    """transaction.partition.verification.enable: a leader asks the coordinator before a transaction begins on it
    (KIP-890 part 1, from 3.6)."""
    abortable_errors: bool = True
    """Clients as new as this Kafka are told TRANSACTION_ABORTABLE (KIP-890, from 3.8: Produce version 11)."""
    transactions_of_4: bool = True
    """As from 4.0 on, whatever the transaction version: a batch's epoch is looked at before its verification, a
    transaction counts as open for its own epoch only, and partitions are added by nobody while markers are written."""
    first_sequence: bool = True
    """A transaction of version 2 begins with sequence 0 where nothing is known of its producer (ProducerAppendInfo; in
    4.1.2, and not in 4.0.2)."""
    coordinator_reloads: bool = False
    """A transaction coordinator loads its log again, in the epoch that it has, whenever the controller changes anything
    about its partition, the ISR too (TopicDelta.localChanges: KRaft before 3.8, KAFKA-15468)."""
    strict_markers: bool = True
    """A marker that ends a transaction of version 2 has a higher epoch than its records (KIP-1228; in 4.3.1, and not in
    4.1.2, which takes an equal one)."""
    new_incarnation_leaves_isr: bool = True
    """A broker that registers as a new process leaves the ISR, with or without ELR (KAFKA-18106, from 4.0)."""
    session_outlasts_fencing: bool = True
    """A broker's next process is refused until its session's time has passed, though it left in good order and is
    fenced (BrokerHeartbeatTracker, from 4.0); before that only while it is not fenced."""
    reassignment_ends: ReassignmentEnds = ReassignmentEnds.ADDED_UNLESS_FEWER
    unclean: bool = False
    """unclean.leader.election.enable, where it counts: KRaft before 3.9 does not look at it."""
    min_isr: int = 1
    replication: int = 3
    groups: GroupParameters = field(default_factory=GroupParameters)
    dropped: frozenset[str] = field(default=frozenset())
    """Guards that a mutant does without; see `mutants`."""

    def guards(self, guard: str) -> bool:
        """Whether this guard is there, which it is in all but the mutant that is named after it."""
        return guard not in self.dropped


def parameters_for(
    version: str,
    mode: str,
    features: Mapping[str, int] | None = None,
    *,
    unclean: bool = False,
    min_isr: int = 1,
    replication: int = 3,
) -> Parameters:
    """What this version does in this mode, on a cluster that was formatted with it and with these feature levels.

    A cluster that was upgraded keeps its old feature levels until they are raised: give them.
    """
    release = tuple(int(part) for part in version.partition("-")[0].split(".")[:2])
    kraft = Mode.ZK if mode == Mode.ZK else Mode.KRAFT
    levels = features or {}
    elr = levels.get(ELR_FEATURE, int(release >= (4, 1)))
    transaction_version = levels.get(TRANSACTION_FEATURE, 2 if release >= (4, 0) else 0)
    return Parameters(
        mode=kraft,
        hw_gate=release >= (3, 7),
        min_isr_within_replicas=release >= (3, 7),
        epoch_bump_on_isr_shrink=kraft is Mode.ZK or release < (3, 6),
        elr=kraft is Mode.KRAFT and elr > 0,
        transaction_version=transaction_version if kraft is Mode.KRAFT else 0,
        transaction_verification=release >= (3, 6),
        abortable_errors=release >= (3, 8),
        transactions_of_4=release >= (4, 0),
        first_sequence=release >= (4, 1),
        coordinator_reloads=kraft is Mode.KRAFT and release < (3, 8),
        strict_markers=release >= (4, 2),
        new_incarnation_leaves_isr=release >= (4, 0),
        session_outlasts_fencing=release >= (4, 0),
        reassignment_ends=_reassignment_ends(release),
        unclean=unclean and (kraft is Mode.ZK or release >= (3, 9)),
        min_isr=min_isr,
        replication=replication,
        groups=group_parameters_for(version),
    )


def _reassignment_ends(release: tuple[int, ...]) -> ReassignmentEnds:
    if release < (3, 8):
        return ReassignmentEnds.ADDED
    return ReassignmentEnds.ALL if release < (4, 2) else ReassignmentEnds.ADDED_UNLESS_FEWER
