"""What brokers tell clients of the cluster: which of the controller's decisions each of them goes by.

Decisions are seen, so nothing has to be believed here but how far each broker is with them. It only ever gets further,
and may be anywhere between what it has told already and what was decided last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.metadata import TOLD_LATER, Described, PartitionMetadata, describe
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import BrokerId


class _Least(NamedTuple):
    """How far a broker is at least, by the number of the decision."""

    partition: int = 0
    brokers: int = 0
    """ZooKeeper's controller tells who is there by itself, and as it last looked: before or after other things."""
    told: bool = True
    """Whether it has been told anything since it started."""


class Telling:
    """The decisions in their order, and how far each broker is at least."""

    def __init__(self, parameters: Parameters, created: Controller) -> None:
        """All brokers know of the partition when it has been created."""
        self._parameters = parameters
        self._kraft = parameters.mode is Mode.KRAFT
        self._decided = [created]
        self._least = {broker: _Least() for broker, _ in created.brokers}

    def decided(self, controller: Controller) -> None:
        """The controller knows this. A KRaft broker that registers serves nobody before it knows that much itself.

        BrokerServer.startup waits for its first publication, which comes after its own registration.
        """
        before = dict(self._decided[-1].brokers)
        self._decided.append(controller)
        last = len(self._decided) - 1
        for broker, registration in controller.brokers:
            known = before.get(broker)
            if self._kraft and (known is None or known.epoch != registration.epoch):
                self._least[broker] = _Least(last, last)

    def started(self, broker: BrokerId) -> None:
        """In ZooKeeper mode a broker that has just started knows of nothing until the controller tells it."""
        if not self._kraft:
            last = len(self._decided) - 1
            self._least[broker] = _Least(last, last, told=False)

    def leads_or_follows(self, broker: BrokerId, leader_epoch: int) -> None:
        """A replica is in this epoch. In KRaft its broker has told clients so before (BrokerMetadataPublisher)."""
        least = self._least[broker]
        if self._kraft:
            epochs = (decided.partition.leader_epoch for decided in self._decided)
            first = next((number for number, epoch in enumerate(epochs) if epoch >= leader_epoch), 0)
            self._least[broker] = _Least(max(first, least.partition), max(first, least.brokers))

    def tells(self, broker: BrokerId, seen: Described) -> bool:
        """A broker was heard to tell this; returns whether it may."""
        least = self._least[broker]
        if not least.told and seen.partition.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return True
        found = next(self._agreeing(broker, seen), None)
        if found is not None:
            self._least[broker] = found
        return found is not None

    def _agreeing(self, broker: BrokerId, seen: Described) -> Iterator[_Least]:
        """How far it may be that tells this, the least first.

        It looks at who is there after it has looked at the partition (KafkaApis.handleTopicMetadataRequest).
        """
        for partition, brokers in self._looks(broker):
            if self._described(partition, brokers) == self._compared(seen.partition):
                for there in range(brokers, len(self._decided)):
                    if self._decided[there].active_brokers() == seen.brokers:
                        yield _Least(there if self._kraft else partition, there)

    def permitted(self, broker: BrokerId) -> set[Described]:
        """What it might tell, where it looks at everything at once."""
        return {
            Described(self._described(partition, brokers), self._decided[brokers].active_brokers())
            for partition, brokers in self._looks(broker)
        }

    def _looks(self, broker: BrokerId) -> Iterator[tuple[int, int]]:
        """By which decision on the partition and by which on brokers it may tell of the partition."""
        least, end = self._least[broker], len(self._decided)
        if not self._parameters.guards(TOLD_LATER):
            least = _Least(end - 1, end - 1)
        for partition in range(least.partition, end):
            for brokers in (partition,) if self._kraft else range(least.brokers, end):
                yield partition, brokers

    def _described(self, partition: int, brokers: int) -> PartitionMetadata:
        known = self._decided[partition].partition
        return self._compared(describe(self._parameters, known, dict(self._decided[brokers].brokers)))

    def _compared(self, told: PartitionMetadata) -> PartitionMetadata:
        """ZooKeeper's controller says with the partition who is offline, as it was then, shutting down or gone."""
        return told if self._kraft else told._replace(offline=frozenset())
