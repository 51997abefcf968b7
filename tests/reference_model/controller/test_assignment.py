"""Creation of a partition, and its way to other brokers and back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lockstep_model.controller import (
    Controller,
    alter_partition,
    begin_alter_partition,
    begin_failover,
    begin_reassignment,
    cancel_reassignment,
    create,
    fence,
    move,
    reassign,
    register,
    unfence,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, ReassignmentEnds, parameters_for
from lockstep_model.registration import AlterPartition, Register
from tests.reference_model.partitions import ALL, ELR, KRAFT, NOBODY, ZK, broker_epoch, controller, ids, told, unclean

MODES = ["zk", "kraft", "elr"]
WAITING = replace(KRAFT, reassignment_ends=ReassignmentEnds.ALL)
HURRIED = replace(KRAFT, reassignment_ends=ReassignmentEnds.ADDED)


def in_sync(parameters: Parameters, before: Controller, isr: str) -> tuple[Controller, Error]:
    """The leader asks for this ISR, knowing all."""
    partition = before.partition
    request = AlterPartition(
        partition.leader,
        broker_epoch(partition.leader),
        partition.leader_epoch,
        partition.partition_epoch,
        ids(isr),
    )
    return alter_partition(parameters, before, request)


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_a_new_partition_has_only_active_brokers_in_its_isr(parameters: Parameters) -> None:
    empty = controller("", NOBODY, fenced="1", leaving="3")._replace(partition=Controller().partition)
    after, error = create(parameters, empty, (1, 2, 3, 4))
    assert error is Error.NONE
    partition = after.partition
    assert (partition.isr, partition.leader) == (ids("24"), 2)
    assert (partition.leader_epoch, partition.partition_epoch, partition.recovering) == (0, 0, False)


@pytest.mark.parametrize("replicas", [(), (1, 1)])
@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_no_such_assignment(parameters: Parameters, replicas: tuple[int, ...]) -> None:
    before = controller("123", 1)
    assert create(parameters, before, replicas) == (before, Error.INVALID_REPLICA_ASSIGNMENT)
    assert reassign(parameters, before, replicas) == (before, Error.INVALID_REPLICA_ASSIGNMENT)


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_no_such_partition(parameters: Parameters) -> None:
    empty = controller("12", 1)._replace(partition=Controller().partition)
    assert reassign(parameters, empty, (1, 2)) == (empty, Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert cancel_reassignment(parameters, empty) == (empty, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_nobody_there_to_create_it() -> None:
    before = controller("", NOBODY, fenced="12")
    assert create(KRAFT, before, (1, 2)) == (before, Error.INVALID_REPLICA_ASSIGNMENT)
    assert create(ZK, before, (1, 2)) == (before, Error.REQUEST_TIMED_OUT)
    assert create(KRAFT, before, (3, 9)) == (before, Error.INVALID_REPLICA_ASSIGNMENT)


def test_kraft_moves_a_replica() -> None:
    """The leader epoch rises only when a replica leaves."""
    begun, error = reassign(KRAFT, controller("123", 1), (1, 2, 4))
    assert (told(begun), error) == ("isr 123, leader 1, adding 4, removing 3; +0 +1", Error.NONE)
    assert begun.partition.replicas == (1, 2, 4, 3)
    done, error = in_sync(KRAFT, begun, "1234")
    assert (told(done), error) == ("isr 124, leader 1; +1 +2", Error.NONE)
    assert done.partition.replicas == (1, 2, 4)


def test_zookeeper_moves_a_replica() -> None:
    """The leader epoch rises at the beginning, at the end, and with every replica that leaves the ISR."""
    begun, _ = reassign(ZK, controller("123", 1), (1, 2, 4))
    assert told(begun) == "isr 123, leader 1, adding 4, removing 3; +1 +1"
    done, _ = in_sync(ZK, begun, "1234")
    assert told(done) == "isr 124, leader 1; +3 +4"
    assert done.partition.replicas == (1, 2, 4)


def written(begun: Controller) -> Iterator[str]:
    """What the znodes show after each write, and where brokers are told that the partition is."""
    while begun.writing:
        begun = begun.written()
        seen = begun.with_partition(begun.shown or begun.partition)
        yield f"{told(seen)}; told {''.join(map(str, begun.partition.replicas))}"


def test_zookeeper_writes_one_znode_after_the_other() -> None:
    """Brokers are told of other replicas with the partition's state; the topic's assignment ends last."""
    begun, _ = begin_reassignment(ZK, controller("123", 1), (1, 2, 4))
    assert list(written(begun)) == [
        "isr 123, leader 1, adding 4, removing 3; +0 +0; told 123",
        "isr 123, leader 1, adding 4, removing 3; +1 +1; told 1243",
    ]
    waiting = begun.finished()
    epochs = waiting.partition.leader_epoch, waiting.partition.partition_epoch
    granted, error = begin_alter_partition(ZK, waiting, AlterPartition(1, broker_epoch(1), *epochs, ids("1234")))
    assert (told(granted), error) == ("isr 1234, leader 1, adding 4, removing 3; +1 +2", Error.NONE)
    assert list(written(granted)) == [
        "isr 1234, leader 1, adding 4, removing 3; +2 +3; told 124",
        "isr 124, leader 1, adding 4, removing 3; +3 +4; told 124",
        "isr 124, leader 1; +3 +4; told 124",
    ]


def test_another_order_is_written_before_the_leader_is_told() -> None:
    begun, _ = begin_reassignment(ZK, controller("123", 1), (3, 2, 1))
    assert list(written(begun)) == ["isr 123, leader 1; +0 +0; told 123", "isr 123, leader 1; +1 +1; told 321"]


def test_a_controller_that_takes_over_begins_with_what_the_znodes_show() -> None:
    begun, _ = begin_reassignment(ZK, controller("123", 1), (1, 2))
    moved = begin_failover(ZK, begun.written().written())
    assert told(moved) == "isr 123, leader 1, removing 3; +1 +1"
    assert list(written(moved)) == [
        "isr 123, leader 1, removing 3; +2 +2; told 12",
        "isr 12, leader 1, removing 3; +3 +3; told 12",
        "isr 12, leader 1; +3 +3; told 12",
    ]


@pytest.mark.parametrize("parameters", ALL, ids=MODES)
def test_not_all_are_in_sync_yet(parameters: Parameters) -> None:
    begun, _ = reassign(parameters, controller("12", 1), (1, 2, 4))
    more, _ = in_sync(parameters, begun, "123")
    assert more.partition.adding == ids("4")
    assert more.partition.replicas == (1, 2, 4, 3)


def test_the_leader_moves_away() -> None:
    """KRaft tells the leader that it did well and leads no more; ZooKeeper answers first."""
    done, error = in_sync(KRAFT, reassign(KRAFT, controller("123", 1), (4, 2, 3))[0], "1234")
    assert (told(done), error) == ("isr 234, leader 4; +1 +2", Error.NEW_LEADER_ELECTED)
    done, error = in_sync(ZK, reassign(ZK, controller("123", 1), (4, 2, 3))[0], "1234")
    assert (told(done), error) == ("isr 234, leader 4; +3 +4", Error.NONE)


def test_fewer_replicas_at_once() -> None:
    done, _ = reassign(KRAFT, controller("123", 1), (1, 2))
    assert (told(done), done.partition.replicas) == ("isr 12, leader 1; +1 +1", (1, 2))
    done, _ = reassign(ZK, controller("123", 1), (1, 2))
    assert (told(done), done.partition.replicas) == ("isr 12, leader 1; +2 +2", (1, 2))


def test_one_more_replica() -> None:
    for parameters, begins, ends in (
        (KRAFT, "isr 123, leader 1, adding 4; +0 +1", "isr 1234, leader 1; +0 +2"),
        (ZK, "isr 123, leader 1, adding 4; +1 +1", "isr 1234, leader 1; +2 +3"),
    ):
        begun, _ = reassign(parameters, controller("123", 1), (1, 2, 3, 4))
        assert told(begun) == begins
        assert told(in_sync(parameters, begun, "1234")[0]) == ends
        back, error = cancel_reassignment(parameters, begun)
        assert (back.partition.replicas, back.partition.isr, error) == ((1, 2, 3), ids("123"), Error.NONE)


def test_one_less_replica_when_the_others_are_in_sync() -> None:
    for parameters, begins, ends in (
        (KRAFT, "isr 13, leader 1, removing 3; +0 +1", "isr 12, leader 1; +1 +2"),
        (ZK, "isr 13, leader 1, removing 3; +1 +1", "isr 12, leader 1; +3 +4"),
    ):
        begun, _ = reassign(parameters, controller("13", 1), (1, 2))
        assert told(begun) == begins
        assert told(in_sync(parameters, begun, "123")[0]) == ends
    again = move(ZK, begun)
    assert told(again) == "isr 13, leader 1, removing 3; +2 +2"


def test_zookeeper_leaves_a_leader_that_shuts_down_alone() -> None:
    done, _ = reassign(ZK, controller("1", 1, leaving="1", replicas="12"), (1,))
    assert (told(done), done.partition.replicas) == ("isr 1, leader 1; +0 +0", (1,))


def test_zookeeper_adds_the_only_broker_that_is_there() -> None:
    begun, error = reassign(ZK, controller("1", NOBODY, fenced="123"), (4,))
    assert (told(begun), error) == ("isr 1, leader -, adding 4, removing 123; +1 +1", Error.NONE)


def test_another_order() -> None:
    for parameters, expected in ((KRAFT, "isr 123, leader 1; +0 +1"), (ZK, "isr 123, leader 1; +1 +1")):
        done, _ = reassign(parameters, controller("123", 1), (3, 2, 1))
        assert (told(done), done.partition.replicas) == (expected, (3, 2, 1))


def test_new_replicas_must_be_registered_and_for_zookeeper_there() -> None:
    before = controller("123", 1, fenced="4")
    assert reassign(ZK, before, (1, 2, 4)) == (before, Error.INVALID_REPLICA_ASSIGNMENT)
    assert reassign(KRAFT, before, (1, 2, 4))[1] is Error.NONE
    assert reassign(KRAFT, before, (1, 2, 9)) == (before, Error.INVALID_REPLICA_ASSIGNMENT)


def moving(isr: str, leader: int, *, fenced: str = "") -> Controller:
    """On its way from 3 to 4."""
    return controller(isr, leader, fenced=fenced, replicas="1243", adding="4", removing="3")


def test_cancelled() -> None:
    for parameters, expected in ((KRAFT, "isr 123, leader 1; +1 +1"), (ZK, "isr 123, leader 1; +2 +2")):
        back, error = cancel_reassignment(parameters, moving("1234", 1))
        assert (told(back), back.partition.replicas, error) == (expected, (1, 2, 3), Error.NONE)


def test_cancelled_before_the_new_one_was_in_sync() -> None:
    for parameters in (KRAFT, ZK):
        back, _ = cancel_reassignment(parameters, moving("123", 1))
        assert (told(back), back.partition.replicas) == ("isr 123, leader 1; +1 +1", (1, 2, 3))


def test_nothing_to_cancel() -> None:
    before = controller("123", 1)
    for parameters in ALL:
        assert cancel_reassignment(parameters, before) == (before, Error.NO_REASSIGNMENT_IN_PROGRESS)


def test_cancelled_when_only_new_ones_are_in_sync() -> None:
    """That needs an unclean election, and with KRaft the topic has to allow it."""
    before = moving("4", 4)
    assert cancel_reassignment(KRAFT, before) == (before, Error.INVALID_REPLICA_ASSIGNMENT)
    assert told(cancel_reassignment(unclean(KRAFT), before)[0]) == "isr 1, leader 1; +1 +1"


def test_another_reassignment_replaces_the_first() -> None:
    """ZooKeeper counts from the replicas of before both."""
    again, _ = reassign(ZK, moving("1234", 1), (1, 2, 3))
    assert (told(again), again.partition.replicas) == ("isr 123, leader 1; +2 +2", (1, 2, 3))
    again, _ = reassign(WAITING, moving("1234", 1), (1, 2, 3))
    assert (told(again), again.partition.replicas) == ("isr 123, leader 1; +1 +1", (1, 2, 3))


def test_the_newest_waits_for_who_is_added_and_removed_again() -> None:
    """As read in 4.3.1: who is removed does not count as in sync, and who is added must."""
    again, _ = reassign(KRAFT, moving("1234", 1), (1, 2, 3))
    assert told(again) == "isr 1234, leader 1, adding 4, removing 4; +0 +1"


def test_the_newest_does_not_wait_for_who_was_there_before() -> None:
    """Broker 2 is away and stays a replica, 4 is added and in sync."""
    before = moving("1", 1)
    for parameters, completed in [(HURRIED, True), (WAITING, False), (KRAFT, True)]:
        after, error = in_sync(parameters, before, "14")
        assert error is Error.NONE
        assert (not after.partition.adding) is completed


def test_before_3_8_a_reassignment_to_fewer_waits_for_nobody() -> None:
    """Broker 1 is away and stays a replica, 3 is removed. As seen with 3.6.2."""
    before = controller("2", 2, fenced="1")
    for parameters, completed in [(HURRIED, True), (WAITING, False), (KRAFT, False)]:
        after, error = reassign(parameters, before, (2, 1))
        assert error is Error.NONE
        assert (not after.partition.removing) is completed
    assert parameters_for("3.6.2", "kraft").reassignment_ends is ReassignmentEnds.ADDED
    assert parameters_for("3.9.2", "kraft").reassignment_ends is ReassignmentEnds.ALL


def test_zookeeper_goes_on_with_a_reassignment_when_a_broker_or_a_controller_comes() -> None:
    before = moving("123", 1, fenced="4")
    expected = "isr 123, leader 1, adding 4, removing 3; +1 +1"
    assert told(register(ZK, before, Register(4, 41))[0]) == expected
    assert told(move(ZK, before)) == expected
    leaving = moving("124", 1, fenced="3")
    assert told(register(ZK, leaving, Register(3, 31))[0]).endswith("; +0 +0")
    assert move(KRAFT, before).partition == before.partition


def test_fencing_who_holds_a_reassignment_up_ends_it() -> None:
    """KRaft looks with every change whether all that stay are in sync."""
    before = moving("124", 1)
    assert told(fence(KRAFT, before, 3)) == "isr 124, leader 1, adding 4, removing 3; +0 +0"
    assert told(fence(KRAFT, moving("1234", 1), 3)) == "isr 124, leader 1; +1 +1"


def test_who_left_the_assignment_may_stay_eligible_and_then_nobody_leads() -> None:
    """As the code has it: the minimum is that of the old number of replicas, and eligible is who left the ISR.

    The only replica is then not led again after an unclean end, though it is the last known leader: somebody else is
    said to be eligible who holds no replica (PartitionChangeBuilder.maybePopulateTargetElr, canElectLastKnownLeader).
    """
    alone, _ = reassign(ELR, controller("123", 1), (1,))
    assert (told(alone), alone.partition.replicas) == ("isr 1, leader 1, elr 23; +1 +1", (1,))
    down = fence(ELR, alone, 1)
    assert told(down) == "isr -, leader -, elr 123, last known 1; +2 +2"
    back = unfence(ELR, register(ELR, down, Register(1, 11, incarnation=1), session_over=True)[0], 1)
    assert told(back) == "isr -, leader -, elr 23, last known 1; +2 +3"
