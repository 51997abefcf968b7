"""Giving a topic more partitions, by asking the controller."""

from __future__ import annotations

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.refusals import ANSWER_S, DONE_WITHIN, require_done
from lockstep.network.topology import Address


def grow_topic(address: Address, topic: str, partitions: int, *, access: Access = OPEN) -> None:
    """From now on it has this many partitions; it can never have fewer again."""
    grown = CreatePartitionsTopic(name=TopicName(topic), count=i32(partitions), assignments=None)
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(CreatePartitionsRequest(topics=(grown,), timeout=DONE_WITHIN, validate_only=False))
    assert isinstance(response, CreatePartitionsResponse)
    (result,) = response.results
    require_done(result.error_code, f"growing {topic} to {partitions} partitions", result.error_message)
