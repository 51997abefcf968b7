"""Differences between Kafka versions, modes and settings that the model's rules depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lockstep_model.groups.parameters import GroupParameters, group_parameters_for

ELR_FEATURE = "eligible.leader.replicas.version"
TRANSACTION_FEATURE = "transaction.version"


class Mode(StrEnum):
    """Where the metadata is kept: ZooKeeper (LeaderAndIsr requests) or the KRaft metadata log."""

    ZK = "zk"
    KRAFT = "kraft"


class ReassignmentEnds(StrEnum):
    """KRaft: the replicas that must be in the ISR for a reassignment to complete (PartitionReassignmentReplicas)."""

    ADDED = "all that were added"
    """Before 3.8."""
    ALL = "all that stay, and all that were added"
    """From 3.8 on (KAFKA-15665)."""
    ADDED_UNLESS_FEWER = "all that were added, and all that stay where there are fewer than before"
    """From 4.2 or 4.3 on (KAFKA-19975): read in 4.3.1, and absent in 4.1.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One cluster and one topic. Defaults are those of Kafka 4.1 and later."""

    mode: Mode = Mode.KRAFT
    hw_gate: bool = True
    """The high watermark does not advance while the ISR is smaller than min.insync.replicas (KIP-966, from 3.7)."""
    min_isr_within_replicas: bool = True
    """The effective min.insync.replicas is at most the replica count (Partition.effectiveMinIsr, from 3.7)."""
    epoch_bump_on_isr_shrink: bool = False
    """The leader epoch rises when the controller removes a broker from the ISR, even if the leader stays (ZooKeeper,
    and KRaft before metadata version 3.6)."""
    elr: bool = True
    """The controller keeps eligible leader replicas (KIP-966)."""
    transaction_version: int = 2
    """0 and 1: InitProducerId bumps the producer epoch; 2: every EndTxn does too (KIP-890). A client's own version
    follows from its request versions (`transactions.versions`)."""
    transaction_verification: bool = True
    """transaction.partition.verification.enable: the leader verifies with the coordinator the first batch of a
    transaction (KIP-890 part 1, from 3.6)."""
    abortable_errors: bool = True
    """Clients of this version get TRANSACTION_ABORTABLE (KIP-890, from 3.8: Produce version 11)."""
    transactions_of_4: bool = True
    """From 4.0 on, in any transaction version: the producer epoch is validated before the verification guard, a
    transaction is ongoing for its own epoch only, and no partition is added while markers are written."""
    first_sequence: bool = True
    """A version 2 transaction of a producer id without state must begin with sequence 0 (ProducerAppendInfo; in 4.1.2,
    and not in 4.0.2)."""
    coordinator_reloads: bool = False
    """A transaction coordinator reloads its partition, in its present epoch, on any change of it, of the ISR too
    (TopicDelta.localChanges: KRaft before 3.8, KAFKA-15468)."""
    strict_markers: bool = True
    """The marker of a version 2 transaction has a higher producer epoch than its records (KIP-1228; in 4.3.1, and not
    in 4.1.2, which accepts an equal one)."""
    new_incarnation_leaves_isr: bool = True
    """A broker that registers as a new incarnation leaves the ISR, with or without ELR (KAFKA-18106, from 4.0)."""
    session_outlasts_fencing: bool = True
    """A new incarnation is refused until the broker's session times out, even after a clean shutdown that fenced it
    (BrokerHeartbeatTracker, from 4.0); before, only while the broker is not fenced."""
    reassignment_ends: ReassignmentEnds = ReassignmentEnds.ADDED_UNLESS_FEWER
    unclean: bool = False
    """unclean.leader.election.enable, where it has an effect: KRaft before 3.9 ignores it."""
    min_isr: int = 1
    replication: int = 3
    groups: GroupParameters = field(default_factory=GroupParameters)
    dropped: frozenset[str] = field(default=frozenset())
    """Guards that a mutant leaves out; see `mutants`."""

    def guards(self, guard: str) -> bool:
        """Whether this guard is in force, as in all but the mutant of its name."""
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
    """Parameters of a Kafka version in this mode, on a cluster formatted with it and with these feature levels.

    An upgraded cluster keeps its old feature levels until they are raised: pass them.
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
