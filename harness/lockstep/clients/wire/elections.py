"""Asking the controller to elect a partition's leader (KIP-460)."""

from __future__ import annotations

from enum import IntEnum

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.refusals import ANSWER_S, DONE_WITHIN, require_done
from lockstep.network.topology import Address


class Election(IntEnum):
    """Kafka's election types (ElectLeaders): the replicas that the controller may elect."""

    PREFERRED = 0
    """The first replica of the assignment, if it is in sync."""
    UNCLEAN = 1
    """For a partition without a leader: any live replica, in the ISR or not."""


def elect_leader(address: Address, topic: str, partition: int, election: Election, *, access: Access = OPEN) -> None:
    """Elect now; raises `Refused`, and with it what the controller says."""
    request = ElectLeadersRequest(
        election_type=i8(election),
        topic_partitions=(TopicPartitions(topic=TopicName(topic), partitions=(i32(partition),)),),
        timeout=DONE_WITHIN,
    )
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(request)
    assert isinstance(response, ElectLeadersResponse)
    what = f"the {election.name.lower()} election of {topic}-{partition}"
    require_done(response.error_code, what)
    for result in response.replica_election_results:
        for elected in result.partition_result:
            require_done(elected.error_code, what, elected.error_message)
