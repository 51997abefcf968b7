"""Creating and deleting topics by asking one broker directly."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v5.request import DeleteTopicsRequest
from kio.schema.delete_topics.v5.response import DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.errors import ClusterError
from lockstep.network.topology import Address

TIMEOUT = i32Timedelta.parse(timedelta(seconds=10))
TIMEOUT_S = 15.0
UNSAID = -1
"""How many partitions and replicas there are to be, where it is said which."""


class TopicRefused(ClusterError):
    """The cluster said no, and for good: it has not made this topic, and will not."""


def create_topic(
    address: Address,
    name: str,
    *,
    partitions: int,
    replication: int,
    config: Mapping[str, str],
    access: Access = OPEN,
    timeout_s: float = TIMEOUT_S,
    validate_only: bool = False,
    replicas: tuple[int, ...] | None = None,
) -> dict[str, str]:
    """Create one topic, or only ask whether it could be; any error of the cluster is a `ClusterError` with its name.

    It is a `TopicRefused` if no such topic can come of it; after others, such as a time-out, one may.
    With `replicas` it has one partition, on these brokers; the first of them leads.
    Returns all of the topic's configuration, defaults included (KIP-525); nothing where we may not know.
    """
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions if replicas is None else UNSAID),
        replication_factor=i16(replication if replicas is None else UNSAID),
        assignments=() if replicas is None else _placed(replicas),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in config.items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=validate_only)
    try:
        with Connection(address, access, timeout_s) as connection:
            response = connection.ask(request)
    except OSError as error:
        raise ClusterError(f"topic {name} was not created: {address} does not answer ({error})") from error
    assert isinstance(response, CreateTopicsResponse)
    (result,) = response.topics
    if result.error_code is not ErrorCode.none:
        unsure = result.error_code.retriable or result.error_code is ErrorCode.unknown_server_error
        kind = ClusterError if unsure else TopicRefused
        raise kind(f"topic {name} was not created: {result.error_code.name} ({result.error_message})")
    return {config.name: config.value for config in result.configs or () if config.value is not None}


def _placed(replicas: tuple[int, ...]) -> tuple[CreatableReplicaAssignment, ...]:
    return (CreatableReplicaAssignment(partition_index=i32(0), broker_ids=tuple(map(BrokerId, replicas))),)


def delete_topic(address: Address, name: str, *, access: Access = OPEN, timeout_s: float = TIMEOUT_S) -> bool:
    """Delete one topic, by asking the controller; returns whether it was there."""
    request = DeleteTopicsRequest(topic_names=(TopicName(name),), timeout=TIMEOUT)
    try:
        with Connection(address, access, timeout_s) as connection:
            response = connection.ask(request)
    except OSError as error:
        raise ClusterError(f"topic {name} was not deleted: {address} does not answer ({error})") from error
    assert isinstance(response, DeleteTopicsResponse)
    (result,) = response.responses
    if result.error_code not in (ErrorCode.none, ErrorCode.unknown_topic_or_partition):
        raise ClusterError(f"topic {name} was not deleted: {result.error_code.name} ({result.error_message})")
    return result.error_code is ErrorCode.none
