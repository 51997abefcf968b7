"""Rules for frames, on a proxy alone: what is refused, how they read, and every answer as another library sees it."""

from __future__ import annotations

import dataclasses
import datetime
import types
import typing
import uuid
from typing import Any

import pytest
import requests
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from lockstep.clients.wire.connection import Connection
from lockstep.errors import UsageError
from lockstep.network.conditions import Frames
from lockstep.network.frames import ANSWERABLE, APIS, PARTITIONED, Answer, Drop, Hold, Postpone, Rule, Side
from lockstep.network.links import Links
from lockstep.network.topology import Link
from lockstep.network.toxiproxy import ProxyServer
from lockstep.spec.cluster import Listener
from tests.network.wires import Wires

CODE = ErrorCode.not_coordinator
RULES = (
    Hold(apis=("Produce", "Fetch"), side=Side.RESPONSE, topic="t", partition=0, times=2),
    Drop(apis=("EndTxn",), side=Side.REQUEST, client_id="c"),
    Postpone(apis=("Heartbeat",), side=Side.RESPONSE, ms=10),
    Answer(apis=("Produce",), error_code=CODE, topic_id=str(uuid.UUID(int=1))),
)
KEYS = {"".join(word.capitalize() for word in name.split("_")): key for key, name in api_key_map.items()}
UNREADABLE = {("InitProducerId", 6)}
"""Versions that no release of Kafka uses, and that the proxy does not read."""


def test_rules_are_known_to_whoever_attaches_and_count_nothing_yet(wires: Wires) -> None:
    condition = Frames(RULES)
    wires.links.impose(wires.link, condition)
    assert Links.attached(wires.links.described()).condition(wires.link) == condition
    assert wires.links.matched(wires.link) == (0, 0, 0, 0)
    wires.links.mend(wires.link)
    assert wires.links.matched(wires.link) == ()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (RULES[0], "hold Produce and Fetch responses, topic t, partition 0, 2 times"),
        (RULES[1], "drop EndTxn requests, client c"),
        (RULES[2], "postpone Heartbeat responses by 10 ms"),
        (RULES[3], f"answer Produce requests, topic id {uuid.UUID(int=1)} with NOT_COORDINATOR"),
    ],
)
def test_rules_in_words(rule: Rule, words: str) -> None:
    assert str(rule) == words
    assert str(Frames((rule, rule))) == f"{words}; {words}"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("Frames(())", "at least one rule"),
        ("Hold(apis=(), side=Side.REQUEST)", "at least one api"),
        ("Hold(apis=('produce',), side=Side.REQUEST)", "no api produce"),
        ("Drop(apis=('Heartbeat',), side=Side.REQUEST, partition=0)", "Heartbeat requests name no partitions"),
        ("Drop(apis=('Produce',), side=Side.REQUEST, times=0)", "at least once"),
        ("Postpone(apis=('Produce',), side=Side.REQUEST, ms=0)", "postponed by 1 to"),
        ("Answer(apis=('Metadata',), error_code=1)", "cannot answer Metadata: it can AddOffsetsToTxn"),
        ("Answer(apis=('Produce',), error_code=0)", "no error with code 0"),
        ("Answer(apis=('Produce',), error_code=4711)", "no error with code 4711"),
    ],
)
def test_rules_that_cannot_be(wrong: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        eval(wrong)


def test_zookeeper_has_no_frames_of_kafka(wires: Wires) -> None:
    link = Link(source="broker-1", destination="zookeeper-1", listener=Listener.ZOOKEEPER)
    with pytest.raises(UsageError, match="carries ZooKeeper's protocol"):
        wires.links.impose(link, Frames(RULES))


def test_the_proxy_knows_the_same_apis_as_we_do(wires: Wires, server: ProxyServer) -> None:
    flow = f"http://{server.host}:{server.port}/proxies/{wires.link.name}/toxics/destination"

    def accepted(**rule: Any) -> bool:
        asked = {"attributes": {"condition": {"kind": "frames", "rules": [rule]}}}
        return requests.post(flow, json=asked, timeout=5).ok

    for api in APIS:
        assert accepted(do="hold", side="request", apis=[api]), api
        assert accepted(do="hold", side="request", apis=[api], partition=0) == (api in PARTITIONED), api
        assert accepted(do="answer", apis=[api], error_code=1) == (api in ANSWERABLE), api


@pytest.mark.parametrize("api", sorted(ANSWERABLE))
def test_every_version_of_every_answer_is_read_by_another_library(wires: Wires, api: str) -> None:
    wires.links.impose(wires.link, Frames((Answer(apis=(api,), error_code=CODE),)))
    versions = [
        version
        for version, entities in schema_name_map[api_key_map[KEYS[api]]].items()
        if EntityType.request in entities and (api, version) not in UNREADABLE
    ]
    with Connection(wires.links.address(wires.link), timeout_s=20) as connection:
        for version in versions:
            request = _filled(load_request_schema(KEYS[api], version))
            sent = connection.send(request, version=int(request.__version__))  # nobody is there to ask what it knows
            assert CODE in set(_codes(connection.receive(sent))), version
    assert wires.links.matched(wires.link) == (len(versions),)
    assert wires.links.traffic()[wires.link].to_destination == 0


def _filled(kind: Any) -> Any:
    """Some value of a type that kio's messages are made of."""
    if origin := typing.get_origin(kind):
        if origin in (types.UnionType, typing.Union):
            return _filled(next(option for option in typing.get_args(kind) if option is not type(None)))
        return (_filled(typing.get_args(kind)[0]),)
    if dataclasses.is_dataclass(kind):
        assert isinstance(kind, type)
        hints = typing.get_type_hints(kind)
        return kind(**{field.name: _filled(hints[field.name]) for field in dataclasses.fields(kind)})
    if hasattr(kind, "__supertype__"):
        return _filled(kind.__supertype__)
    if issubclass(kind, datetime.timedelta):
        return datetime.timedelta(milliseconds=1)
    if issubclass(kind, uuid.UUID):
        return uuid.UUID(int=1)
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bytes):
        return b"bytes"
    return kind(1)


def _codes(message: Any) -> typing.Iterator[ErrorCode]:
    """Every error code in a message."""
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, ErrorCode):
            yield value
        elif isinstance(value, tuple):
            for each in value:
                if dataclasses.is_dataclass(each):
                    yield from _codes(each)
