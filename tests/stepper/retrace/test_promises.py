"""Promises, kept and broken, in what was seen: each history is good, and bad with one thing changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lockstep.stepper.model.client_requests import FetchResponse
from lockstep.stepper.model.controller_inference import Occasions
from lockstep.stepper.model.events import Began, Decided, Events, Exchanged, Named, RequestSent, ResponseArrived
from lockstep.stepper.retrace.promises import broken
from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import parameters_for
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.produce import Acks, Produce, Produced
from lockstep_model.registration import BrokerRegistration, Registration

KRAFT = parameters_for("4.3.1", "kraft", min_isr=2)
A, B, C = (0, 10), (0, 11), (1, 12)
"""Records, with the epoch and the value of each."""


def controller(leader: int = 0, isr: str = "012", epochs: tuple[int, int] = (0, 0), fenced: str = "") -> Controller:
    leader_epoch, partition_epoch = epochs
    members = frozenset(map(int, isr))
    partition = Registration((0, 1, 2), members, leader, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
    return Controller(partition, tuple((b, BrokerRegistration(epoch=b, fenced=str(b) in fenced)) for b in range(3)))


def decided(known: Controller) -> Decided:
    return Decided(controller=known, occasions=Occasions())


def look(broker: int, high_watermark: int, *records: tuple[int, int]) -> Exchanged:
    told = FetchResponse(Error.NONE, records, high_watermark, high_watermark, 0)
    return Exchanged(broker=broker, request=Named.of(Fetch(0, Isolation.LOG_END)), reply=Named.of(told))


def acknowledged(leader: int, value: int) -> list[Events]:
    request, reply = Named.of(Produce(Acks.ALL, (value,))), Named.of(Produced(Error.NONE, 1))
    return [RequestSent(slot=0, broker=leader, request=request), ResponseArrived(slot=0, reply=reply)]


def refused(leader: int) -> Exchanged:
    request, reply = Named.of(Produce(Acks.ALL, (11,))), Named.of(Produced(Error.NOT_ENOUGH_REPLICAS))
    return Exchanged(broker=leader, request=request, reply=reply)


BEGAN = Began(controller=controller())
ELECTED = decided(controller(leader=1, isr="12", epochs=(1, 1), fenced="0"))
ALONE = decided(controller(isr="0", epochs=(0, 1)))

HISTORIES: dict[str, tuple[Sequence[Events], Sequence[Events]]] = {
    "committed-reads-stable": (
        [BEGAN, look(0, 2, A, B), ELECTED, look(1, 2, A, B), look(0, 2, A, B)],
        [BEGAN, look(0, 2, A, B), ELECTED, look(1, 2, A, B), look(0, 2, A, C)],
    ),
    "leader-candidate-completeness": (
        [BEGAN, look(0, 1, A, B), look(2, 1, A)],
        [BEGAN, look(0, 2, A, B), look(2, 1, A)],
    ),
    "leader-completeness": (
        [BEGAN, look(0, 2, A, B), look(1, 1, A, B), ELECTED, look(1, 1, A, B)],
        [BEGAN, look(0, 2, A, B), look(1, 1, A, B), ELECTED, look(1, 1, A)],
    ),
    "hw-within-log": ([BEGAN, look(1, 1, A)], [BEGAN, look(1, 2, A)]),
    "leader-hw-monotone": (
        [BEGAN, look(0, 2, A, B), ELECTED, look(0, 1, A, B)],
        [BEGAN, look(0, 2, A, B), look(0, 1, A, B)],
    ),
    "hw-frozen-below-min-isr": (
        [BEGAN, ALONE, look(0, 1, A, B), refused(0), look(0, 2, A, B), look(0, 2, A, B)],
        [BEGAN, ALONE, look(0, 1, A, B), refused(0), look(0, 1, A, B), look(0, 2, A, B)],
    ),
    "acknowledged-is-committed": (
        [BEGAN, *acknowledged(0, 11), look(0, 2, A, B)],
        [BEGAN, *acknowledged(0, 11), look(0, 1, A, B)],
    ),
    "epochs-monotone": ([BEGAN, ELECTED], [BEGAN, decided(controller(leader=1, isr="12", epochs=(0, 1)))]),
    "leader-in-isr": ([BEGAN, ELECTED], [BEGAN, decided(controller(leader=0, isr="12", epochs=(1, 1)))]),
    "no-fenced-in-isr": ([BEGAN, ELECTED], [BEGAN, decided(controller(isr="012", epochs=(0, 1), fenced="2"))]),
}


@pytest.mark.parametrize("promise", HISTORIES)
def test_a_promise_that_is_not_kept_is_told(promise: str) -> None:
    good, bad = HISTORIES[promise]
    assert broken(good, KRAFT) == []
    assert promise in {one.promise for one in broken(bad, KRAFT)}


def test_who_is_seen_to_have_left_next_may_have_left_before() -> None:
    left = decided(controller(isr="01", epochs=(0, 1)))
    assert broken([BEGAN, look(0, 2, A, B), look(2, 1, A), left], KRAFT) == []


def test_in_zookeeper_mode_who_has_no_znode_may_be_in_the_isr_for_a_while() -> None:
    _, bad = HISTORIES["no-fenced-in-isr"]
    assert broken(bad, parameters_for("3.9.2", "zk", min_isr=2)) == []
