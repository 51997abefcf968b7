"""Metadata responses: which of the controller's decisions a broker's metadata cache may reflect.

Every decision is observed, so the only unknown is how far each broker's cache has advanced. It never goes back. It may
be anywhere between the decision that the broker's last response proved and the latest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.metadata import TOLD_LATER, PartitionMetadata, PartitionMetadataResponse, describe
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.registration import BrokerId


class _Least(NamedTuple):
    """Lower bound of a broker's metadata cache, as indexes into the list of decisions."""

    partition: int = 0
    brokers: int = 0
    """ZooKeeper mode: the live-broker list is propagated separately from partition state, and may be older or newer."""
    told: bool = True
    """False from the start of a ZooKeeper-mode broker to its first response that shows the partition."""


class MetadataCaches:
    """The controller's decisions in order, and the lower bound of each broker's metadata cache."""

    def __init__(self, parameters: Parameters, created: Controller) -> None:
        """Begins after the creation of the partition, when every broker's cache has it."""
        self._parameters = parameters
        self._kraft = parameters.mode is Mode.KRAFT
        self._decided = [created]
        self._least = {broker: _Least() for broker, _ in created.brokers}

    def decided(self, controller: Controller) -> None:
        """The controller has made a decision. A KRaft broker that registers with it has it in its cache from the start.

        BrokerServer.startup waits for the first metadata publication, which comes after the broker's own registration;
        only then does the broker serve clients.
        """
        before = dict(self._decided[-1].brokers)
        self._decided.append(controller)
        last = len(self._decided) - 1
        for broker, registration in controller.brokers:
            known = before.get(broker)
            if self._kraft and (known is None or known.epoch != registration.epoch):
                self._least[broker] = _Least(last, last)

    def started(self, broker: BrokerId) -> None:
        """A broker was started. In ZooKeeper mode its cache is empty until the controller's first UpdateMetadata."""
        if not self._kraft:
            last = len(self._decided) - 1
            self._least[broker] = _Least(last, last, told=False)

    def leads_or_follows(self, broker: BrokerId, leader_epoch: int) -> None:
        """A broker's replica is known to have this leader epoch.

        In KRaft its metadata cache is updated before its replicas (BrokerMetadataPublisher.onMetadataUpdate), so it has
        advanced at least as far.
        """
        least = self._least[broker]
        if self._kraft:
            epochs = (decided.partition.leader_epoch for decided in self._decided)
            first = next((number for number, epoch in enumerate(epochs) if epoch >= leader_epoch), 0)
            self._least[broker] = _Least(max(first, least.partition), max(first, least.brokers))

    def tells(self, broker: BrokerId, seen: PartitionMetadataResponse) -> bool:
        """A Metadata response was received from a broker; returns whether its cache may hold that, and advances it."""
        least = self._least[broker]
        if not least.told and seen.partition.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
            return True
        found = next(self._agreeing(broker, seen), None)
        if found is not None:
            self._least[broker] = found
        return found is not None

    def _agreeing(self, broker: BrokerId, seen: PartitionMetadataResponse) -> Iterator[_Least]:
        """Positions of the broker's cache that yield this response, the lowest first.

        A broker reads the live brokers after the partition, and the cache may advance between the two
        (KafkaApis.handleTopicMetadataRequest).
        """
        for partition, brokers in self._looks(broker):
            if self._described(partition, brokers) == self._compared(seen.partition):
                for there in range(brokers, len(self._decided)):
                    if self._decided[there].active_brokers() == seen.brokers:
                        yield _Least(there if self._kraft else partition, there)

    def permitted(self, broker: BrokerId) -> set[PartitionMetadataResponse]:
        """For the report of a divergence: responses that the broker may give, both parts read at one moment."""
        return {
            PartitionMetadataResponse(self._described(partition, brokers), self._decided[brokers].active_brokers())
            for partition, brokers in self._looks(broker)
        }

    def _looks(self, broker: BrokerId) -> Iterator[tuple[int, int]]:
        """Pairs of decisions that may be in the broker's cache: one for the partition, one for the brokers.

        In KRaft both come from one metadata image.
        """
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
        """In ZooKeeper mode offline replicas are not compared.

        The controller puts them into UpdateMetadata together with the partition, and they may be out of date.
        """
        return told if self._kraft else told._replace(offline=frozenset())
