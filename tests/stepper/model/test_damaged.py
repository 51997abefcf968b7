"""Batches with a wrong checksum, as walks write them and as the model takes their refusal."""

from __future__ import annotations

import pytest

from lockstep.stepper.controls.wrong_models import judge, wrong_model
from lockstep.stepper.driver.actions import Sender, Step, Write
from lockstep.stepper.driver.codec import write
from lockstep.stepper.driver.situation import Situation
from lockstep.stepper.driver.transactional_client import TransactionalClient
from lockstep.stepper.model.events import Exchanged, Named
from lockstep.stepper.walk.coverage import kind
from lockstep.stepper.walk.generator import Walk
from lockstep_model.errors import Error
from lockstep_model.partition.produce import Acks, Produce, Produced, Unanswered
from tests.stepper.walk.test_runner import KRAFT, recorded

ALL_IS_WELL = Situation(
    brokers=(1, 2, 3),
    running=frozenset({1, 2, 3}),
    paused=frozenset(),
    ended=frozenset(),
    replicas=(1, 2, 3),
    leader=1,
    leader_epoch=0,
    isr=frozenset({1, 2, 3}),
    elr=frozenset(),
    cut=frozenset(),
    written=0,
    open_writes=0,
    may_leave_open=True,
    belief=1,
)


def drawn(situation: Situation, steps: int = 1000) -> list[Step]:
    walk = Walk(seed=1)
    return [walk.step(situation) for _ in range(steps)]


def test_walks_write_them_to_anybody_with_any_acks() -> None:
    damaged = [step for step in drawn(ALL_IS_WELL) if isinstance(step, Write) and step.corrupt]
    assert {step.broker for step in damaged} == {1, 2, 3}
    assert {step.acks for step in damaged} == {-1, 0, 1}
    assert {step.sender is None for step in damaged} == {True, False}


def test_they_are_damaged_on_the_wire_and_in_the_model_and_told_apart() -> None:
    step = Write(broker=1, acks=1, sender=Sender(producer_id=7, epoch=0, sequence=0), corrupt=True)
    assert str(step) == "write 1 to 1 with acks=1 as producer 7 epoch 0 sequence 0, damaged"
    assert kind(step) == "write with acks=1, idempotent, damaged"
    assert write(step, "orders", (4,), TransactionalClient("orders", version=2)).request.corrupt


@pytest.mark.parametrize(
    ("acks", "reply"),
    [(Acks.LEADER, Produced(Error.CORRUPT_MESSAGE)), (Acks.NONE, Unanswered(closed=True))],
    ids=["acks-1", "acks-0"],
)
def test_who_does_not_look_at_the_checksum_cannot_explain_the_refusal(acks: Acks, reply: Produced | Unanswered) -> None:
    refused = Exchanged(broker=0, request=Named.of(Produce(acks, (9,), corrupt=True)), reply=Named.of(reply))
    events = [*recorded()[:2], refused]
    assert judge(events, KRAFT).divergence is None
    assert judge(events, KRAFT, wrong_model("any-checksum").reading).divergence is not None


def test_one_that_was_taken_diverges() -> None:
    taken = Exchanged(
        broker=0,
        request=Named.of(Produce(Acks.LEADER, (9,), corrupt=True)),
        reply=Named.of(Produced(Error.NONE, 1)),
    )
    divergence = judge([*recorded()[:2], taken], KRAFT).divergence
    assert divergence is not None
    assert (divergence.seen, divergence.permitted) == ("written at 1", ("CORRUPT_MESSAGE",))
