"""Takes consumer actions on a live cluster, and reports each request and response to the model as an event."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.clients.wire.connection import Connection, Pending
from lockstep.clients.wire.coordinators import GroupProtocol, KeyType, ask_coordinator
from lockstep.clients.wire.refusals import Refused
from lockstep.closeable import Closeable
from lockstep.cluster.cluster import Cluster
from lockstep.stepper.driver.actions import GroupStep
from lockstep.stepper.driver.broker_index import BrokerIndex
from lockstep.stepper.driver.groups.codec import Wire, read
from lockstep.stepper.driver.groups.consumers import NAMES, Consumer
from lockstep.stepper.driver.groups.situation import GroupSituation
from lockstep.stepper.driver.timeouts import ANSWER_S, NOT_YET, PATIENCE_S
from lockstep.stepper.driver.timers import MS
from lockstep.stepper.model.events import (
    CoordinatorElected,
    Events,
    GroupAnswered,
    GroupAsked,
    GroupBegan,
    GroupUnanswered,
    Named,
)
from lockstep.stepper.model.groups.description import in_words
from lockstep.stepper.model.groups.responses import PARTITIONS
from lockstep.stepper.model.groups.state import OPERATIONS, Reply, Request, Times
from lockstep.stepper.observers import ControllerObserver, follow
from lockstep.wait import wait_until
from lockstep_model.registration import NO_LEADER

OFFSETS = "__consumer_offsets"
PARTITION = 0
"""The partition of __consumer_offsets that all groups of a walk hash to, so that they share one coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A request whose response is outstanding."""

    consumer: Consumer
    request: Request
    connection: Connection
    pending: Pending[Any]


class GroupDriver(Closeable):
    """The consumers of a walk: one group for each group protocol that the cluster supports."""

    def __init__(
        self, cluster: Cluster, topic: str, protocols: tuple[GroupProtocol, ...], times: Times, number: BrokerIndex
    ) -> None:
        self._cluster = cluster
        self._number = number
        self._times = times
        partitions = _create_offsets_topic(cluster)
        cluster.create_topic(topic, partitions=PARTITIONS, replication=len(number.ids), config={})
        topic_id = cluster.leader(topic, 0).topic_id
        self._wires = {
            protocol: Wire(group=name_in(topic, protocol, partitions), topic=topic, topic_id=topic_id, times=times)
            for protocol in protocols
        }
        self._consumers = {
            name: Consumer(name=name, protocol=protocol) for protocol in protocols for name in NAMES[protocol]
        }
        self._open: dict[GroupProtocol, dict[int, _Open]] = {protocol: {} for protocol in protocols}
        self._observer: ControllerObserver = follow(cluster, OFFSETS, PARTITION)
        self._term = NO_LEADER, -1
        self.tell: Callable[[Events], None] = lambda _: None

    def close(self) -> None:
        self._observer.close()
        for slots in self._open.values():
            for one in slots.values():
                one.connection.close()

    def begin(self, tell: Callable[[Events], None]) -> None:
        """Report the current coordinator and the groups, and send all further events to this tracker."""
        self.tell = tell
        self._elected(_now_ms())
        for protocol in self._wires:
            tell(GroupBegan(group=protocol, brokers=len(self._number.ids), times=self._times))

    def take(self, step: GroupStep) -> tuple[str, Reply | None]:
        """Send a consumer's request to a broker. Returns the response in words and in the model's types."""
        consumer = self._consumers[step.consumer]
        slots = self._open[consumer.protocol]
        slot = next((free for free in range(OPERATIONS) if free not in slots), None)
        if slot is None:
            return "too many requests are open", None
        self.observe()
        request = consumer.request(step)
        at_ms = _now_ms()
        try:
            connection = Connection(self._cluster.direct(step.broker), self._cluster.access(), ANSWER_S)
        except OSError as error:
            return f"no answer ({error})", None
        pending = self._wires[consumer.protocol].send(connection, request)
        broker = self._number(step.broker)
        self.tell(GroupAsked(group=consumer.protocol, slot=slot, broker=broker, request=Named.of(request), at_ms=at_ms))
        slots[slot] = _Open(consumer=consumer, request=request, connection=connection, pending=pending)
        consumer.open.add(slot)
        select.select([connection], [], [], PATIENCE_S if _may_wait(request) else ANSWER_S)
        answers = self.observe()
        own = answers.get((consumer.protocol, slot))
        others = [in_words(reply) for key, reply in answers.items() if key != (consumer.protocol, slot) and reply]
        seen = NOT_YET if slot in slots else "no answer" if own is None else in_words(own)
        return "; ".join([seen, *others]), own

    def observe(self) -> dict[tuple[GroupProtocol, int], Reply | None]:
        """Report coordinator elections and the responses that have arrived; None if the connection broke instead.

        Responses are collected before elections are polled, and reported after them: a broker may have responded on
        the basis of an election that the controller had made in the meantime.
        """
        answers = {
            (protocol, slot): _answer(one)
            for protocol, slots in self._open.items()
            for slot, one in slots.items()
            if one.pending.ready()
        }
        for decision in self._observer.poll():
            self._elected(decision.after_ns // MS)
        for (protocol, slot), reply in answers.items():
            self._answered(protocol, slot, reply)
        return answers

    def all_answered(self) -> bool:
        """Whether no consumer has an outstanding request."""
        self.observe()
        return not any(self._open.values())

    def situation(
        self, running: frozenset[int], cut: frozenset[tuple[int, int]], beliefs: Mapping[str, int]
    ) -> GroupSituation:
        """The state of the groups from which a walk draws its next action."""
        partition = self._observer.current.partition
        leader, isr = partition.leader, partition.isr
        calm = leader in running and isr <= running and not any((member, leader) in cut for member in isr)
        consumers = tuple(self._consumers.values())
        return GroupSituation(calm=calm, coordinator=leader, consumers=consumers, beliefs=beliefs)

    def _elected(self, after_ms: int) -> None:
        partition = self._observer.current.partition
        term = partition.leader, partition.leader_epoch
        if term != self._term:
            self._term = term
            leader = NO_LEADER if partition.leader == NO_LEADER else self._number(partition.leader)
            epoch = partition.leader_epoch
            self.tell(CoordinatorElected(leader=leader, epoch=epoch, after_ms=after_ms, before_ms=_now_ms()))

    def _answered(self, protocol: GroupProtocol, slot: int, reply: Reply | None) -> None:
        one = self._open[protocol].pop(slot)
        one.connection.close()
        one.consumer.open.discard(slot)
        if reply is None:
            self.tell(GroupUnanswered(group=protocol, slot=slot))
        else:
            one.consumer.learn(one.request, reply)
            self.tell(GroupAnswered(group=protocol, slot=slot, reply=Named.of(reply), at_ms=_now_ms()))


def times_of(settings: Mapping[str, str]) -> Times:
    """The group timeouts of a cluster with these configs."""
    return Times(
        session_ms=SESSION_MS,
        rebalance_ms=REBALANCE_MS,
        initial_ms=int(settings["group.initial.rebalance.delay.ms"]),
        consumer_session_ms=int(settings["group.consumer.session.timeout.ms"]),
        write_ms=OFFSETS_COMMIT_TIMEOUT_MS,
    )


SESSION_MS = 6_000
REBALANCE_MS = 5_000
"""Session and rebalance timeouts that the members of a walk request."""
OFFSETS_COMMIT_TIMEOUT_MS = 5_000
"""Kafka's default of offsets.commit.timeout.ms."""


def name_in(topic: str, protocol: GroupProtocol, partitions: int) -> str:
    """A group id that hashes to `PARTITION` of __consumer_offsets."""
    names = (f"{topic}-{protocol}-{number}" for number in range(100 * partitions))
    return next(name for name in names if partition_for(name, partitions) == PARTITION)


def partition_for(group: str, partitions: int) -> int:
    """The partition of __consumer_offsets for a group id: Utils.abs(groupId.hashCode) % partitions."""
    hashed = 0
    for letter in group:
        hashed = (31 * hashed + ord(letter)) & 0xFFFFFFFF
    return abs(hashed - (hashed >> 31 << 32)) % partitions


def _create_offsets_topic(cluster: Cluster) -> int:
    """Have __consumer_offsets created by a FindCoordinator request. Returns its partition count."""

    def led() -> int | None:
        try:
            ask_coordinator(cluster.direct(cluster.broker_ids[0]), KeyType.GROUP, OFFSETS, access=cluster.access())
        except (Refused, OSError):
            return None
        views = cluster.ask_all((OFFSETS,)).values()
        return min((len(view.partitions) for view in views), default=0) or None

    partitions = wait_until(led, timeout_s=60.0, what=f"{OFFSETS} to be there", interval_s=0.2)
    assert partitions is not None
    cluster.wait_in_sync(OFFSETS, partitions)
    return partitions


def _may_wait(request: Request) -> bool:
    return type(request).__name__ in ("JoinGroup", "SyncGroup")


def _answer(one: _Open) -> Reply | None:
    try:
        return read(one.pending.answer(0))
    except OSError:
        return None


def _now_ms() -> int:
    return time.monotonic_ns() // MS
