"""What clients are told of a partition."""

from __future__ import annotations

from lockstep_model.errors import Error
from lockstep_model.metadata import PartitionMetadata, describe
from lockstep_model.parameters import Parameters
from lockstep_model.registration import NO_LEADER, BrokerRegistration, Registration

ALIVE = BrokerRegistration(epoch=1)
BROKERS = {0: ALIVE, 1: ALIVE, 2: ALIVE}
PARTITION = Registration((0, 1, 2), frozenset({0, 1}), leader=0, leader_epoch=4)


def test_a_partition_with_its_leader() -> None:
    told = describe(Parameters(), PARTITION, BROKERS)
    assert told == PartitionMetadata(Error.NONE, 0, 4, (0, 1, 2), frozenset({0, 1}))


def test_a_fenced_follower_is_offline_and_no_error() -> None:
    told = describe(Parameters(), PARTITION, BROKERS | {1: ALIVE._replace(fenced=True)})
    assert (told.error, told.leader, told.offline) == (Error.NONE, 0, frozenset({1}))
    assert told.isr == {0, 1}  # as the controller has it


def test_a_leader_that_is_fenced_or_unknown_or_none_is_not_told() -> None:
    fenced = describe(Parameters(), PARTITION, BROKERS | {0: ALIVE._replace(fenced=True)})
    unknown = describe(Parameters(), PARTITION, {1: ALIVE, 2: ALIVE})
    nobody = describe(Parameters(), PARTITION._replace(leader=NO_LEADER), BROKERS)
    for told in (fenced, unknown, nobody):
        assert (told.error, told.leader, told.leader_epoch) == (Error.LEADER_NOT_AVAILABLE, NO_LEADER, 4)
    assert (fenced.offline, unknown.offline, nobody.offline) == (frozenset({0}), frozenset({0}), frozenset())


def test_what_is_not_known_is_told_by_how_it_was_asked_for() -> None:
    assert describe(Parameters(), None, BROKERS).error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(Parameters(), None, BROKERS, by_id=True).error is Error.UNKNOWN_TOPIC_ID
