"""Consumer actions that a walk may draw: the next request of a correct client, and now and then a wrong one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from lockstep.clients.wire.coordinators import GroupProtocol
from lockstep.stepper.driver.actions import (
    Beat,
    Claims,
    Commit,
    Committed,
    Enter,
    Exit,
    GroupStep,
    Join,
    Leave,
    Owned,
    Report,
    Step,
    Sync,
    Until,
    Wait,
)
from lockstep.stepper.driver.groups.consumers import Consumer
from lockstep.stepper.driver.groups.situation import GroupSituation
from lockstep.stepper.model.groups.responses import PARTITIONS

LARGE = 60
"""Above this belief size, OffsetFetch requests go to other brokers: they show which still act as coordinator."""
WRONG = (Claims.STRANGER, Claims.OLD, Claims.NEXT)


class Drawn(NamedTuple):
    """An action that can be drawn, and its initial weight."""

    name: str
    weight: float
    step: Step


def drawn(draw: random.Random, groups: GroupSituation, running: frozenset[int]) -> Iterator[Drawn]:
    """The consumer actions that are possible in this situation."""
    if any(consumer.open for consumer in groups.consumers):
        yield Drawn("wait for consumers' answers", 6, Wait(until=Until.GROUP_ANSWERS))
    if not groups.calm:
        return
    for consumer in groups.consumers:
        if not consumer.open:
            step = _proper(draw, consumer, groups.coordinator)
            yield Drawn(f"consumers: {type(step).__name__}", 160, step)
        for step in _others(draw, consumer, groups.coordinator):
            yield Drawn(f"consumers otherwise: {type(step).__name__}", 20, step)
    elsewhere = sorted(running - {groups.coordinator})
    for consumer in groups.consumers:
        if elsewhere and groups.beliefs.get(consumer.protocol, 0) > LARGE:  # a former one may not have resigned
            look = Committed(broker=draw.choice(elsewhere), consumer=consumer.name, partition=0)
            yield Drawn("consumers look elsewhere", 100, look)
    idle = [consumer for consumer in groups.consumers if not consumer.open]
    if elsewhere and idle:
        step = _proper(draw, draw.choice(idle), draw.choice(elsewhere))
        yield Drawn("consumers elsewhere", 20, step)


def _proper(draw: random.Random, consumer: Consumer, broker: int) -> GroupStep:
    """The next request of a correct client."""
    name = consumer.name
    if draw.random() < 0.25:
        return Committed(broker=broker, consumer=name, partition=draw.randrange(PARTITIONS))
    if consumer.protocol is GroupProtocol.CONSUMER:
        if not consumer.in_group:
            return Enter(broker=broker, consumer=name)
        return _either(draw, Report(broker=broker, consumer=name), _commit(draw, consumer, broker, Claims.RIGHT))
    if not consumer.in_group:
        claims = Claims.RIGHT if consumer.member else Claims.NO_MEMBER
        return Join(broker=broker, consumer=name, claims=claims)
    if not consumer.synced:
        return _either(draw, Sync(broker=broker, consumer=name), Join(broker=broker, consumer=name))
    return _either(draw, Beat(broker=broker, consumer=name), _commit(draw, consumer, broker, Claims.RIGHT))


def _others(draw: random.Random, consumer: Consumer, broker: int) -> Iterator[GroupStep]:
    """Requests besides that: with a wrong member id, generation or member epoch, a second join, or a leave."""
    name, wrong = consumer.name, draw.choice(WRONG)
    yield _commit(draw, consumer, broker, draw.choice((*WRONG, Claims.NO_MEMBER)))
    if consumer.protocol is GroupProtocol.CONSUMER:
        yield Report(broker=broker, consumer=name, claims=wrong, owned=draw.choice(list(Owned)))
        yield Committed(broker=broker, consumer=name, partition=0, claims=draw.choice((Claims.RIGHT, *WRONG)))
        if consumer.in_group and not consumer.open:
            yield Report(broker=broker, consumer=name, owned=draw.choice((Owned.SOME, Owned.UNSAID)))
            yield Exit(broker=broker, consumer=name, for_now=consumer.instance is not None and draw.random() < 0.5)
        elif consumer.member:
            yield Enter(broker=broker, consumer=name)
        return
    yield Beat(broker=broker, consumer=name, claims=wrong)
    yield Sync(broker=broker, consumer=name, claims=wrong)
    yield Join(broker=broker, consumer=name, claims=Claims.STRANGER)
    if not consumer.open:
        yield Leave(broker=broker, consumer=name, claims=draw.choice((Claims.RIGHT, Claims.STRANGER)))
        if consumer.member:
            yield Join(broker=broker, consumer=name)
        if consumer.instance is not None:
            yield Join(broker=broker, consumer=name, claims=Claims.NO_MEMBER)


def _either(draw: random.Random, one: GroupStep, other: GroupStep) -> GroupStep:
    return one if draw.random() < 0.5 else other


def _commit(draw: random.Random, consumer: Consumer, broker: int, claims: Claims) -> Commit:
    partition, offset = draw.randrange(PARTITIONS), draw.randrange(1000)
    return Commit(broker=broker, consumer=consumer.name, partition=partition, offset=offset, claims=claims)
