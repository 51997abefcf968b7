"""What each invariant of replication says, of what is right and of what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_model.controller import Controller
from lockstep_model.partition.in_sync import shrink
from lockstep_model.partition.replica import Replica
from lockstep_model.registration import BrokerRegistration, Brokers, Registration
from lockstep_model.replication.invariants import (
    Judge,
    acknowledged_is_committed,
    committed_reads_stable,
    epochs_monotone,
    hw_within_log,
    leader_candidate_completeness,
    leader_completeness,
    leader_hw_monotone,
    leader_in_isr,
    log_matching,
    no_fenced_in_isr,
)
from lockstep_model.replication.state import Broker, Metadata, Witness
from tests.reference_model.replicas import BROKERS, KRAFT, ZK, exchange, leading, log, partition, replica

TWO = Judge(replace(KRAFT, min_isr=2))


def decided(registered: Registration, fenced: Brokers = frozenset()) -> Metadata:
    brokers = tuple((b, known._replace(fenced=b in fenced)) for b, known in BROKERS)
    return Metadata((Controller(registered, brokers),), known=(0, 0, 0))


def on(broker: Replica, *, running: bool = True) -> Broker:
    return Broker(broker, running=running)


def test_leader_in_isr() -> None:
    assert leader_in_isr(decided(partition("01")))
    assert leader_in_isr(decided(partition("1", leader=-1)))
    assert not leader_in_isr(decided(partition("12")))


def test_no_fenced_in_isr() -> None:
    assert no_fenced_in_isr(decided(partition("01"), frozenset({2})))
    assert no_fenced_in_isr(decided(partition("0"), frozenset({0})))  # the last member
    assert not no_fenced_in_isr(decided(partition("01"), frozenset({1})))


@pytest.mark.parametrize(
    ("after", "holds"),
    [
        (partition("01", epoch=1, version=2), True),
        (partition("012", epoch=1, version=1), True),  # nothing happened
        (partition("01", epoch=1, version=1), False),  # an ISR without a partition epoch of its own
        (partition("01", epoch=0, version=2), False),
        (partition("012", epoch=1, version=0), False),
        (partition("012", leader=1, epoch=2, version=2), True),
        (partition("012", leader=1, epoch=1, version=2), False),  # a leader without an epoch of its own
    ],
)
def test_epochs_monotone(after: Registration, holds: bool) -> None:
    assert epochs_monotone(decided(partition(epoch=1, version=1)), decided(after)) is holds


def test_broker_epochs_are_monotone_too() -> None:
    before, after = decided(partition()), decided(partition())
    older = ((0, BrokerRegistration(epoch=-1)), *BROKERS[1:])

    assert not epochs_monotone(before, after._replace(log=(Controller(partition(), older),)))


def test_hw_within_log() -> None:
    within = replica(1, has=log(0, 0).delete_before(1), high_watermark=1)

    assert hw_within_log(on(within))
    assert not hw_within_log(on(within._replace(high_watermark=3)))
    assert not hw_within_log(on(within._replace(high_watermark=0)))


def test_who_leads_or_may_lead_has_what_was_committed() -> None:
    committed = Witness(tuple(record.value for record in log(0, 0).records))
    has, lacks = replica(1, has=log(0, 0)), replica(1, has=log(0))
    other = replica(1, has=log(0, 1))

    for metadata in (decided(partition("01")), decided(partition("0")._replace(elr=frozenset({1})))):
        assert leader_candidate_completeness(committed, on(has), metadata)
        assert not leader_candidate_completeness(committed, on(lacks), metadata)
        assert not leader_candidate_completeness(committed, on(other), metadata)
        assert leader_candidate_completeness(committed, on(lacks, running=False), metadata)
        assert leader_completeness(committed, on(lacks), metadata)  # it does not lead
    assert leader_candidate_completeness(committed, on(lacks), decided(partition("02")))
    assert not leader_completeness(committed, on(lacks), decided(partition("1", leader=1)))


def test_acknowledged_is_committed() -> None:
    assert acknowledged_is_committed(Witness((1, 2), frozenset({2})))
    assert not acknowledged_is_committed(Witness((1, 2), frozenset({2, 3})))


def test_what_was_deleted_from_the_start_of_a_log_is_not_lost() -> None:
    committed = Witness(tuple(record.value for record in log(0, 0, 0).records))
    deleted = log(0, 0, 0).delete_before(2)

    for has, complete in ((deleted, True), (log(0, 0).delete_before(1), False), (log(0, 0, 1).delete_before(2), False)):
        leads = on(replica(1, partition("1", leader=1), has=has, high_watermark=has.end))
        assert leader_completeness(committed, leads, decided(partition("1", leader=1))) is complete
    assert committed_reads_stable(committed, on(replica(1, has=deleted, high_watermark=3)))
    assert not committed_reads_stable(committed, on(replica(1, has=log(0, 0, 1).delete_before(2), high_watermark=3)))


def test_log_matching() -> None:
    one = on(replica(1, has=log(0, 0), high_watermark=2))

    assert log_matching(one, on(replica(2, has=log(0), high_watermark=1)))
    assert log_matching(one, on(replica(2, has=log(0, 1), high_watermark=1)))
    assert not log_matching(one, on(replica(2, has=log(0, 1), high_watermark=2)))


def test_committed_reads_stable() -> None:
    committed = Witness(tuple(record.value for record in log(0, 0).records))

    assert committed_reads_stable(committed, on(replica(1, has=log(0, 1), high_watermark=1)))
    assert not committed_reads_stable(committed, on(replica(1, has=log(0, 1), high_watermark=2)))


def test_leader_hw_monotone() -> None:
    before = replica(0, has=log(0), high_watermark=1)

    assert leader_hw_monotone(on(before), on(before))
    assert not leader_hw_monotone(on(before), on(before._replace(high_watermark=0)))
    follower = replica(1, has=log(0), high_watermark=1)
    assert leader_hw_monotone(on(follower), on(follower._replace(high_watermark=0)))


def test_hw_frozen_below_min_isr() -> None:
    alone = replica(0, partition("0"), has=log(0), parameters=TWO.parameters)
    together = replica(0, partition("01"), has=log(0))

    assert TWO.hw_frozen_below_min_isr(on(alone), on(alone))
    follower = replica(0, partition("1", leader=1), has=log(0))
    assert not TWO.hw_frozen_below_min_isr(on(follower), on(alone._replace(high_watermark=1)))  # as it is elected
    assert not TWO.hw_frozen_below_min_isr(on(alone), on(alone._replace(high_watermark=1)))
    assert TWO.hw_frozen_below_min_isr(on(together), on(together._replace(high_watermark=1)))


def test_maximal_isr_superset() -> None:
    leader, _ = exchange(replica(0, partition("0")), replica(1))  # asks for 1
    assert leading(leader).pending is not None

    assert TWO.maximal_isr_superset(on(leader), decided(partition("01", version=1)))
    assert not TWO.maximal_isr_superset(on(leader), decided(partition("012", version=1)))
    assert TWO.maximal_isr_superset(on(leader), decided(partition("12", leader=1, epoch=1, version=1)))  # deposed
    removing = shrink(KRAFT, replica(0, partition("012")))
    assert TWO.maximal_isr_superset(on(removing), decided(partition("012")))


def test_who_is_eligible_is_waited_for_unless_nothing_is_committed_anyway() -> None:
    eligible = decided(partition("0")._replace(elr=frozenset({2})))

    assert TWO.maximal_isr_superset(on(replica(0, partition("0"))), eligible)
    assert not TWO.maximal_isr_superset(on(replica(0, partition("01"))), eligible)


@pytest.mark.parametrize(
    ("registered", "may", "may_with_zookeeper"),
    [
        (BrokerRegistration(epoch=10), True, True),
        (BrokerRegistration(epoch=10, fenced=True), False, False),
        (BrokerRegistration(epoch=10, shutting_down=True), False, True),
        (BrokerRegistration(epoch=11), False, True),  # another process than the one that fetched
    ],
)
def test_only_eligible_asked_for(registered: BrokerRegistration, may: bool, may_with_zookeeper: bool) -> None:
    for parameters, expected in ((KRAFT, may), (ZK, may_with_zookeeper)):
        before = replica(0, partition("0"), parameters=parameters)
        after, _ = exchange(before, replica(1), parameters)  # asks for 1
        brokers = (BROKERS[0], (1, registered), BROKERS[2])
        after = after._replace(leadership=leading(after)._replace(brokers=brokers))
        assert Judge(parameters).only_eligible_asked_for(on(before), on(after)) is expected
        assert Judge(parameters).only_eligible_asked_for(on(after), on(after))  # it asked before
