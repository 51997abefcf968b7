"""Feature levels, as one node tells them, and raising them for the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.schema.update_features.v1.response import UpdateFeaturesResponse
from kio.static.primitive import i16

from lockstep.clients.access import OPEN, Access
from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.versions import WHICH_VERSIONS
from lockstep.errors import ClusterError
from lockstep.network.topology import Address

METADATA_VERSION = "metadata.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The feature levels that one node supports, and those that it knows to be finalized."""

    supported: Mapping[str, int]
    """The highest level of each feature; it changes with the version that the node runs."""
    finalized: Mapping[str, int]
    zk_migration_ready: bool
    """Whether a KRaft controller is configured to take over from ZooKeeper (KIP-866)."""


def ask_features(address: Address, access: Access = OPEN) -> Features:
    """What one node says of itself; raises `OSError` when it does not answer."""
    with Connection(address, access) as connection:
        return features(connection)


def features(connection: Connection) -> Features:
    """The same on a connection that is already open."""
    response = connection.ask(WHICH_VERSIONS)
    assert isinstance(response, ApiVersionsResponse)
    return Features(
        supported={feature.name: int(feature.max_version) for feature in response.supported_features},
        finalized={feature.name: int(feature.max_version_level) for feature in response.finalized_features},
        zk_migration_ready=response.zk_migration_ready,
    )


def raise_feature(address: Address, name: str, level: int, access: Access = OPEN) -> None:
    """Finalize a feature at a higher level; any error of the cluster is a `ClusterError`."""
    update = FeatureUpdateKey(feature=name, max_version_level=i16(level))
    try:
        with Connection(address, access, timeout_s=30.0) as connection:
            response = connection.ask(UpdateFeaturesRequest(feature_updates=(update,)))
    except OSError as error:
        raise ClusterError(f"{name} was not raised to {level}: {address} does not answer ({error})") from error
    assert isinstance(response, UpdateFeaturesResponse)
    for code, message in (
        (response.error_code, response.error_message),
        *((result.error_code, result.error_message) for result in response.results),
    ):
        if code is not ErrorCode.none:
            raise ClusterError(f"{name} was not raised to {level}: {code.name} ({message})")
