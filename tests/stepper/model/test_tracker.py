"""The model follows a pretended cluster that is right, and notices one that is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext

import pytest

from lockstep.stepper.controls.wrong_models import judge, wrong_model
from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import (
    Began,
    BrokerEnded,
    Configured,
    Decided,
    Events,
    Exchanged,
    Found,
    Named,
    RequestSent,
    ResponseArrived,
    Surrounded,
)
from lockstep.stepper.model.state import Surroundings
from lockstep.stepper.model.tracker import BeliefTracker
from lockstep_model.controller import (
    Controller,
    begin_alter_partition,
    begin_failover,
    begin_failure,
    begin_reassignment,
    create,
    fence,
    min_isr_changed,
)
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.offsets import ListOffsets, Timestamp
from lockstep_model.partition.produce import Acks, Produce, Produced
from lockstep_model.registration import AlterPartition, BrokerRegistration
from tests.stepper.pretended import Pretended

KRAFT_4 = parameters_for("4.3.1", "kraft", min_isr=2)
KRAFT_3 = parameters_for("3.9.2", "kraft", min_isr=2)
ZK = parameters_for("3.9.2", "zk", min_isr=2)


def walk(parameters: Parameters, believed: Parameters, seed: int, steps: int = 40) -> int:
    """Ask for this and that while a broker dies in the middle; returns how large the belief was at most."""
    cluster = Pretended(parameters, believed, seed=seed)
    largest = 0
    for step in range(steps):
        if step == steps // 2:
            victim = cluster.metadata.controller.partition.leader
            cluster.kill(victim)
            cluster.session_ends(victim)
        running = [b for b in cluster.places.brokers if cluster.state[cluster.places.broker(b)].running]
        broker = cluster.draw.choice(running)
        match cluster.draw.randrange(4):
            case 0:
                cluster.ask(broker, Produce(cluster.draw.choice(list(Acks)), (step,)))
            case 1:
                cluster.ask(broker, Fetch(0, cluster.draw.choice(list(Isolation))))
            case _:
                cluster.ask(broker, ListOffsets(Timestamp.LATEST, Isolation.LOG_END, of_leader_only=False))
        cluster.happen()
        largest = max(largest, len(cluster.tracker.belief))
    return largest


@pytest.mark.parametrize("parameters", [KRAFT_4, KRAFT_3, ZK], ids=["kraft-4", "kraft-3.9", "zk-3.9"])
@pytest.mark.parametrize("seed", range(8))
def test_a_right_cluster_is_followed(parameters: Parameters, seed: int) -> None:
    assert walk(parameters, parameters, seed) > 0


def created(parameters: Parameters = ZK) -> Controller:
    registered = tuple((broker, BrokerRegistration(epoch=10 + broker)) for broker in range(3))
    return create(parameters, Controller(brokers=registered), (0, 1, 2))[0]


def written(controller: Controller) -> Iterator[Controller]:
    """What the znodes show after each write of what a controller has begun."""
    while controller.writing:
        controller = controller.written()
        yield shown(controller)


def shown(controller: Controller) -> Controller:
    return controller._replace(partition=controller.shown or controller.partition, shown=None, writing=())


def granted(controller: Controller, *isr: int) -> Controller:
    """The leader has asked for this ISR."""
    partition = controller.partition
    epochs = partition.leader_epoch, partition.partition_epoch
    request = AlterPartition(partition.leader, 10 + partition.leader, *epochs, frozenset(isr))
    return begin_alter_partition(ZK, controller, request)[0]


def reassignments() -> list[tuple[Controller, tuple[int, ...] | None]]:
    """A partition moves to two brokers and back to three, each with what was asked for then."""
    fewer, _ = begin_reassignment(ZK, created(), (1, 2))
    more, _ = begin_reassignment(ZK, fewer.finished(), (2, 0, 1))
    joined = granted(more.finished(), 0, 1, 2)
    return [
        *((seen, (1, 2)) for seen in written(fewer)),
        *((seen, (2, 0, 1)) for seen in written(more)),
        (shown(joined), None),
        *((seen, None) for seen in written(joined)),
    ]


def follow(seen: Iterable[tuple[Controller, tuple[int, ...] | None]]) -> None:
    tracker = BeliefTracker(ZK, Began(controller=created()))
    for controller, assignment in seen:
        tracker.tell(Decided(controller=controller, occasions=Occasions(assignment=assignment)))


def test_every_write_of_a_reassignment_is_explained() -> None:
    follow(reassignments())


@pytest.mark.parametrize("missing", range(8))
def test_a_write_that_is_missing_is_noticed_with_the_next(missing: int) -> None:
    seen = reassignments()
    assert len(seen) == 9
    with pytest.raises(Divergence):
        follow(seen[:missing] + seen[missing + 1 : missing + 2])


def test_a_controller_that_takes_over_ends_a_reassignment_that_another_began() -> None:
    begun, _ = begin_reassignment(ZK, created(), (1, 2))
    halfway = begun.written().written()
    moved = begin_failover(ZK, halfway)
    before = [(seen, (1, 2)) for seen in list(written(begun))[:2]]
    follow([*before, (shown(moved), None), *((seen, None) for seen in written(moved))])
    unmoved = [(seen._replace(epoch=1), None) for seen in list(written(begun))[2:]]
    with pytest.raises(Divergence):
        follow([*before, (shown(moved), None), *unmoved])


@pytest.mark.parametrize("parameters", [KRAFT_3, ZK], ids=["kraft-3.9", "zk-3.9"])
def test_a_model_whose_last_member_leaves_the_isr_does_not_follow(parameters: Parameters) -> None:
    def all_die(believed: Parameters) -> None:
        cluster = Pretended(parameters, believed, seed=1)
        for broker in cluster.places.brokers:
            cluster.kill(broker)
            cluster.session_ends(broker)

    all_die(parameters)
    with pytest.raises(Divergence):
        all_die(wrong_model("last-member-leaves").parameters(parameters))


@pytest.mark.parametrize("cut", [True, False], ids=["power", "process"])
def test_only_a_machine_that_loses_power_loses_records(cut: bool) -> None:
    tracker = Pretended(KRAFT_4, KRAFT_4, seed=1).tracker
    written = Exchanged(broker=0, request=Named.of(Produce(Acks.LEADER, (7,))), reply=Named.of(Produced(Error.NONE, 0)))
    tracker.tell(written)
    tracker.tell(BrokerEnded(broker=0, clean=False, cut=cut))
    with nullcontext() if cut else pytest.raises(Divergence):
        tracker.tell(Found(broker=0, start=0, records=(), high_watermark=0))


def read_after_a_write(high_watermark: int) -> None:
    """A record is written, and whoever reads it is told this high watermark."""
    cluster = Pretended(KRAFT_4, KRAFT_4, seed=1)
    cluster.ask(0, Produce(Acks.LEADER, (7,)))
    told = FetchResponse(Error.NONE, ((0, 7),), high_watermark, high_watermark, log_start=0)
    cluster.tracker.tell(Exchanged(broker=0, request=Named.of(Fetch(0)), reply=Named.of(told)))


@pytest.mark.parametrize("high_watermark", [0, 1])
def test_a_fetch_tells_offsets_from_before_it_read(high_watermark: int) -> None:
    read_after_a_write(high_watermark)


def test_it_does_not_tell_offsets_that_never_were() -> None:
    with pytest.raises(Divergence):
        read_after_a_write(2)


NOT_ENOUGH = Produced(Error.NOT_ENOUGH_REPLICAS)


def alone(*values: Configured) -> list[Events]:
    """A leader without its followers' brokers, of which the controller knows; then settings change."""
    gone = fence(KRAFT_4, fence(KRAFT_4, created(KRAFT_4), 1), 2)
    silent = Occasions(silent=frozenset({1, 2}))
    return [
        Began(controller=created(KRAFT_4)),
        BrokerEnded(broker=1, clean=False),
        BrokerEnded(broker=2, clean=False),
        Decided(controller=gone, occasions=silent),
        *values,
    ]


def writes(value: int, reply: Produced) -> list[Events]:
    """With acks=all, when the leader knows that it is alone, as it shows by its answer."""
    request = Named.of(Produce(Acks.ALL, (value,)))
    return [RequestSent(slot=0, broker=0, request=request), ResponseArrived(slot=0, reply=Named.of(reply))]


@pytest.mark.parametrize(
    ("going_by", "replies", "explained"),
    [
        ((2,), [NOT_ENOUGH], True),
        ((1,), [Produced(Error.NONE, 0)], True),
        ((2, 1), [NOT_ENOUGH, Produced(Error.NONE, 0)], True),
        ((2, 1), [Produced(Error.NONE, 0), NOT_ENOUGH], True),  # which of them is in force nobody says
        ((2,), [NOT_ENOUGH, Produced(Error.NONE, 0)], False),
        ((1,), [Produced(Error.NONE, 0), NOT_ENOUGH], False),
    ],
)
def test_while_a_setting_changes_either_value_explains_an_answer(
    going_by: tuple[int, ...], replies: list[Produced], explained: bool
) -> None:
    events = alone(Configured(min_isr=going_by))
    for value, reply in enumerate(replies):
        events += writes(value, reply)
    assert (judge(events, KRAFT_4).divergence is None) == explained


def test_what_was_appended_before_is_committed_by_the_new_value() -> None:
    read = Exchanged(
        broker=0,
        request=Named.of(Fetch(0, Isolation.READ_UNCOMMITTED)),
        reply=Named.of(FetchResponse(Error.NONE, ((0, 0), (0, 1)), 2, 2, 0)),
    )
    one = Exchanged(broker=0, request=Named.of(Produce(Acks.LEADER, (0,))), reply=Named.of(Produced(Error.NONE, 0)))
    committed = writes(1, Produced(Error.NONE, 1))
    assert judge([*alone(), one, Configured(min_isr=(1,)), *committed, read], KRAFT_4).divergence is None
    assert judge([*alone(), one, *committed, read], KRAFT_4).divergence is not None


@pytest.mark.parametrize("asked", [True, False])
def test_a_new_minimum_forgets_who_was_eligible_and_nothing_else_does(asked: bool) -> None:
    *events, decided = alone()
    assert isinstance(decided, Decided)
    assert decided.controller.partition.elr == {2}
    cleared = min_isr_changed(KRAFT_4, decided.controller)
    assert not cleared.partition.elr
    events += [decided, Decided(controller=cleared, occasions=Occasions(min_isr=asked))]
    assert (judge(events, KRAFT_4).divergence is None) == asked


@pytest.mark.parametrize("mute", [True, False], ids=["withheld", "at once"])
def test_what_a_leader_asked_for_while_a_follower_lagged_may_be_granted_when_it_has_caught_up(mute: bool) -> None:
    """Where its requests do not arrive for a while; otherwise they are granted before it has."""
    tracker = BeliefTracker(ZK, Began(controller=created()))
    others = frozenset((follower, 0) for follower in (1, 2))
    late = frozenset({(0, 1)})

    def exchange(broker: int, request: object, reply: object) -> None:
        tracker.tell(Exchanged(broker=broker, request=Named.of(request), reply=Named.of(reply)))

    mutes = frozenset({0}) if mute else frozenset()
    tracker.tell(Surrounded(surroundings=Surroundings(cut=others, mute=mutes)))
    exchange(0, Produce(Acks.LEADER, (7,)), Produced(Error.NONE, 0))
    tracker.tell(Surrounded(surroundings=Surroundings(late=late, mute=mutes)))
    exchange(0, Fetch(0), FetchResponse(Error.NONE, ((0, 7),), 1, 1, log_start=0))  # who is in the ISR has it
    with nullcontext() if mute else pytest.raises(Divergence):
        tracker.tell(Decided(controller=shown(granted(created(), 0, 2)), occasions=Occasions()))


def test_a_broker_that_registers_anew_answers_what_it_was_asked_before() -> None:
    """With ZooKeeper its session may end while its process goes on."""
    tracker = BeliefTracker(ZK, Began(controller=created()))
    around = Surroundings(cut=frozenset({(1, 0), (2, 0)}), deaf=frozenset({0}))
    tracker.tell(Surrounded(surroundings=around))
    tracker.tell(RequestSent(slot=0, broker=0, request=Named.of(Produce(Acks.ALL, (7,)))))
    told = FetchResponse(Error.NONE, ((0, 7),), 0, 0, log_start=0)  # it has appended the record, and waits for others
    tracker.tell(Exchanged(broker=0, request=Named.of(Fetch(0, Isolation.LOG_END)), reply=Named.of(told)))
    failed = begin_failure(ZK, created(), [0])
    silent = Occasions(silent=frozenset({0}))
    for seen in (created().marked(0, fenced=True), *written(failed)):
        tracker.tell(Decided(controller=seen, occasions=silent))
    again = shown(failed.finished()).with_broker(0, BrokerRegistration(epoch=20))
    tracker.tell(Decided(controller=again, occasions=Occasions()))
    tracker.tell(Surrounded(surroundings=around._replace(deaf=frozenset())))  # now it hears of the new leader
    tracker.tell(ResponseArrived(slot=0, reply=Named.of(Produced(Error.NOT_LEADER_OR_FOLLOWER))))
