"""A consumer group of a fault's own: a topic, and members in processes."""

from __future__ import annotations

import msgspec
from confluent_kafka import Producer

from lockstep.clients.standalone import Join
from lockstep.clients.wire.coordinators import GroupProtocol, GroupView, KeyType, ask_coordinator, ask_group
from lockstep.clients.wire.features import ask_features
from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof
from lockstep.faults.support.administration import administer
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.topics import OwnTopic
from lockstep.wait import wait_until

PARTITIONS = 2
RECORDS_EACH = 50
REBALANCED_S = 60.0
WRITTEN_S = 30.0
GROUP_VERSION = "group.version"


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which protocol the members speak; `consumer` (KIP-848) needs brokers that have agreed on it, as those of 4.x."""

    protocol: GroupProtocol = GroupProtocol.CLASSIC


class Group:
    """Two members, two partitions with some records."""

    def __init__(self, cluster: Cluster, fault: str, settings: GroupSettings) -> None:
        self.topic = OwnTopic(cluster, fault, partitions=PARTITIONS)
        self._cluster = cluster
        self._protocol = settings.protocol
        self._members: list[ClientProcess] = []

    @property
    def name(self) -> str:
        return self.topic.name

    def prepare(self) -> None:
        """The topic, and records to read; refused where no broker speaks the protocol."""
        if self._protocol is GroupProtocol.CONSUMER and not self._has_consumer_protocol():
            raise FaultError("group.protocol=consumer needs KRaft brokers with group.version 1: use Kafka 4.0 or later")
        self.topic.prepare()
        producer = Producer(self._cluster.access().librdkafka())
        for number in range(PARTITIONS * RECORDS_EACH):
            producer.produce(self.topic.name, str(number).encode(), partition=number % PARTITIONS)
        if producer.flush(WRITTEN_S):
            raise FaultError(f"the records that {self.name} was to read could not be written")

    def member(self, name: str, *, hold: str | None = None) -> ClientProcess:
        """Start one more member."""
        task = Join(topic=self.topic.name, group=self.name, protocol=self._protocol.value, hold=hold)
        client = ClientProcess(self._cluster, f"{self.name}-{name}", task)
        self._members.append(client)
        return client

    def wait_owned_by(self, *members: ClientProcess) -> GroupView:
        """Wait until exactly these are members, each with partitions, and have all of them between them."""
        names = {member.name for member in members}

        def settled() -> GroupView | None:
            view = self._view()
            owned = [index for partitions in view.members.values() for index in partitions]
            complete = view.members.keys() == names and all(view.members.values())
            return view if complete and sorted(owned) == list(range(PARTITIONS)) and view.state == "Stable" else None

        view = wait_until(
            settled,
            timeout_s=REBALANCED_S,
            what=f"{' and '.join(sorted(names))} to share group {self.name}",
            interval_s=0.2,
        )
        assert view is not None
        return view

    def reunited(self, away: ClientProcess, other: ClientProcess) -> Proof:
        """Wake the paused member, wait until both members share the partitions again, and end the group in any case."""
        try:
            away.resume()
            back = shares(self.wait_owned_by(away, other))
        finally:
            ended = self.end()
        return back | ended

    def end(self) -> Proof:
        """End every member, and delete the topic; the empty group is forgotten with its offsets."""
        for member in self._members:
            member.kill()
        return {"ended": [member.identity for member in self._members]} | self.topic.done()

    def _view(self) -> GroupView:
        coordinator = administer(
            self._cluster,
            lambda address, access: ask_coordinator(address, KeyType.GROUP, self.name, access=access),
            f"group {self.name} to have a coordinator",
        )
        return administer(
            self._cluster,
            lambda _, access: ask_group(self._cluster.direct(coordinator), self.name, self._protocol, access=access),
            f"the coordinator of group {self.name} to answer",
        )

    def _has_consumer_protocol(self) -> bool:
        known = [
            ask_features(self._cluster.direct(id_), self._cluster.access()).finalized.get(GROUP_VERSION, 0)
            for id_ in self._cluster.ask_all()
        ]
        return min(known, default=0) >= 1


def shares(view: GroupView) -> Proof:
    """A group as fields of a proof."""
    owners = {name: list(partitions) for name, partitions in sorted(view.members.items())}
    return {"owners": owners} | ({} if view.epoch is None else {"group_epoch": view.epoch})
