"""The model follows pretended coordinators that are right, and notices what is not: an answer, an election, a time."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from lockstep.clients.wire.coordinators import GroupProtocol
from lockstep.stepper.controls.wrong_models import wrong_model
from lockstep.stepper.driver.actions import GroupStep
from lockstep.stepper.driver.groups.consumers import NAMES, Consumer
from lockstep.stepper.driver.groups.situation import GroupSituation
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import CoordinatorElected, GroupAnswered, GroupAsked, Named
from lockstep.stepper.model.groups.state import Plain, Reply
from lockstep.stepper.walk.group_generator import drawn
from lockstep_model.errors import Error
from lockstep_model.groups import mutants
from lockstep_model.groups.classic import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from lockstep_model.groups.consumer import ConsumerGroupHeartbeat, HeartbeatAnswer
from lockstep_model.groups.generations import JoinAnswer, SyncAnswer
from lockstep_model.groups.offsets import FetchedOffset, OffsetCommit, OffsetFetch
from lockstep_model.groups.parameters import GroupParameters, group_parameters_for
from lockstep_model.parameters import parameters_for
from tests.stepper.model.groups.pretended import GROUP, PretendedGroup

KRAFT_4 = parameters_for("4.3.1", "kraft")
OLD, NEW_41, NEW_43 = (group_parameters_for(version) for version in ("3.9.2", "4.1.2", "4.3.1"))


def joined(group: PretendedGroup) -> JoinAnswer:
    """A member of its own in the first generation."""
    told = group.ask(JoinGroup(""))
    assert isinstance(told, JoinAnswer)
    assert told.error is Error.MEMBER_ID_REQUIRED
    answer = group.ask(JoinGroup(told.member))
    assert isinstance(answer, JoinAnswer)
    return answer


def stable(group: PretendedGroup) -> JoinAnswer:
    member = joined(group)
    everything = ((member.member, frozenset({0, 1, 2})),)
    assert group.ask(SyncGroup(member.member, 1, everything)) == SyncAnswer(Error.NONE, frozenset({0, 1, 2}))
    return member


@pytest.mark.parametrize("parameters", [OLD, NEW_43], ids=["old", "new"])
def test_a_member_joins_syncs_commits_and_leaves(parameters: GroupParameters) -> None:
    group = PretendedGroup(parameters, parameters)
    member = stable(group).member
    assert group.ask(Heartbeat(member, 1)) == Plain(Error.NONE)
    assert group.ask(Heartbeat(member, 2)) == Plain(Error.ILLEGAL_GENERATION)
    assert group.ask(OffsetCommit(((0, 7),), member, 1)) == Plain(Error.NONE)
    assert group.ask(OffsetCommit(((0, 8),))) == Plain(Error.UNKNOWN_MEMBER_ID)
    assert group.ask(OffsetFetch(0)) == FetchedOffset(Error.NONE, 7)
    assert group.ask(LeaveGroup(((member, None),))) == Plain(Error.NONE)
    assert group.ask(OffsetCommit(((0, 8),))) == Plain(Error.NONE)
    assert group.ask(Heartbeat(member, 1), broker=2) == Plain(Error.NOT_COORDINATOR)


@pytest.mark.parametrize(
    ("guard", "request_of"),
    [
        (mutants.GENERATION_OF_HEARTBEAT, lambda member: Heartbeat(member, 2)),
        (mutants.MEMBER_OF_COMMIT, lambda _: OffsetCommit(((0, 7),), "stranger", 1)),
        (mutants.GENERATION_OF_COMMIT, lambda member: OffsetCommit(((0, 7),), member, 2)),
        (mutants.SIMPLE_WHEN_EMPTY, lambda _: OffsetCommit(((0, 7),))),
    ],
)
def test_a_model_without_a_guard_diverges(guard: str, request_of: object) -> None:
    assert callable(request_of)
    group = PretendedGroup(NEW_43, replace(NEW_43, dropped=frozenset({guard})))
    member = stable(group).member
    with pytest.raises(Divergence) as raised:
        group.ask(request_of(member))
    assert raised.value.permitted == ("done",)
    believed = {part.part: part.ways[0].words for part in raised.value.describer.belief(raised.value.before)}
    assert "Stable in generation 1" in believed["broker 0"]


def test_an_answer_that_is_not_the_models_is_a_divergence() -> None:
    group = PretendedGroup(NEW_43, NEW_43)
    group.groups.tell(GroupAsked(group=GROUP, slot=0, broker=0, request=Named.of(OffsetFetch(0)), at_ms=group.now_ms))
    wrong = GroupAnswered(group=GROUP, slot=0, reply=Named.of(FetchedOffset(Error.NONE, 5)), at_ms=group.now_ms)
    with pytest.raises(Divergence) as raised:
        group.groups.tell(wrong)
    assert raised.value.seen == "committed 5"
    assert "nothing committed" in raised.value.permitted


def test_a_session_ends_only_when_its_time_has_passed() -> None:
    group = PretendedGroup(NEW_43, NEW_43)
    member = stable(group).member

    def hears(reply: Reply) -> None:
        event = GroupAsked(group=GROUP, slot=0, broker=0, request=Named.of(Heartbeat(member, 1)), at_ms=group.now_ms)
        group.groups.tell(event)
        group.groups.tell(GroupAnswered(group=GROUP, slot=0, reply=Named.of(reply), at_ms=group.now_ms))

    group.wait(5_999)
    hears(Plain(Error.NONE))
    group.wait(6_000)
    hears(Plain(Error.UNKNOWN_MEMBER_ID))
    member = joined(group).member
    group.wait(4_999)
    with pytest.raises(Divergence):
        hears(Plain(Error.UNKNOWN_MEMBER_ID))


@pytest.mark.parametrize("parameters", [OLD, NEW_43], ids=["old", "new"])
def test_a_group_without_members_does_not_wait_for_who_was_told_an_id(parameters: GroupParameters) -> None:
    group = PretendedGroup(parameters, parameters)
    group.ask(JoinGroup(""))
    first = group.ask(JoinGroup("", "place"))
    assert isinstance(first, JoinAnswer)
    assert group.ask(LeaveGroup(((first.member, "place"),))) == Plain(Error.NONE)
    second = group.ask(JoinGroup("", "place"))
    assert isinstance(second, JoinAnswer)
    assert (first.generation, second.generation) == (1, 3)


def test_a_group_with_a_member_waits_for_who_was_told_an_id() -> None:
    group = PretendedGroup(NEW_43, NEW_43)
    member = stable(group).member
    group.ask(JoinGroup(""))
    event = GroupAsked(group=GROUP, slot=0, broker=0, request=Named.of(JoinGroup(member)), at_ms=group.now_ms)
    group.groups.tell(event)
    hurried = JoinAnswer(Error.NONE, member, 2, member, "range", (member,))
    with pytest.raises(Divergence) as raised:
        group.groups.tell(GroupAnswered(group=GROUP, slot=0, reply=Named.of(hurried), at_ms=group.now_ms))
    assert raised.value.permitted == ("no answer yet",)


def test_who_coordinates_next_knows_what_was_committed_and_the_last_generation() -> None:
    group = PretendedGroup(NEW_43, NEW_43)
    member = stable(group).member
    assert group.ask(OffsetCommit(((0, 7),), member, 1)) == Plain(Error.NONE)
    group.elect(1)
    group.happen(60)
    assert group.ask(OffsetFetch(0)) == FetchedOffset(Error.NONE, 7)
    assert group.ask(Heartbeat(member, 1)) == Plain(Error.NONE)
    assert group.ask(Heartbeat(member, 1), broker=0) == Plain(Error.NOT_COORDINATOR)


@pytest.mark.parametrize("seen_ms", [6_000, 5_999], ids=["in time", "too early"])
def test_who_coordinates_next_finds_whom_the_one_before_may_have_timed_out(seen_ms: int) -> None:
    """An election was before it was seen: if the session may have ended by then, it may be in the log that it has."""
    group = PretendedGroup(NEW_43, NEW_43)
    member = stable(group).member
    began = group.now_ms
    elected = CoordinatorElected(leader=1, epoch=1, after_ms=began, before_ms=began + seen_ms)
    unknown = Named.of(Plain(Error.UNKNOWN_MEMBER_ID))
    later = began + seen_ms
    group.groups.tell(elected)
    group.groups.tell(GroupAsked(group=GROUP, slot=0, broker=1, request=Named.of(Heartbeat(member, 1)), at_ms=later))
    with nullcontext() if seen_ms == 6_000 else pytest.raises(Divergence):
        group.groups.tell(GroupAnswered(group=GROUP, slot=0, reply=unknown, at_ms=later))


def test_a_broker_that_was_never_elected_does_not_answer_as_the_coordinator() -> None:
    group = PretendedGroup(NEW_43, NEW_43)
    group.groups.tell(GroupAsked(group=GROUP, slot=0, broker=2, request=Named.of(OffsetFetch(0)), at_ms=group.now_ms))
    nothing = GroupAnswered(group=GROUP, slot=0, reply=Named.of(FetchedOffset(Error.NONE)), at_ms=group.now_ms)
    with pytest.raises(Divergence):
        group.groups.tell(nothing)


def walk(parameters: GroupParameters, believed: GroupParameters, protocol: GroupProtocol, seed: int) -> int:
    """Consumers do what a walk would have them do, while time passes and the coordinator changes; how large it got."""
    group = PretendedGroup(parameters, believed, seed=seed)
    consumers = tuple(Consumer(name=name, protocol=protocol) for name in NAMES[protocol])
    largest = 0
    for step in range(40):
        if step == 20:
            group.elect(group.draw.randrange(3))
        situation = GroupSituation(calm=True, coordinator=group.coordinator, consumers=consumers)
        choices = [
            one.step for one in drawn(group.draw, situation, frozenset(range(3))) if isinstance(one.step, GroupStep)
        ]
        taken = group.draw.choice(choices)
        consumer = next(one for one in consumers if one.name == taken.consumer)
        if not any(one.open for one in consumers) or group.draw.random() < 0.7:
            group.ask(consumer.request(taken), taken.broker, consumer)
        group.wait(group.draw.choice((10, 10, 10, 2000)))
        dict(group.answers())
        largest = max(largest, group.belief)
    return largest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("parameters", "protocol"),
    [
        pytest.param(OLD, GroupProtocol.CLASSIC, id="classic-3.9"),
        pytest.param(NEW_43, GroupProtocol.CLASSIC, id="classic-4.3"),
        pytest.param(NEW_41, GroupProtocol.CONSUMER, id="consumer-4.1"),
        pytest.param(NEW_43, GroupProtocol.CONSUMER, id="consumer-4.3"),
    ],
)
def test_right_consumers_and_coordinators_are_followed(
    parameters: GroupParameters, protocol: GroupProtocol, seed: int
) -> None:
    assert walk(parameters, parameters, protocol, seed) > 0


@pytest.mark.parametrize("guarded", [True, False], ids=["as it is", "without the guard"])
def test_an_instance_that_was_not_released_is_not_anybody_elses(guarded: bool) -> None:
    believed = NEW_43 if guarded else wrong_model("enter-any-instance").parameters(KRAFT_4).groups
    group = PretendedGroup(NEW_43, believed)
    entered = group.ask(ConsumerGroupHeartbeat("kim", 0, "one", frozenset(), "all"))
    assert isinstance(entered, HeartbeatAnswer)
    with nullcontext() if guarded else pytest.raises(Divergence):
        refused = group.ask(ConsumerGroupHeartbeat("leo", 0, "one", frozenset(), "all"))
        assert refused == Plain(Error.UNRELEASED_INSTANCE_ID)
