"""Metadata records about topics, partitions, brokers, configs and features, as kio entities; kio itself has none.

One class covers all versions of a record: each field names the version that introduced it, and a record of an older
version gets the field's default. Records of all other types are skipped.
"""

# No `from __future__ import annotations` here: kio reads the field types at run time.

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias, get_args

from kio.serial import entity_reader
from kio.serial.readers import Reader, read_unsigned_varint
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i64, u16

from lockstep.errors import ClusterError

FRAME_VERSION = 1
"""Frame version of each record (AbstractApiMessageSerde)."""
NO_LEADER_CHANGE = i32(-2)


def wire(kafka_type: str | None = None, *, since: int = 0, tag: int | None = None) -> Mapping[str, object]:
    """Wire format of a field. A nested entity has no primitive type."""
    described = {"kafka_type": kafka_type, "since": since, "tag": tag}
    return {key: value for key, value in described.items() if value is not None}


class _Nested:
    """Base of an entity nested in a record."""

    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = i16(0)
    __flexible__: ClassVar = True


class _Record:
    """Base of all records; `__version__` is the newest version that Lockstep knows."""

    __slots__ = ()
    __type__: ClassVar = EntityType.data
    __version__: ClassVar = i16(0)
    __flexible__: ClassVar = True
    __api_key__: ClassVar[i16]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerEndpoint(_Nested):
    """A listener of a broker."""

    name: str = field(metadata=wire("string"))
    host: str = field(metadata=wire("string"))
    port: u16 = field(metadata=wire("uint16"))
    security_protocol: i16 = field(metadata=wire("int16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFeature(_Nested):
    """The range of levels of a feature that a broker supports."""

    name: str = field(metadata=wire("string"))
    min_supported_version: i16 = field(metadata=wire("int16"))
    max_supported_version: i16 = field(metadata=wire("int16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord(_Record):
    """A broker registered, or updated its registration."""

    __api_key__ = i16(0)
    __version__ = i16(4)
    broker_id: i32 = field(metadata=wire("int32"))
    is_migrating_zk_broker: bool = field(metadata=wire("bool", since=2), default=False)
    incarnation_id: uuid.UUID | None = field(metadata=wire("uuid"))
    broker_epoch: i64 = field(metadata=wire("int64"))
    end_points: tuple[BrokerEndpoint, ...] = field(metadata=wire())
    features: tuple[BrokerFeature, ...] = field(metadata=wire())
    rack: str | None = field(metadata=wire("string"))
    fenced: bool = field(metadata=wire("bool"))
    in_controlled_shutdown: bool = field(metadata=wire("bool", since=1), default=False)
    log_dirs: tuple[uuid.UUID | None, ...] = field(metadata=wire("uuid", since=3, tag=0), default=())
    cordoned_log_dirs: tuple[uuid.UUID | None, ...] | None = field(metadata=wire("uuid", since=4, tag=1), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord(_Record):
    """A broker was unregistered by an administrator."""

    __api_key__ = i16(1)
    broker_id: i32 = field(metadata=wire("int32"))
    broker_epoch: i64 = field(metadata=wire("int64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord(_Record):
    """A topic was created."""

    __api_key__ = i16(2)
    name: str = field(metadata=wire("string"))
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord(_Record):
    """The full state of a partition."""

    __api_key__ = i16(3)
    __version__ = i16(2)
    partition_id: i32 = field(metadata=wire("int32"))
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    replicas: tuple[i32, ...] = field(metadata=wire("int32"))
    isr: tuple[i32, ...] = field(metadata=wire("int32"))
    removing_replicas: tuple[i32, ...] = field(metadata=wire("int32"))
    adding_replicas: tuple[i32, ...] = field(metadata=wire("int32"))
    leader: i32 = field(metadata=wire("int32"))
    leader_recovery_state: i8 = field(metadata=wire("int8", tag=0), default=i8(0))
    leader_epoch: i32 = field(metadata=wire("int32"))
    partition_epoch: i32 = field(metadata=wire("int32"))
    directories: tuple[uuid.UUID | None, ...] = field(metadata=wire("uuid", since=1), default=())
    eligible_leader_replicas: tuple[i32, ...] | None = field(metadata=wire("int32", since=2, tag=1), default=None)
    last_known_elr: tuple[i32, ...] | None = field(metadata=wire("int32", since=2, tag=2), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord(_Record):
    """A dynamic config of a topic or broker; without a value it was deleted."""

    __api_key__ = i16(4)
    resource_type: i8 = field(metadata=wire("int8"))
    resource_name: str = field(metadata=wire("string"))
    name: str = field(metadata=wire("string"))
    value: str | None = field(metadata=wire("string"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord(_Record):
    """A change of a partition. A field with its default value is unchanged."""

    __api_key__ = i16(5)
    __version__ = i16(2)
    partition_id: i32 = field(metadata=wire("int32"))
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))
    isr: tuple[i32, ...] | None = field(metadata=wire("int32", tag=0), default=None)
    leader: i32 = field(metadata=wire("int32", tag=1), default=NO_LEADER_CHANGE)
    replicas: tuple[i32, ...] | None = field(metadata=wire("int32", tag=2), default=None)
    removing_replicas: tuple[i32, ...] | None = field(metadata=wire("int32", tag=3), default=None)
    adding_replicas: tuple[i32, ...] | None = field(metadata=wire("int32", tag=4), default=None)
    leader_recovery_state: i8 = field(metadata=wire("int8", tag=5), default=i8(-1))
    directories: tuple[uuid.UUID | None, ...] | None = field(metadata=wire("uuid", since=1, tag=8), default=None)
    eligible_leader_replicas: tuple[i32, ...] | None = field(metadata=wire("int32", since=2, tag=6), default=None)
    last_known_elr: tuple[i32, ...] | None = field(metadata=wire("int32", since=2, tag=7), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord(_Record):
    """A broker was fenced. Newer metadata versions use BrokerRegistrationChangeRecord."""

    __api_key__ = i16(7)
    id: i32 = field(metadata=wire("int32"))
    epoch: i64 = field(metadata=wire("int64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord(_Record):
    """A broker was unfenced. Newer metadata versions use BrokerRegistrationChangeRecord."""

    __api_key__ = i16(8)
    id: i32 = field(metadata=wire("int32"))
    epoch: i64 = field(metadata=wire("int64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord(_Record):
    """A topic was deleted with all its partitions."""

    __api_key__ = i16(9)
    topic_id: uuid.UUID | None = field(metadata=wire("uuid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord(_Record):
    """The finalized level of a feature; 0 disables it."""

    __api_key__ = i16(12)
    name: str = field(metadata=wire("string"))
    feature_level: i16 = field(metadata=wire("int16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord(_Record):
    """A broker was fenced (1) or unfenced (-1), or entered controlled shutdown (1); 0 means unchanged."""

    __api_key__ = i16(17)
    __version__ = i16(3)
    broker_id: i32 = field(metadata=wire("int32"))
    broker_epoch: i64 = field(metadata=wire("int64"))
    fenced: i8 = field(metadata=wire("int8", tag=0), default=i8(0))
    in_controlled_shutdown: i8 = field(metadata=wire("int8", since=1, tag=1), default=i8(0))
    log_dirs: tuple[uuid.UUID | None, ...] = field(metadata=wire("uuid", since=2, tag=2), default=())
    cordoned_log_dirs: tuple[uuid.UUID | None, ...] | None = field(metadata=wire("uuid", since=3, tag=3), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord(_Record):
    """Begins a metadata transaction: the records that follow take effect when it ends (KIP-868)."""

    __api_key__ = i16(23)
    name: str | None = field(metadata=wire("string", tag=0), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord(_Record):
    """Ends a metadata transaction: its records take effect."""

    __api_key__ = i16(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord(_Record):
    """Aborts a metadata transaction: its records never take effect."""

    __api_key__ = i16(25)
    reason: str | None = field(metadata=wire("string", tag=0), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord(_Record):
    """Clears the ELR of all partitions of this topic, or of all topics if the name is empty."""

    __api_key__ = i16(28)
    topic_name: str = field(metadata=wire("string"))


MetadataRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | BrokerRegistrationChangeRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | ClearElrRecord
)

RECORDS: Mapping[int, type[MetadataRecord]] = {record.__api_key__: record for record in get_args(MetadataRecord)}


def decode(value: bytes) -> MetadataRecord | None:
    """Decode the value of a record of the metadata log; None if its type is not in `RECORDS`."""
    position, (frame_version, api_key, version) = _framing(value)
    if frame_version != FRAME_VERSION:
        raise ClusterError(f"a metadata record has frame version {frame_version}: this Kafka is too new for Lockstep")
    record = RECORDS.get(api_key)
    if record is None:
        return None
    if version > record.__version__:
        raise ClusterError(f"{record.__name__} has version {version}: this Kafka is too new for Lockstep")
    read, size = _reader(api_key, version)(value, position)
    if position + size != len(value):
        raise ClusterError(f"{record.__name__} of version {version} is {len(value) - position} bytes, not {size}")
    return record(**{part.name: getattr(read, part.name) for part in fields(read)})


def _framing(value: bytes) -> tuple[int, list[int]]:
    """The offset of the record in its value, and the header before it: frame version, record type, record version."""
    position = 0
    numbers: list[int] = []
    while len(numbers) < 3:
        number, size = read_unsigned_varint(value, position)
        numbers.append(int(number))
        position += size
    return position, numbers


def entity(api_key: int, version: int) -> Any:
    """The kio entity of a record type in one version."""
    record = RECORDS[api_key]
    there = [
        (part.name, part.type, field(metadata=part.metadata, default=part.default))
        for part in fields(record)
        if part.metadata["since"] <= version
    ]
    return make_dataclass(
        record.__name__, there, bases=(_Record,), namespace={"__version__": i16(version)}, kw_only=True, frozen=True
    )


@cache
def _reader(api_key: int, version: int) -> Reader[Any]:
    reader: Reader[Any] = entity_reader(entity(api_key, version))
    return reader
