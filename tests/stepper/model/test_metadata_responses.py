"""What brokers may tell of the controller's decisions: any that they may have learned of, and none that they forgot."""

from __future__ import annotations

import pytest

from lockstep.stepper.model.metadata_responses import MetadataCaches
from lockstep_model.controller import Controller, create, fence, register, unfence
from lockstep_model.errors import Error
from lockstep_model.metadata import OFFLINE_TOLD, TOLD_LATER, PartitionMetadata, PartitionMetadataResponse, describe
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.registration import BrokerRegistration, Register

KRAFT = parameters_for("4.3.1", "kraft", min_isr=2)
ZK = parameters_for("3.9.2", "zk", min_isr=2)
REGISTERED = tuple((broker, BrokerRegistration(epoch=10 + broker)) for broker in range(3))

CREATED, _ = create(KRAFT, Controller(brokers=REGISTERED), (0, 1, 2))
FAILED_OVER = fence(KRAFT, CREATED, 0)
"""The leader is gone, and 1 leads."""
BACK, _ = register(KRAFT, FAILED_OVER, Register(0, 20, incarnation=1), session_over=True)
UNFENCED = unfence(KRAFT, BACK, 0)


def told_by(controller: Controller, parameters: Parameters = KRAFT) -> PartitionMetadataResponse:
    """What a broker tells that goes by this decision."""
    brokers = dict(controller.brokers)
    return PartitionMetadataResponse(describe(parameters, controller.partition, brokers), controller.active_brokers())


def after(*decided: Controller, parameters: Parameters = KRAFT) -> MetadataCaches:
    caches = MetadataCaches(parameters, CREATED)
    for controller in decided:
        caches.decided(controller)
    return caches


both = pytest.mark.parametrize("parameters", [KRAFT, ZK], ids=["kraft", "zk"])


@both
def test_a_broker_tells_of_any_decision_that_it_may_have_learned_of(parameters: Parameters) -> None:
    for decision in (CREATED, FAILED_OVER):
        assert after(FAILED_OVER, parameters=parameters).tells(1, told_by(decision))


@both
def test_it_does_not_tell_what_was_not_decided(parameters: Parameters) -> None:
    told = told_by(FAILED_OVER)
    assert not after(parameters=parameters).tells(1, told)
    wrong = told._replace(partition=told.partition._replace(isr=frozenset({0, 1, 2})))
    assert not after(FAILED_OVER, parameters=parameters).tells(1, wrong)
    assert not after(FAILED_OVER, parameters=parameters).tells(1, told._replace(brokers=frozenset({1})))


@both
def test_it_does_not_forget_what_it_has_told(parameters: Parameters) -> None:
    caches = after(FAILED_OVER, parameters=parameters)
    assert caches.tells(1, told_by(FAILED_OVER))
    assert not caches.tells(1, told_by(CREATED))
    assert caches.tells(2, told_by(CREATED))  # each for itself


def test_who_leads_in_an_epoch_has_told_of_it_in_kraft() -> None:
    caches = after(FAILED_OVER)
    caches.leads_or_follows(1, FAILED_OVER.partition.leader_epoch)
    assert caches.permitted(1) == {told_by(FAILED_OVER)}
    assert not caches.tells(1, told_by(CREATED))
    lagging = after(FAILED_OVER, parameters=ZK)  # there LeaderAndIsr comes first
    lagging.leads_or_follows(1, FAILED_OVER.partition.leader_epoch)
    assert lagging.tells(1, told_by(CREATED))


def test_who_is_there_may_be_looked_at_later_than_the_partition() -> None:
    mixed = told_by(FAILED_OVER)._replace(brokers=UNFENCED.active_brokers())
    caches = after(FAILED_OVER, BACK, UNFENCED)
    assert caches.tells(1, mixed)
    assert not caches.tells(1, told_by(FAILED_OVER))  # it knows by now that 0 is back
    earlier = told_by(UNFENCED)._replace(brokers=FAILED_OVER.active_brokers())
    assert not after(FAILED_OVER, BACK, UNFENCED).tells(1, earlier)


def test_a_kraft_broker_serves_when_it_knows_of_its_own_registration() -> None:
    caches = after(FAILED_OVER, BACK)
    assert not caches.tells(0, told_by(CREATED))
    assert caches.tells(0, told_by(BACK))


def test_a_zookeeper_broker_that_has_started_may_know_of_nothing_until_it_is_told() -> None:
    unknown = PartitionMetadataResponse(PartitionMetadata(Error.UNKNOWN_TOPIC_OR_PARTITION), frozenset())
    caches = after(FAILED_OVER, parameters=ZK)
    assert not caches.tells(0, unknown)
    caches.started(0)
    assert caches.tells(0, unknown)
    assert caches.tells(0, told_by(FAILED_OVER))
    assert not caches.tells(0, unknown)


def test_wrong_models_do_not_permit_what_is_right() -> None:
    stale = Parameters(dropped=frozenset({TOLD_LATER}))
    assert not after(FAILED_OVER, parameters=stale).tells(1, told_by(CREATED))
    all_online = Parameters(dropped=frozenset({OFFLINE_TOLD}))
    assert not after(FAILED_OVER, parameters=all_online).tells(1, told_by(FAILED_OVER))
