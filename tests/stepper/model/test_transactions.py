"""The model follows the transactions of a pretended cluster that is right, and wrong models do not."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

import pytest

from lockstep.stepper.controls.wrong_models import wrong_model
from lockstep.stepper.model.divergence import Divergence
from lockstep.stepper.model.events import Identified, Named, RequestSent, ResponseArrived, Surrounded
from lockstep.stepper.model.state import Surroundings, TransactionalState
from lockstep.stepper.model.transactions import sent_again
from lockstep_model.errors import Error
from lockstep_model.parameters import Parameters, parameters_for
from lockstep_model.partition.fetch import Fetch, Isolation
from lockstep_model.partition.produce import Acks, Produce, Produced
from lockstep_model.partition.producer_state import Batch
from lockstep_model.transactions.coordinator import (
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Producer,
    init_producer_id,
)
from tests.stepper.pretended import Pretended

KRAFT_4 = parameters_for("4.3.1", "kraft", min_isr=2)
KRAFT_3 = parameters_for("3.9.2", "kraft", min_isr=2)
KRAFT_36 = parameters_for("3.6.2", "kraft", min_isr=2)
BOTH = pytest.mark.parametrize("parameters", [KRAFT_4, KRAFT_3], ids=["kraft-4", "kraft-3.9"])
LEADER = 0
PRODUCER = Producer(7, 0)


class Client:
    """A client of a pretended cluster, which says the right thing or, now and then, another."""

    def __init__(self, cluster: Pretended, producer: Producer) -> None:
        self.cluster = cluster
        self.producer = producer
        self._sequence = 0
        self._values = iter(range(1000))

    def act(self) -> None:
        producer = self.producer._replace(epoch=self.producer.epoch + self.cluster.draw.choice([0, 0, 0, 0, 0, 1, -1]))
        match self.cluster.draw.choice(["init", "add", "add", "write", "write", "write", "end", "end", "read", "read"]):
            case "init":
                self._told(self._ask(InitProducerId(expected=self.cluster.draw.choice([None, producer]))))
            case "add":
                self._ask(AddPartitionsToTxn(producer, frozenset({0})))
            case "write":
                batch = Batch(producer.id, max(producer.epoch, 0), self._sequence, transactional=True)
                reply = self._ask(Produce(Acks.ALL, (next(self._values),), batch))
                self._sequence += reply is not None and reply.error is Error.NONE and producer == self.producer
            case "end":
                commit = self.cluster.draw.random() < 0.5
                version = 5 if self.cluster.parameters.transaction_version >= 2 else 4
                self._told(self._ask(EndTxn(producer, commit, version)))
            case "read":
                self._ask(Fetch(0, self.cluster.draw.choice(list(Isolation))))

    def _ask(self, request: object) -> Any:
        return self.cluster.ask(LEADER, request)

    def _told(self, answer: object) -> None:
        if isinstance(answer, Answer) and answer.producer not in (None, self.producer):
            self.producer, self._sequence = answer.producer, 0


def identified(parameters: Parameters, believed: Parameters, seed: int, *, steady: bool = True) -> Pretended:
    """A cluster with a producer that nobody knew before."""
    cluster = Pretended(parameters, believed, seed=seed)
    known, _ = init_producer_id(None, InitProducerId(), parameters, fresh=PRODUCER.id)
    around = Surroundings(steady=steady)
    cluster.put({cluster.places.SURROUNDINGS: around, cluster.places.transactions: TransactionalState(known)})
    cluster.tracker.tell(Identified(producer=PRODUCER))
    cluster.tracker.tell(Surrounded(surroundings=around))
    return cluster


def walk(
    parameters: Parameters,
    believed: Parameters,
    seed: int,
    *,
    steady: bool = True,
    reloads: float = 0.0,
    steps: int = 60,
) -> int:
    """Let a client act; returns how large the belief was at most."""
    cluster = identified(parameters, believed, seed, steady=steady)
    client = Client(cluster, PRODUCER)
    largest = 0
    for _ in range(steps):
        client.act()
        if cluster.draw.random() < reloads:
            reload(cluster)
        cluster.happen()
        largest = max(largest, len(cluster.tracker.belief))
    return largest


def reload(cluster: Pretended) -> None:
    """The ISR of the coordinator's partition changes, as when a broker that follows it has died."""
    transactions: TransactionalState = cluster.state[cluster.places.transactions]
    told = sent_again(cluster.parameters, transactions.told_to_reload(1, epoch=0))
    cluster.put({cluster.places.transactions: told})
    cluster.around(reloads=cluster.state[cluster.places.SURROUNDINGS].reloads + 1)


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_transactions_of_a_right_cluster_are_followed(parameters: Parameters, seed: int) -> None:
    assert walk(parameters, parameters, seed) > 0


@BOTH
def test_they_are_followed_where_coordinators_come_and_go(parameters: Parameters) -> None:
    assert walk(parameters, parameters, seed=1, steady=False) > 0


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("open-transactions-read", KRAFT_3),
        ("open-transactions-read", KRAFT_4),
        ("init-keeps-epoch", KRAFT_4),
        ("end-keeps-epoch", KRAFT_4),
        ("end-of-any-epoch", KRAFT_3),
        ("add-of-any-epoch", KRAFT_4),
        ("init-leaves-open", KRAFT_3),
        ("unverified", KRAFT_3),
    ],
)
def test_a_wrong_model_does_not_follow_them(name: str, parameters: Parameters) -> None:
    believed = wrong_model(name).parameters(parameters)
    seeds = range(20)
    assert len(list(takewhile(lambda seed: follows(parameters, believed, seed), seeds))) < len(seeds)


def follows(parameters: Parameters, believed: Parameters, seed: int, *, reloads: float = 0.0) -> bool:
    try:
        walk(parameters, believed, seed, steady=not reloads, reloads=reloads)
    except Divergence:
        return False
    return True


@pytest.mark.parametrize("seed", range(3))
def test_a_coordinator_that_loads_its_log_again_is_followed(seed: int) -> None:
    assert walk(KRAFT_36, KRAFT_36, seed, steady=False, reloads=0.1, steps=25) > 0


@pytest.mark.parametrize(
    ("version", "mode", "reloads"),
    [("3.6.2", "kraft", True), ("3.7.1", "kraft", True), ("3.8.0", "kraft", False), ("3.6.2", "zk", False)],
)
def test_it_does_so_in_kraft_mode_before_3_8(version: str, mode: str, *, reloads: bool) -> None:
    assert parameters_for(version, mode).coordinator_reloads is reloads


def test_only_who_knows_of_it_follows() -> None:
    loads_once = replace(KRAFT_36, coordinator_reloads=False)
    seeds = range(20)
    assert len(list(takewhile(lambda seed: follows(KRAFT_36, loads_once, seed, reloads=0.3), seeds))) < len(seeds)


@pytest.mark.parametrize(
    ("parameters", "reloads", "permitted"),
    [
        (KRAFT_36, 0, [1, 2]),
        (KRAFT_36, 1, [1, 2, 3]),
        (KRAFT_36, 2, [1, 2, 3, 4]),
        (KRAFT_3, 2, [1, 2]),
    ],
)
def test_each_time_it_writes_one_marker_more(parameters: Parameters, reloads: int, permitted: list[int]) -> None:
    offsets = [offset for offset in range(6) if next_write(parameters, reloads, offset)]
    assert offsets == permitted


def test_the_older_marker_may_come_when_the_transaction_is_over() -> None:
    """As seen on 3.6.2: the next producer was told its epoch, and a marker of the one before came after that."""
    assert [offset for offset in range(6) if next_write(KRAFT_36, 1, offset, over=True)] == [2, 3]
    assert [offset for offset in range(6) if next_write(KRAFT_3, 1, offset, over=True)] == [2]


def next_write(parameters: Parameters, reloads: int, offset: int, *, over: bool = False) -> bool:
    """Whether the next record may have this offset, after a transaction with one record was committed.

    Its coordinator was told so often to load its log again, before the transaction was over and, if that is asked for,
    the next producer knew its epoch.
    """
    cluster = identified(parameters, parameters, seed=0, steady=False)

    def answered(request: object, reply: object) -> None:
        cluster.tracker.tell(RequestSent(slot=0, broker=LEADER, request=Named.of(request), reply=Named.of(reply)))
        cluster.tracker.tell(ResponseArrived(slot=0, reply=Named.of(reply)))

    answered(AddPartitionsToTxn(PRODUCER, frozenset({0})), Answer())
    batch = Batch(PRODUCER.id, PRODUCER.epoch, 0, transactional=True)
    answered(Produce(Acks.ALL, (0,), batch), Produced(Error.NONE, 0))
    answered(EndTxn(PRODUCER, commit=True, version=4), Answer())
    for _ in range(reloads):
        reload(cluster)
    if over:
        answered(InitProducerId(), Answer(producer=PRODUCER._replace(epoch=1)))
    try:
        answered(Produce(Acks.LEADER, (1,)), Produced(Error.NONE, offset))
    except Divergence:
        return False
    return True
