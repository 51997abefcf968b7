"""Moving the replicas of a partition to other brokers (KIP-455)."""

from __future__ import annotations

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.refusals import ANSWER_S, DONE_WITHIN, require_done
from lockstep.network.topology import Address


def reassign(address: Address, topic: str, partition: int, replicas: tuple[int, ...], *, access: Access = OPEN) -> None:
    """Have the controller begin to move a partition to these replicas; it takes effect when all are in sync."""
    wanted = ReassignablePartition(partition_index=i32(partition), replicas=tuple(map(BrokerId, replicas)))
    request = AlterPartitionReassignmentsRequest(
        timeout=DONE_WITHIN, topics=(ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),)
    )
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(request)
    assert isinstance(response, AlterPartitionReassignmentsResponse)
    what = f"moving {topic}-{partition} to {list(replicas)}"
    require_done(response.error_code, what, response.error_message)
    for result in response.responses:
        for moved in result.partitions:
            require_done(moved.error_code, what, moved.error_message)


def is_moving(address: Address, topic: str, partition: int, *, access: Access = OPEN) -> bool:
    """Whether the controller still moves this partition."""
    asked = ListPartitionReassignmentsTopics(name=TopicName(topic), partition_indexes=(i32(partition),))
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(ListPartitionReassignmentsRequest(timeout=DONE_WITHIN, topics=(asked,)))
    assert isinstance(response, ListPartitionReassignmentsResponse)
    require_done(response.error_code, f"the list of moves of {topic}-{partition}", response.error_message)
    return any(result.partitions for result in response.topics)
