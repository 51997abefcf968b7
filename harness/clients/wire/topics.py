"""Creating topics by asking one broker directly."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from harness.clients.access import OPEN, Access
from harness.clients.wire.connection import Connection
from harness.errors import ClusterError
from harness.network.topology import Address

TIMEOUT = i32Timedelta.parse(timedelta(seconds=10))


def create_topic(
    address: Address,
    name: str,
    *,
    partitions: int,
    replication: int,
    config: Mapping[str, str],
    access: Access = OPEN,
    timeout_s: float = 15.0,
) -> None:
    """Create one topic; any error of the cluster is a `ClusterError` with its name."""
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replication),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in config.items()),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT, validate_only=False)
    try:
        with Connection(address, access, timeout_s) as connection:
            response = connection.ask(request)
    except OSError as error:
        raise ClusterError(f"topic {name} was not created: {address} does not answer ({error})") from error
    assert isinstance(response, CreateTopicsResponse)
    for result in response.topics:
        if result.error_code is not ErrorCode.none:
            raise ClusterError(f"topic {name} was not created: {result.error_code.name} ({result.error_message})")
