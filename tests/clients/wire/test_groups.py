"""What real coordinators answer to members of groups, of both kinds, and to who claims to be one."""

from __future__ import annotations

import uuid

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.coordinators import KeyType
from lockstep.clients.wire.groups import (
    JOIN,
    LEAVE,
    NO_MEMBER,
    FetchedOffset,
    Joined,
    MemberHeartbeat,
    Synced,
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from lockstep.wait import wait_until
from tests.clients.wire.conftest import ONLY_KRAFT, ONLY_ZK, PATIENCE_S, Wire, unique

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]


class Group:
    """A classic group that wants one topic; each member has a connection of its own, as one of them may wait."""

    def __init__(self, wire: Wire) -> None:
        self.name = unique("group")
        self.topic = wire.topic(partitions=2)
        self._wire = wire

    def connect(self) -> Connection:
        return self._wire.coordinator(KeyType.GROUP, self.name)

    def enter(self, connection: Connection) -> str:
        """Be given an id to join with."""
        first = join_group(connection, self.name, topics=(self.topic,)).answer()
        assert first.error is ErrorCode.member_id_required
        return first.member_id

    def lead(self, connection: Connection) -> Joined:
        """Be the only member, and have everything."""
        member = self.enter(connection)
        joined = join_group(connection, self.name, topics=(self.topic,), member_id=member).answer(PATIENCE_S)
        assert (joined.error, joined.leader) == (ErrorCode.none, member)
        everything = {member: [(self.topic, 0), (self.topic, 1)]}
        synced = sync_group(
            connection, self.name, member_id=member, generation=joined.generation, assignments=everything
        ).answer(PATIENCE_S)
        assert synced == Synced(error=ErrorCode.none, assignment=frozenset(everything[member]))
        return joined


def test_one_member_leads_and_has_everything(wire: Wire) -> None:
    group = Group(wire)
    connection = group.connect()
    joined = group.lead(connection)
    assert (joined.generation, joined.members, joined.protocol) == (1, (joined.member_id,), "range")
    assert beat(connection, group, joined.member_id, 1) is ErrorCode.none
    assert leave_group(connection, group.name, member_id=joined.member_id).answer() is ErrorCode.none
    assert beat(connection, group, joined.member_id, 1) is ErrorCode.unknown_member_id


def beat(connection: Connection, group: Group, member: str, generation: int) -> ErrorCode:
    return heartbeat(connection, group.name, member_id=member, generation=generation).answer()


def test_a_second_member_waits_for_the_first(wire: Wire) -> None:
    group = Group(wire)
    one, other = group.connect(), group.connect()
    leader = group.lead(one).member_id
    follower = group.enter(other)

    joining = join_group(other, group.name, topics=(group.topic,), member_id=follower)
    wait_until(
        lambda: beat(one, group, leader, 1) is ErrorCode.rebalance_in_progress,
        timeout_s=PATIENCE_S,
        what="the first member to hear of the second",
    )
    assert not joining.ready()
    rejoined = join_group(one, group.name, topics=(group.topic,), member_id=leader).answer(PATIENCE_S)
    joined = joining.answer(PATIENCE_S)
    assert (rejoined.generation, joined.generation) == (2, 2)
    assert (rejoined.leader, joined.leader) == (leader, leader)
    assert (set(rejoined.members), joined.members) == ({leader, follower}, ())

    syncing = sync_group(other, group.name, member_id=follower, generation=2)
    assert not syncing.ready()
    shares = {leader: [(group.topic, 0)], follower: [(group.topic, 1)]}
    led = sync_group(one, group.name, member_id=leader, generation=2, assignments=shares).answer(PATIENCE_S)
    assert led.assignment == {(group.topic, 0)}
    assert syncing.answer(PATIENCE_S).assignment == {(group.topic, 1)}


def test_an_old_generation_and_an_unknown_member_are_refused(wire: Wire) -> None:
    group = Group(wire)
    connection = group.connect()
    member = group.lead(connection).member_id
    for who, generation, error in (
        (member, 0, ErrorCode.illegal_generation),
        ("nobody", 1, ErrorCode.unknown_member_id),
    ):
        assert beat(connection, group, who, generation) is error
        synced = sync_group(connection, group.name, member_id=who, generation=generation).answer()
        assert synced == Synced(error=error, assignment=frozenset())
        committed = offset_commit(
            connection, group.name, group.topic, 0, 5, member_id=who, generation=generation
        ).answer()
        assert committed is error
    assert leave_group(connection, group.name, member_id="nobody").answer() is ErrorCode.unknown_member_id
    unknown = join_group(connection, group.name, topics=(group.topic,), member_id="nobody").answer()
    assert unknown.error is ErrorCode.unknown_member_id


def test_members_must_have_a_protocol_in_common(wire: Wire) -> None:
    group = Group(wire)
    one, other = group.connect(), group.connect()
    joined = group.lead(one)
    refused = join_group(other, group.name, topics=(group.topic,), protocols=("roundrobin",)).answer()
    assert (refused.error, refused.generation) == (ErrorCode.inconsistent_group_protocol, -1)
    inconsistent = sync_group(one, group.name, member_id=joined.member_id, generation=1, protocol="roundrobin").answer()
    assert inconsistent.error is ErrorCode.inconsistent_group_protocol


def test_a_static_member_that_comes_back_fences_who_had_its_place(wire: Wire) -> None:
    group = Group(wire)
    connection = group.connect()
    first, second = (
        join_group(connection, group.name, topics=(group.topic,), instance="place").answer(PATIENCE_S) for _ in range(2)
    )
    assert (first.error, second.error) == (ErrorCode.none, ErrorCode.none)
    fenced = heartbeat(
        connection, group.name, member_id=first.member_id, generation=second.generation, instance="place"
    ).answer()
    assert fenced is ErrorCode.fenced_instance_id
    assert leave_group(connection, group.name, member_id=NO_MEMBER, instance="place").answer() is ErrorCode.none


def test_a_member_commits_and_everybody_reads(wire: Wire) -> None:
    group = Group(wire)
    connection = group.connect()
    member = group.lead(connection).member_id
    none = FetchedOffset(error=ErrorCode.none, offset=-1, leader_epoch=-1)
    assert offset_fetch(connection, group.name, group.topic, 0).answer() == none
    committed = offset_commit(connection, group.name, group.topic, 0, 5, member_id=member, generation=1).answer(
        PATIENCE_S
    )
    assert committed is ErrorCode.none
    assert offset_fetch(connection, group.name, group.topic, 0).answer().offset == 5
    assert offset_commit(connection, group.name, group.topic, 0, 6).answer() is ErrorCode.unknown_member_id


def test_a_simple_consumer_commits_where_nobody_is(wire: Wire) -> None:
    group = Group(wire)
    connection = group.connect()
    assert offset_commit(connection, group.name, group.topic, 1, 7).answer(PATIENCE_S) is ErrorCode.none
    assert offset_fetch(connection, group.name, group.topic, 1).answer().offset == 7
    elsewhere = [
        wire.to(broker)
        for broker in wire.cluster.broker_ids
        if offset_fetch(wire.to(broker), group.name, group.topic, 1).answer().error is not ErrorCode.none
    ]
    assert len(elsewhere) == 2
    for other in elsewhere:
        assert offset_fetch(other, group.name, group.topic, 1).answer().error is ErrorCode.not_coordinator
        assert offset_commit(other, group.name, group.topic, 1, 8).answer() is ErrorCode.not_coordinator


class Member:
    """A member of the other kind of group, alone in it."""

    def __init__(self, wire: Wire) -> None:
        self.group, self.id = unique("group"), str(uuid.uuid4())
        self.topic = wire.topic()
        self.topic_id = wire.view(self.topic).topic_id
        self.connection = wire.coordinator(KeyType.GROUP, self.group)

    def join(self) -> MemberHeartbeat:
        return consumer_group_heartbeat(
            self.connection,
            self.group,
            member_id=self.id,
            epoch=JOIN,
            topics=(self.topic,),
            owned=(),
            rebalance_timeout_ms=10_000,
        ).answer(PATIENCE_S)

    def beat(self, epoch: int, owned: tuple[tuple[str, int], ...] | None = None) -> MemberHeartbeat:
        return consumer_group_heartbeat(
            self.connection, self.group, member_id=self.id, epoch=epoch, owned=owned
        ).answer(PATIENCE_S)

    def commit(self, epoch: int, offset: int) -> ErrorCode:
        return offset_commit(
            self.connection, self.group, self.topic, 0, offset, member_id=self.id, generation=epoch
        ).answer(PATIENCE_S)


@ONLY_KRAFT
def test_a_coordinator_assigns_to_who_joins(wire: Wire) -> None:
    member = Member(wire)
    everything = ((member.topic_id, 0),)
    joined = member.join()
    assert (joined.error, joined.member_id, joined.assignment) == (ErrorCode.none, member.id, frozenset(everything))
    assert joined.epoch > 0
    owning = member.beat(joined.epoch, everything)
    assert (owning.error, owning.epoch) == (ErrorCode.none, joined.epoch)
    assert member.beat(joined.epoch).assignment is None, "it is as before"
    assert member.commit(joined.epoch, 5) is ErrorCode.none
    fetched = offset_fetch(
        member.connection, member.group, member.topic, 0, member_id=member.id, epoch=joined.epoch
    ).answer()
    assert (fetched.error, fetched.offset) == (ErrorCode.none, 5)
    assert member.beat(LEAVE).epoch == LEAVE


@ONLY_KRAFT
def test_a_member_epoch_that_is_not_the_present_one_is_refused(wire: Wire) -> None:
    member = Member(wire)
    epoch = member.join().epoch
    assert member.commit(epoch + 1, 5) is ErrorCode.stale_member_epoch
    stale = offset_fetch(
        member.connection, member.group, member.topic, 0, member_id=member.id, epoch=epoch + 1
    ).answer()
    assert stale == FetchedOffset(error=ErrorCode.stale_member_epoch, offset=-1, leader_epoch=-1)
    assert member.beat(epoch + 1).error is ErrorCode.fenced_member_epoch
    member.id = str(uuid.uuid4())
    assert member.beat(epoch).error is ErrorCode.unknown_member_id
    assert member.commit(epoch, 5) is ErrorCode.unknown_member_id


@ONLY_ZK
def test_with_zookeeper_there_is_no_such_group(wire: Wire) -> None:
    assert Member(wire).join().error is ErrorCode.unsupported_version
