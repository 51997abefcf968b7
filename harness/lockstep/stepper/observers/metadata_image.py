"""The KRaft controller's state of one partition and of all brokers, built from metadata records one at a time."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple
from uuid import UUID

from kio.static.primitive import i32

from lockstep.stepper.observers.metadata_records import (
    NO_LEADER_CHANGE,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerRegistration, Brokers, Registration

UNCHANGED = -1
"""leaderRecoveryState of a PartitionChangeRecord that does not change it."""
TOPIC, BROKER = 2, 4
"""Resource types of a ConfigRecord (ConfigResource.Type)."""
WORDLESS = frozenset(
    {"topic_id", "partition_id", "incarnation_id", "directories", "log_dirs", "end_points", "features", "rack"}
)
"""Record fields that are left out of a decision's description."""


class Image(NamedTuple):
    """The metadata image of one partition and all brokers, up to some record of the log."""

    topic: str
    partition: int
    controller: Controller = Controller()
    topic_id: UUID | None = None
    """None while the topic does not exist. A deleted topic of the same name had another id."""
    processes: tuple[UUID | None, ...] = ()
    """Incarnation ids of all broker processes, in order of registration. The model numbers them by this order."""

    def after(self, record: MetadataRecord) -> Image:
        """The image after the next record."""
        match record:
            case RegisterBrokerRecord():
                return self._registered(record)
            case UnregisterBrokerRecord():
                return self._unregistered(record.broker_id)
            case FenceBrokerRecord():
                return self._knowing(self.controller.marked(record.id, fenced=True))
            case UnfenceBrokerRecord():
                return self._knowing(self.controller.marked(record.id, fenced=False))
            case BrokerRegistrationChangeRecord():
                return self._registration_changed(record)
            case TopicRecord(name=self.topic):
                return self._replace(topic_id=record.topic_id)
            case RemoveTopicRecord(topic_id=self.topic_id):
                return self._having(Controller().partition)._replace(topic_id=None)
            case PartitionRecord(topic_id=self.topic_id, partition_id=self.partition):
                return self._having(_created(record))
            case PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition):
                return self._having(_changed(self.controller.partition, record))
            case ClearElrRecord(topic_name=self.topic | ""):
                return self._having(_without_elr(self.controller.partition))
        return self

    def concerns(self, record: MetadataRecord) -> bool:
        """Whether a record affects later decisions though it leaves this image as it is: features and configs do."""
        match record:
            case FeatureLevelRecord():
                return True
            case ConfigRecord():
                resource = (record.resource_type, record.resource_name)
                return record.resource_type == BROKER or resource == (TOPIC, self.topic)
        return False

    def _knowing(self, controller: Controller) -> Image:
        return self._replace(controller=controller)

    def _having(self, partition: Registration) -> Image:
        return self._knowing(self.controller.with_partition(partition))

    def _registered(self, record: RegisterBrokerRecord) -> Image:
        processes = self.processes
        if record.incarnation_id not in processes:
            processes = (*processes, record.incarnation_id)
        registration = BrokerRegistration(
            epoch=int(record.broker_epoch),
            fenced=record.fenced,
            shutting_down=record.in_controlled_shutdown,
            incarnation=1 + processes.index(record.incarnation_id),
        )
        controller = self.controller.with_broker(int(record.broker_id), registration)
        return self._replace(controller=controller, processes=processes)

    def _unregistered(self, broker: int) -> Image:
        others = tuple(known for known in self.controller.brokers if known[0] != broker)
        return self._knowing(self.controller._replace(brokers=others))

    def _registration_changed(self, record: BrokerRegistrationChangeRecord) -> Image:
        """Apply the change fields for fencing and controlled shutdown: 1 sets, -1 clears, 0 leaves unchanged."""
        marks = {"fenced": record.fenced, "shutting_down": record.in_controlled_shutdown}
        put = {mark: change > 0 for mark, change in marks.items() if change}
        return self._knowing(self.controller.marked(record.broker_id, **put))


def _created(record: PartitionRecord) -> Registration:
    return Registration(
        replicas=record.replicas,
        isr=frozenset(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        elr=frozenset(record.eligible_leader_replicas or ()),
        last_known_elr=record.last_known_elr or (),
        recovering=bool(record.leader_recovery_state),
        adding=frozenset(record.adding_replicas),
        removing=frozenset(record.removing_replicas),
    )


def _changed(partition: Registration, record: PartitionChangeRecord) -> Registration:
    """Apply a PartitionChangeRecord (PartitionRegistration.merge).

    Every change raises the partition epoch by one; a change that names a leader, even the same one, the leader epoch.
    """
    elects = record.leader != NO_LEADER_CHANGE
    recovers = record.leader_recovery_state != UNCHANGED
    return Registration(
        replicas=partition.replicas if record.replicas is None else record.replicas,
        isr=_members(record.isr, partition.isr),
        leader=record.leader if elects else partition.leader,
        leader_epoch=partition.leader_epoch + elects,
        partition_epoch=partition.partition_epoch + 1,
        elr=_members(record.eligible_leader_replicas, partition.elr),
        last_known_elr=partition.last_known_elr if record.last_known_elr is None else record.last_known_elr,
        recovering=bool(record.leader_recovery_state) if recovers else partition.recovering,
        adding=_members(record.adding_replicas, partition.adding),
        removing=_members(record.removing_replicas, partition.removing),
    )


def _members(named: tuple[i32, ...] | None, before: Brokers) -> Brokers:
    return before if named is None else frozenset(named)


def _without_elr(partition: Registration) -> Registration:
    """Clear ELR and last known ELR. The partition epoch rises only if either was not empty.

    ReplicationControlManager.removeTopicElrs
    """
    if not partition.elr and not partition.last_known_elr:
        return partition
    return partition._replace(elr=frozenset(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)


def words(record: MetadataRecord) -> str:
    """A record in words: its type, and the fields that differ from their defaults."""
    told = [
        f"{part.name}={getattr(record, part.name)}"
        for part in fields(record)
        if part.name not in WORDLESS and getattr(record, part.name) != part.default
    ]
    return " ".join([type(record).__name__, *told])
