"""The model follows the transactions of a pretended cluster that is right, and wrong models do not."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from harness.lockstep.divergence import Divergence
from harness.lockstep.events import Identified, Surrounded
from harness.lockstep.world import Surroundings, Transactions
from harness.lockstep.wrong_models import wrong_model
from reference_model.errors import Error
from reference_model.fetch import Fetch, Isolation
from reference_model.parameters import Parameters, parameters_for
from reference_model.produce import Acks, Produce
from reference_model.producer_state import Batch
from reference_model.transactions.coordinator import (
    AddPartitionsToTxn,
    Answer,
    EndTxn,
    InitProducerId,
    Producer,
    init_producer_id,
)
from tests.lockstep.pretended import Pretended

KRAFT_4 = parameters_for("4.3.1", "kraft", min_isr=2)
KRAFT_3 = parameters_for("3.9.2", "kraft", min_isr=2)
BOTH = pytest.mark.parametrize("parameters", [KRAFT_4, KRAFT_3], ids=["kraft-4", "kraft-3.9"])
LEADER = 0


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


def walk(parameters: Parameters, believed: Parameters, seed: int, *, steady: bool = True, steps: int = 60) -> int:
    """Let a client act; returns how large the belief was at most."""
    cluster = Pretended(parameters, believed, seed=seed)
    producer = Producer(7, 0)
    known, _ = init_producer_id(None, InitProducerId(), parameters, fresh=producer.id)
    around = Surroundings(steady=steady)
    cluster.put({cluster.places.SURROUNDINGS: around, cluster.places.transactions: Transactions(known)})
    cluster.following.tell(Identified(producer=producer))
    cluster.following.tell(Surrounded(surroundings=around))
    client = Client(cluster, producer)
    largest = 0
    for _ in range(steps):
        client.act()
        cluster.happen()
        largest = max(largest, len(cluster.following.belief))
    return largest


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


def follows(parameters: Parameters, believed: Parameters, seed: int) -> bool:
    try:
        walk(parameters, believed, seed)
    except Divergence:
        return False
    return True
