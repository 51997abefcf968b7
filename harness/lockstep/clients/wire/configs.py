"""Settings of topics and brokers, asked from one broker and changed while they run (KIP-226, KIP-339)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.primitive import i8

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.refusals import ANSWER_S, require_done
from lockstep.network.topology import Address

SET, DELETE = i8(0), i8(1)


class ResourceType(IntEnum):
    """Kafka's config resource types; the name of a resource is that of the topic, or the id of the broker."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource with configs. The broker with the empty name stands for the cluster-wide default of all brokers."""

    type: ResourceType
    name: str

    def __str__(self) -> str:
        if self.type is ResourceType.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "every broker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting as one broker knows it."""

    value: str | None
    """The value in force; None for a secret, and for a config without a value."""
    own: str | None
    """The dynamic config of this very resource; None if the value comes from another config source."""


DYNAMIC = {ResourceType.TOPIC: 1, ResourceType.BROKER: 3}
"""Kafka's `ConfigSource` of what was set for one topic, and of what was set for all brokers at once."""


def ask_settings(
    address: Address, resource: Resource, names: tuple[str, ...] | None = None, *, access: Access = OPEN
) -> dict[str, Setting]:
    """Settings by name, all of them if none are named; of a broker, only itself can be asked."""
    asked = DescribeConfigsResource(
        resource_type=i8(resource.type), resource_name=resource.name, configuration_keys=names
    )
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(DescribeConfigsRequest(resources=(asked,), include_synonyms=True))
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results
    require_done(result.error_code, f"the settings of {resource}", result.error_message)
    source = DYNAMIC[resource.type]
    return {
        config.name: Setting(
            value=config.value, own=next((other.value for other in config.synonyms if other.source == source), None)
        )
        for config in result.configs
    }


def alter_setting(address: Address, resource: Resource, name: str, value: str | None, *, access: Access = OPEN) -> None:
    """Set it for this resource; None takes back what was set."""
    change = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
    altered = AlterConfigsResource(resource_type=i8(resource.type), resource_name=resource.name, configs=(change,))
    with Connection(address, access, ANSWER_S) as connection:
        response = connection.ask(IncrementalAlterConfigsRequest(resources=(altered,), validate_only=False))
    assert isinstance(response, IncrementalAlterConfigsResponse)
    (result,) = response.responses
    require_done(result.error_code, f"{name}={value} of {resource}", result.error_message)
