"""Groups and transactional ids as their coordinators describe them, each asked directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kio.schema.consumer_group_describe.v0.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_describe.v0.response import ConsumerGroupDescribeResponse
from kio.schema.consumer_protocol_assignment.v0.data import ConsumerProtocolAssignment
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.describe_transactions.v0.response import DescribeTransactionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.types import GroupId, TransactionalId
from kio.serial import entity_reader
from kio.static.primitive import i8

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.refusals import ANSWER_S, require_done
from lockstep.network.topology import Address


class KeyType(IntEnum):
    """Kafka's coordinator types: groups and transactions."""

    GROUP = 0
    TRANSACTION = 1


class GroupProtocol(StrEnum):
    """Kafka's `group.protocol`: partitions are assigned by the group's leader, or by the coordinator (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group as its coordinator sees it; members go by their client id."""

    state: str
    epoch: int | None
    """The group epoch (KIP-848); DescribeGroups does not give the generation of a classic group."""
    members: Mapping[str, tuple[int, ...]]
    """The partitions that each of them has, of whatever topic."""


NO_GROUP = GroupView(state="Dead", epoch=None, members={})
"""The coordinator describes an unknown classic group as Dead; for a KIP-848 group it returns GROUP_ID_NOT_FOUND."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionView:
    """A transactional id as its coordinator sees it."""

    state: str
    producer_id: int
    producer_epoch: int


def ask_coordinator(address: Address, key_type: KeyType, key: str, *, access: Access = OPEN) -> int:
    """The id of the broker that coordinates a group or a transactional id."""
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=(key,)))
    assert isinstance(response, FindCoordinatorResponse)
    (found,) = response.coordinators
    require_done(found.error_code, f"the coordinator of {key}", found.error_message)
    return int(found.node_id)


def ask_group(address: Address, group: str, protocol: GroupProtocol, *, access: Access = OPEN) -> GroupView:
    """Describe a group; the broker asked must be its coordinator."""
    with Connection(address, access, ANSWER_S) as connection:
        return _classic(connection, group) if protocol is GroupProtocol.CLASSIC else _consumer(connection, group)


def ask_transaction(address: Address, transactional_id: str, *, access: Access = OPEN) -> TransactionView:
    """Describe a transactional id (DescribeTransactions, KIP-664); the broker asked must be its coordinator."""
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(DescribeTransactionsRequest(transactional_ids=(TransactionalId(transactional_id),)))
    assert isinstance(response, DescribeTransactionsResponse)
    (found,) = response.transaction_states
    require_done(found.error_code, f"the state of {transactional_id}")
    return TransactionView(
        state=found.transaction_state, producer_id=int(found.producer_id), producer_epoch=int(found.producer_epoch)
    )


def _classic(connection: Connection, group: str) -> GroupView:
    response = connection.ask(DescribeGroupsRequest(groups=(GroupId(group),), include_authorized_operations=False))
    assert isinstance(response, DescribeGroupsResponse)
    (found,) = response.groups
    require_done(found.error_code, f"the state of group {group}")
    return GroupView(
        state=found.group_state,
        epoch=None,
        members={member.client_id: _assigned(member.member_assignment) for member in found.members},
    )


def _assigned(assignment: bytes) -> tuple[int, ...]:
    """The partitions in a member's ConsumerProtocolAssignment: two bytes of version, then fields of all versions."""
    if not assignment:
        return ()
    parsed, _ = entity_reader(ConsumerProtocolAssignment)(assignment, 2)
    return tuple(sorted(int(index) for topic in parsed.assigned_partitions for index in topic.partitions))


def _consumer(connection: Connection, group: str) -> GroupView:
    response = connection.ask(
        ConsumerGroupDescribeRequest(group_ids=(GroupId(group),), include_authorized_operations=False)
    )
    assert isinstance(response, ConsumerGroupDescribeResponse)
    (found,) = response.groups
    if found.error_code is ErrorCode.group_id_not_found:
        return NO_GROUP
    require_done(found.error_code, f"the state of group {group}", found.error_message)
    return GroupView(
        state=found.group_state,
        epoch=int(found.group_epoch),
        members={
            member.client_id: tuple(sorted(int(i) for t in member.assignment.topic_partitions for i in t.partitions))
            for member in found.members
        },
    )
