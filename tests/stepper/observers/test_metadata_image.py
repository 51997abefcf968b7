"""What the records of a metadata log make of a partition and of brokers."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from kio.static.primitive import i8, i16, i32, i64

from lockstep.stepper.observers.metadata_image import BROKER, TOPIC, Image, words
from lockstep.stepper.observers.metadata_records import (
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
from lockstep_model.registration import NO_LEADER, BrokerRegistration, Registration

ORDERS, ORDERS_ANEW, OTHER = (uuid.UUID(int=number) for number in (1, 2, 3))
NOTHING = Registration(replicas=(), isr=frozenset())


def registered(broker: int, epoch: int, process: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=i32(broker), incarnation_id=uuid.UUID(int=process), broker_epoch=i64(epoch), end_points=(),
        features=(), rack=None, fenced=True,
    )  # fmt: skip


def marked(broker: int, *, fenced: int = 0, leaving: int = 0) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=i32(broker), broker_epoch=i64(0), fenced=i8(fenced), in_controlled_shutdown=i8(leaving)
    )


def partition(*replicas: int, topic: uuid.UUID = ORDERS, number: int = 0, **other: Any) -> PartitionRecord:
    members = tuple(map(i32, replicas))
    return PartitionRecord(
        partition_id=i32(number), topic_id=topic, replicas=members, isr=members, removing_replicas=(),
        adding_replicas=(), leader=members[0], leader_epoch=i32(0), partition_epoch=i32(0), **other,
    )  # fmt: skip


def change(topic: uuid.UUID = ORDERS, number: int = 0, **other: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=i32(number), topic_id=topic, **other)


def after(*records: MetadataRecord) -> Image:
    image = Image("orders", 0)
    for record in records:
        image = image.after(record)
    return image


def broker_after(*records: MetadataRecord) -> BrokerRegistration | None:
    return after(*records).controller.broker(1)


CREATED = (TopicRecord(name="orders", topic_id=ORDERS), partition(1, 2, 3))


def test_a_partition_is_created() -> None:
    assert after(*CREATED).controller.partition == Registration(replicas=(1, 2, 3), isr=frozenset({1, 2, 3}), leader=1)


def test_a_change_has_a_partition_epoch_and_a_leader_a_leader_epoch() -> None:
    shrunk = after(*CREATED, change(isr=(1, 2))).controller.partition
    assert (set(shrunk.isr), shrunk.leader, shrunk.leader_epoch, shrunk.partition_epoch) == ({1, 2}, 1, 0, 1)
    elected = after(*CREATED, change(isr=(2, 3), leader=2)).controller.partition
    assert (set(elected.isr), elected.leader, elected.leader_epoch, elected.partition_epoch) == ({2, 3}, 2, 1, 1)
    same_leader = after(*CREATED, change(leader=1)).controller.partition
    assert (same_leader.leader, same_leader.leader_epoch) == (1, 1)
    nobody = after(*CREATED, change(leader=NO_LEADER)).controller.partition
    assert (nobody.leader, nobody.leader_epoch) == (NO_LEADER, 1)


def test_eligible_leaders_come_and_go() -> None:
    eligible = change(isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3, 2))
    there = after(*CREATED, eligible).controller.partition
    assert (set(there.elr), there.last_known_elr) == ({2}, (3, 2))
    assert after(*CREATED, eligible, change()).controller.partition.elr == {2}
    for name in ("orders", ""):
        cleared = after(*CREATED, eligible, ClearElrRecord(topic_name=name)).controller.partition
        assert (cleared.elr, cleared.last_known_elr, cleared.partition_epoch) == (frozenset(), (), 2)
    assert after(*CREATED, eligible, ClearElrRecord(topic_name="other")).controller.partition == there
    assert after(*CREATED, ClearElrRecord(topic_name="")).controller.partition.partition_epoch == 0


def test_an_unclean_leader_recovers() -> None:
    unclean = change(leader=3, leader_recovery_state=i8(1))
    assert after(*CREATED, unclean).controller.partition.recovering
    assert after(*CREATED, unclean, change(isr=(3, 2))).controller.partition.recovering
    assert not after(*CREATED, unclean, change(leader_recovery_state=i8(0))).controller.partition.recovering


def test_a_partition_moves() -> None:
    moving = change(replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,))
    moved = change(replicas=(2, 3, 4), adding_replicas=(), removing_replicas=())
    there = after(*CREATED, moving).controller.partition
    assert (there.replicas, set(there.adding), set(there.removing)) == ((1, 2, 3, 4), {4}, {1})
    gone = after(*CREATED, moving, moved).controller.partition
    assert (gone.replicas, gone.adding, gone.removing) == ((2, 3, 4), frozenset(), frozenset())


@pytest.mark.parametrize(
    "record",
    [
        TopicRecord(name="other", topic_id=OTHER), partition(5, topic=OTHER), partition(5, number=1), change(OTHER),
        change(number=1), RemoveTopicRecord(topic_id=OTHER),
    ],
)  # fmt: skip
def test_what_others_do_changes_nothing(record: MetadataRecord) -> None:
    assert after(*CREATED, record) == after(*CREATED)


def test_a_topic_of_the_same_name_is_another_topic() -> None:
    removed = (*CREATED, change(leader=2), RemoveTopicRecord(topic_id=ORDERS))
    assert after(*removed).controller.partition == NOTHING
    anew = (*removed, TopicRecord(name="orders", topic_id=ORDERS_ANEW), partition(3, topic=ORDERS_ANEW))
    assert after(*anew).controller.partition.replicas == (3,)
    assert after(*anew, change(ORDERS, leader=2)).controller.partition.leader == 3


def test_a_broker_comes_and_is_heard_and_falls_silent_and_comes_again() -> None:
    came = registered(1, 5, process=11)
    assert broker_after(came) == BrokerRegistration(epoch=5, fenced=True, incarnation=1)
    heard = (came, marked(1, fenced=-1))
    assert broker_after(*heard) == BrokerRegistration(epoch=5, incarnation=1)
    assert broker_after(*heard, marked(1, fenced=1)) == BrokerRegistration(epoch=5, fenced=True, incarnation=1)
    again = registered(1, 9, process=12)
    assert broker_after(*heard, again) == BrokerRegistration(epoch=9, fenced=True, incarnation=2)
    assert broker_after(*heard, registered(1, 9, process=11)) == BrokerRegistration(epoch=9, fenced=True, incarnation=1)


def test_a_broker_that_leaves_is_marked_until_it_registers_again() -> None:
    leaving = (registered(1, 5, process=11), marked(1, fenced=-1), marked(1, leaving=1))
    assert broker_after(*leaving) == BrokerRegistration(epoch=5, shutting_down=True, incarnation=1)
    gone = broker_after(*leaving, marked(1, fenced=1))
    assert gone == BrokerRegistration(epoch=5, fenced=True, shutting_down=True, incarnation=1)
    again = broker_after(*leaving, registered(1, 8, process=12))
    assert again == BrokerRegistration(epoch=8, fenced=True, incarnation=2)


def test_older_metadata_versions_fence_by_records_of_their_own() -> None:
    heard = (registered(1, 5, process=11), UnfenceBrokerRecord(id=i32(1), epoch=i64(5)))
    assert broker_after(*heard) == BrokerRegistration(epoch=5, incarnation=1)
    fenced = broker_after(*heard, FenceBrokerRecord(id=i32(1), epoch=i64(5)))
    assert fenced == BrokerRegistration(epoch=5, fenced=True, incarnation=1)


def test_a_broker_is_forgotten() -> None:
    forgotten = UnregisterBrokerRecord(broker_id=i32(1), broker_epoch=i64(5))
    assert broker_after(registered(1, 5, process=11), forgotten) is None


def test_settings_and_features_concern_a_partition_without_changing_it() -> None:
    image = after(*CREATED)

    def setting(kind: int, name: str) -> ConfigRecord:
        return ConfigRecord(resource_type=i8(kind), resource_name=name, name="min.insync.replicas", value="2")

    assert image.concerns(setting(TOPIC, "orders"))
    assert image.concerns(setting(BROKER, ""))
    assert not image.concerns(setting(TOPIC, "other"))
    assert image.concerns(FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=i16(1)))
    assert not image.concerns(change(OTHER))


def test_words_say_what_is_not_so_by_default() -> None:
    assert words(change(isr=(1, 2), leader=i32(1))) == "PartitionChangeRecord isr=(1, 2) leader=1"
    assert words(marked(2, fenced=1)) == "BrokerRegistrationChangeRecord broker_id=2 broker_epoch=0 fenced=1"
