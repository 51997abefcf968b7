"""Metadata records: our fields are those that Kafka's own jars declare, and bytes are read as Kafka writes them."""

from __future__ import annotations

import io
import json
import re
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType
from typing import Any, get_args, get_origin

import pytest
from kio.serial import entity_writer

from lockstep.cluster.distribution import distribution_directory, ensure_jars, read_lock
from lockstep.errors import ClusterError
from lockstep.progress import Progress
from lockstep.stepper.observers.metadata_records import (
    RECORDS,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    decode,
    entity,
)

TOPIC = uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10)
TOPIC_BYTES = TOPIC.bytes.hex()


def declared_by(kafka: str) -> dict[int, dict[str, Any]]:
    """The schemas of metadata records in the jars of one version, by type."""
    jars = distribution_directory(kafka) / "jars"
    ensure_jars(read_lock(kafka), jars, Progress(quiet=True))
    with zipfile.ZipFile(jars / f"kafka-metadata-{kafka}.jar") as jar:
        texts = [jar.read(name).decode() for name in jar.namelist() if re.match(r"common/metadata/\w+\.json", name)]
    schemas = [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]
    return {schema["apiKey"]: schema for schema in schemas}


Declared = tuple[str, str, int, int | None, bool]
"""Name, type on the wire, the first version that has it, tag, and whether it may be null."""


def theirs(schema: Mapping[str, Any]) -> Iterator[Declared]:
    for declared in schema["fields"]:
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", declared["name"]).lower()
        tag = int(declared["tag"]) if "tag" in declared else None
        yield name, declared["type"], int(declared["versions"].rstrip("+")), tag, "nullableVersions" in declared
        for part in theirs(declared) if "fields" in declared else ():
            yield (f"{name}.{part[0]}", *part[1:])


def ours(record: type[Any], newest: int) -> Iterator[Declared]:
    for declared in fields(record):
        metadata = declared.metadata
        if metadata["since"] > newest:
            continue
        inner, array, nullable = shape(declared)
        kafka_type = metadata.get("kafka_type") or inner.__name__
        yield declared.name, "[]" * array + kafka_type, metadata["since"], metadata.get("tag"), nullable
        for part in ours(inner, newest) if "kafka_type" not in metadata else ():
            yield (f"{declared.name}.{part[0]}", *part[1:])


def shape(declared: Field[Any]) -> tuple[Any, bool, bool]:
    """The type of a field or of the items of its array; whether it is an array; whether it may be null."""
    kind, nullable = declared.type, NoneType in get_args(declared.type)
    if nullable:
        kind = get_args(kind)[0]
        nullable = kind is not uuid.UUID  # kio's None for the UUID that is all zeros
    array = get_origin(kind) is tuple
    return get_args(kind)[0] if array else kind, array, nullable


def told(record: Any) -> dict[str, object]:
    """The fields that are not as they are by default."""
    values = {part.name: (getattr(record, part.name), part.default) for part in fields(record)}
    return {name: value for name, (value, default) in values.items() if value != default}


def newest(schema: Mapping[str, Any]) -> int:
    return int(schema["validVersions"].rpartition("-")[2])


VERSIONS = [
    "4.3.1",
    "3.9.2",
    *(pytest.param(kafka, marks=pytest.mark.long) for kafka in ("3.6.2", "4.0.2", "4.1.2")),
]


@pytest.mark.parametrize("kafka", VERSIONS)
def test_fields_are_those_of_kafka(kafka: str) -> None:
    schemas = declared_by(kafka)
    assert len(schemas.keys() & RECORDS.keys()) >= len(RECORDS) - 1  # there was no ClearElrRecord before 4.0
    for api_key in schemas.keys() & RECORDS.keys():
        record, schema = RECORDS[api_key], schemas[api_key]
        assert record.__name__ == schema["name"]
        assert newest(schema) <= record.__version__
        assert list(ours(record, newest(schema))) == list(theirs(schema)), record


@pytest.mark.parametrize("kafka", VERSIONS)
def test_defaults_are_those_of_kafka(kafka: str) -> None:
    for api_key, schema in declared_by(kafka).items():
        record = RECORDS.get(api_key)
        defaults = {} if record is None else {part.name: part.default for part in fields(record)}
        for name, declared in zip(
            (name for name, *_ in theirs(schema) if "." not in name), schema["fields"], strict=True
        ):
            if defaults.get(name, MISSING) is not MISSING:
                assert defaults[name] == default_of(declared), (schema["name"], name)


def default_of(declared: Mapping[str, Any]) -> object:
    told = declared.get("default")
    if told is None:
        return () if declared["type"].startswith("[]") else 0
    return {"null": None, "false": False, "true": True}[told] if told.isalpha() else int(told)


@pytest.mark.parametrize(
    ("api_key", "version"), [(key, v) for key in RECORDS for v in range(RECORDS[key].__version__ + 1)]
)
def test_kio_takes_every_version_of_every_record(api_key: int, version: int) -> None:
    entity_writer(entity(api_key, version))


def test_a_partition_as_3_6_writes_it() -> None:
    read = decode(
        bytes.fromhex(
            "01 03 00"  # frame version, type, version
            f"00000001 {TOPIC_BYTES}"
            "04 00000001 00000002 00000003"  # replicas
            "03 00000001 00000003"  # ISR
            "01 01"  # removing, adding
            "00000003 00000007 00000009"  # leader, its epoch, partition epoch
            "01 00 01 01"  # one tagged field: 0, one byte, recovering
        )
    )
    assert isinstance(read, PartitionRecord)
    assert told(read) == {
        "partition_id": 1, "topic_id": TOPIC, "replicas": (1, 2, 3), "isr": (1, 3), "removing_replicas": (),
        "adding_replicas": (), "leader": 3, "leader_epoch": 7, "partition_epoch": 9, "leader_recovery_state": 1,
    }  # fmt: skip


def test_a_partition_with_directories_and_eligible_leaders() -> None:
    read = decode(
        bytes.fromhex(
            f"01 03 02 00000000 {TOPIC_BYTES} 02 00000001 02 00000001 01 01 00000001 00000000 00000000"
            f"02 {TOPIC_BYTES}"  # directories
            "02 01 05 02 00000002 02 05 02 00000003"  # two tagged fields, each an array of one
        )
    )
    assert isinstance(read, PartitionRecord)
    assert read.directories == (TOPIC,)
    assert (read.eligible_leader_replicas, read.last_known_elr) == ((2,), (3,))


def test_a_change_of_a_partition_says_only_what_is_other() -> None:
    read = decode(bytes.fromhex(f"01 05 02 00000000 {TOPIC_BYTES} 03 00 05 02 00000002 01 04 00000002 06 01 01"))
    assert isinstance(read, PartitionChangeRecord)
    assert told(read) == {
        "partition_id": 0, "topic_id": TOPIC, "isr": (2,), "leader": 2, "eligible_leader_replicas": (),
    }  # fmt: skip


def test_a_broker_of_each_version() -> None:
    for version in range(5):
        at_the_end = "01" if version >= 1 else ""
        read = decode(
            bytes.fromhex(
                f"01 00 0{version} 00000002"
                + ("00" if version >= 2 else "")
                + f"{TOPIC_BYTES} 0000000000000019"
                + "02 02 41 02 42 2384 0001 00"  # one endpoint
                + "02 02 43 0001 0002 00"  # one feature
                + f"00 01 {at_the_end} 00"
            )
        )
        assert isinstance(read, RegisterBrokerRecord)
        assert (read.broker_id, read.broker_epoch, read.fenced, read.rack) == (2, 25, True, None)
        assert read.in_controlled_shutdown is (version >= 1)
        assert (read.end_points[0].port, read.features[0].max_supported_version) == (9092, 2)


def test_a_broker_that_is_fenced_and_one_that_shuts_down() -> None:
    fenced = decode(bytes.fromhex("01 11 00 00000002 0000000000000019 01 00 01 01"))
    leaving = decode(bytes.fromhex("01 11 01 00000002 0000000000000019 01 01 01 01"))
    assert isinstance(fenced, BrokerRegistrationChangeRecord)
    assert isinstance(leaving, BrokerRegistrationChangeRecord)
    assert (fenced.fenced, fenced.in_controlled_shutdown) == (1, 0)
    assert (leaving.fenced, leaving.in_controlled_shutdown) == (0, 1)


def test_what_does_not_matter_is_passed_over() -> None:
    assert decode(bytes.fromhex("01 14 00 00")) is None  # NoOpRecord


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("02 14 00 00", "frame version 2"),
        ("01 07 01 00000002 0000000000000019 00", "FenceBrokerRecord has version 1"),
        ("01 07 00 00000002 0000000000000019 00 00", "14 bytes, not 13"),
    ],
)
def test_what_cannot_be_read_is_refused(value: str, words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        decode(bytes.fromhex(value))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_written_is_read(version: int) -> None:
    written = entity(PartitionRecord.__api_key__, version)(
        partition_id=3, topic_id=TOPIC, replicas=(5, 6), isr=(6,), removing_replicas=(5,), adding_replicas=(6,),
        leader=-1, leader_epoch=2, partition_epoch=8,
    )  # fmt: skip
    with io.BytesIO() as buffer:
        buffer.write(bytes([1, PartitionRecord.__api_key__, version]))
        entity_writer(type(written))(buffer, written)
        read = decode(buffer.getvalue())
    assert read is not None
    assert told(read) == told(written)
