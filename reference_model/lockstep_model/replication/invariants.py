"""Invariants of one partition's replication (kafka-semantics.md §2.3, I1 to I11, and one more).

Committed records are kept only without unclean elections and within limits. Without ELR the ISR always needs a member
whose log was never cut; with ELR fewer than min.insync.replicas brokers may shut down uncleanly (KIP-966). Bounds
beyond these limits show the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockstep_model.controller import Controller
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.log import Offset
from lockstep_model.partition.replica import effective_min_isr, waits_for
from lockstep_model.registration import NO_LEADER
from lockstep_model.replication.state import Broker, Metadata, ReplicationLayout, Witness
from lockstep_model.state_machine import Invariant, Transition

LEADER_IN_ISR = "leader-in-isr"
HW_WITHIN_LOG = "hw-within-log"
EPOCHS_MONOTONE = "epochs-monotone"
LEADER_CANDIDATE_COMPLETENESS = "leader-candidate-completeness"
LEADER_COMPLETENESS = "leader-completeness"
LOG_MATCHING = "log-matching"
MAXIMAL_ISR_SUPERSET = "maximal-isr-superset"
ACKNOWLEDGED_IS_COMMITTED = "acknowledged-is-committed"
COMMITTED_READS_STABLE = "committed-reads-stable"
LEADER_HW_MONOTONE = "leader-hw-monotone"
HW_FROZEN_BELOW_MIN_ISR = "hw-frozen-below-min-isr"
NO_FENCED_IN_ISR = "no-fenced-in-isr"
ONLY_ELIGIBLE_ASKED_FOR = "only-eligible-asked-for"


def invariants(parameters: Parameters, places: ReplicationLayout) -> Iterator[Invariant | Transition]:
    """The invariants that Kafka promises with these parameters."""
    metadata, witness = ReplicationLayout.METADATA, ReplicationLayout.WITNESS
    yield Invariant(name=LEADER_IN_ISR, reads=(metadata,), holds=leader_in_isr)
    yield Invariant(name=NO_FENCED_IN_ISR, reads=(metadata,), holds=no_fenced_in_isr)
    yield Invariant(name=ACKNOWLEDGED_IS_COMMITTED, reads=(witness,), holds=acknowledged_is_committed)
    yield Transition(name=EPOCHS_MONOTONE, place=metadata, holds=epochs_monotone)
    judge = Judge(parameters)
    for b in places.brokers:
        broker = places.broker(b)
        yield Invariant(name=HW_WITHIN_LOG, reads=(broker,), holds=hw_within_log)
        yield Transition(name=LEADER_HW_MONOTONE, place=broker, holds=leader_hw_monotone)
        yield Invariant(name=MAXIMAL_ISR_SUPERSET, reads=(broker, metadata), holds=judge.maximal_isr_superset)
        yield Transition(name=ONLY_ELIGIBLE_ASKED_FOR, place=broker, holds=judge.only_eligible_asked_for)
        if parameters.hw_gate:
            yield Transition(name=HW_FROZEN_BELOW_MIN_ISR, place=broker, holds=judge.hw_frozen_below_min_isr)
        if not parameters.unclean:
            reads = (witness, broker, metadata)
            yield Invariant(name=COMMITTED_READS_STABLE, reads=(witness, broker), holds=committed_reads_stable)
            yield Invariant(name=LEADER_COMPLETENESS, reads=reads, holds=leader_completeness)
            yield Invariant(name=LEADER_CANDIDATE_COMPLETENESS, reads=reads, holds=leader_candidate_completeness)
    for one, other in places.pairs:
        if one < other and not parameters.unclean:
            yield Invariant(name=LOG_MATCHING, reads=(places.broker(one), places.broker(other)), holds=log_matching)


def leader_in_isr(metadata: Metadata) -> bool:
    """I1: the leader, if there is one, is in the ISR."""
    partition = metadata.controller.partition
    return partition.leader == NO_LEADER or partition.leader in partition.isr


def hw_within_log(broker: Broker) -> bool:
    """I2: the high watermark is between the log start offset and the log end offset."""
    return broker.replica.log.start <= broker.replica.high_watermark <= broker.replica.log.end


def epochs_monotone(before: Metadata, after: Metadata) -> bool:
    """I3: epochs never decrease; a new ISR or leader raises the partition epoch, a new leader the leader epoch."""
    was, now = before.controller, after.controller
    changed = (was.partition.isr, was.partition.leader) != (now.partition.isr, now.partition.leader)
    if changed and now.partition.partition_epoch <= was.partition.partition_epoch:
        return False
    if was.partition.leader != now.partition.leader and now.partition.leader_epoch <= was.partition.leader_epoch:
        return False
    return _no_epoch_back(was, now)


def leader_candidate_completeness(witness: Witness, broker: Broker, metadata: Metadata) -> bool:
    """I4: every running replica in the ISR or ELR, so electable cleanly, has all committed records."""
    partition = metadata.controller.partition
    candidate = broker.replica.broker in partition.isr | partition.elr
    return not (candidate and broker.running) or _complete(witness, broker)


def leader_completeness(witness: Witness, broker: Broker, metadata: Metadata) -> bool:
    """I5: the controller's leader, while it runs, has all committed records."""
    leads = broker.replica.broker == metadata.controller.partition.leader
    return not (leads and broker.running) or _complete(witness, broker)


def acknowledged_is_committed(witness: Witness) -> bool:
    """I5: every record acknowledged with acks=all is committed, so no leader lacks it."""
    return witness.acknowledged.issubset(witness.committed)


def log_matching(one: Broker, other: Broker) -> bool:
    """I6: two replicas have the same records below the lower of their high watermarks."""
    end = min(one.replica.high_watermark, other.replica.high_watermark)
    start = max(one.replica.log.start, other.replica.log.start)
    return one.replica.log.read(start, end) == other.replica.log.read(start, end)


def committed_reads_stable(witness: Witness, broker: Broker) -> bool:
    """I8: every running replica, zombie leaders and followers included, has the committed records below its own high
    watermark, so reads are repeatable."""
    return not broker.running or _agrees(witness, broker, broker.replica.high_watermark)


def leader_hw_monotone(before: Broker, after: Broker) -> bool:
    """I9: a leader's high watermark never decreases while it stays leader."""
    goes_on = before.replica.leadership is not None and after.replica.leadership is not None
    return not goes_on or after.replica.high_watermark >= before.replica.high_watermark


def no_fenced_in_isr(metadata: Metadata) -> bool:
    """I11: a fenced broker is in no ISR of more than one member."""
    controller = metadata.controller
    if len(controller.partition.isr) <= 1:
        return True
    return not any(registered.fenced for b, registered in controller.brokers if b in controller.partition.isr)


class Judge:
    """Invariants that depend on the parameters: version, mode, min.insync.replicas."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters

    def maximal_isr_superset(self, broker: Broker, metadata: Metadata) -> bool:
        """I7: the current leader's high watermark waits for a superset of the controller's ISR and ELR (KIP-497).

        Below min.insync.replicas only the ISR is required, because the high watermark does not advance there.
        """
        leadership, partition = broker.replica.leadership, metadata.controller.partition
        if leadership is None or broker.replica.leader_epoch != partition.leader_epoch:
            return True
        waited_for = waits_for(self.parameters, broker.replica, leadership)
        if len(leadership.isr) < effective_min_isr(self.parameters, leadership):
            return partition.isr <= waited_for
        return partition.isr | partition.elr <= waited_for

    def hw_frozen_below_min_isr(self, before: Broker, after: Broker) -> bool:
        """I10: the high watermark does not advance while the ISR is below min.insync.replicas (KIP-966)."""
        leadership = after.replica.leadership
        if leadership is None or len(leadership.isr) >= effective_min_isr(self.parameters, leadership):
            return True
        return after.replica.high_watermark == before.replica.high_watermark

    def only_eligible_asked_for(self, before: Broker, after: Broker) -> bool:
        """AlterPartition adds only followers that are eligible by the leader's metadata (KIP-841, KIP-903)."""
        leadership, earlier = after.replica.leadership, before.replica.leadership
        asked = leadership.pending if leadership is not None else None
        if leadership is None or asked is None or (earlier is not None and earlier.pending == asked):
            return True
        registered, epochs = dict(leadership.brokers), dict(asked.epochs)
        for member in asked.isr - leadership.isr:
            known = registered[member]
            if known.fenced:
                return False
            if self.parameters.mode is Mode.KRAFT and (known.shutting_down or epochs.get(member) != known.epoch):
                return False
        return True


def _complete(witness: Witness, broker: Broker) -> bool:
    """Whether a log has all committed records from its log start offset on."""
    end = len(witness.committed)
    return broker.replica.log.end >= end and _agrees(witness, broker, end)


def _agrees(witness: Witness, broker: Broker, end: Offset) -> bool:
    log = broker.replica.log
    return tuple(record.value for record in log.read(log.start, end)) == witness.committed[log.start : end]


def _no_epoch_back(was: Controller, now: Controller) -> bool:
    brokers = dict(now.brokers)
    return (
        was.partition.leader_epoch <= now.partition.leader_epoch
        and was.partition.partition_epoch <= now.partition.partition_epoch
        and was.epoch <= now.epoch
        and all(registered.epoch <= brokers[b].epoch for b, registered in was.brokers)
    )
