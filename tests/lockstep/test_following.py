"""The model follows a pretended cluster that is right, and notices one that is not."""

from __future__ import annotations

import pytest

from reference_model.fetch import Fetch, Isolation
from reference_model.offsets import ListOffsets, Timestamp
from reference_model.parameters import Parameters, parameters_for
from reference_model.produce import Acks, Produce
from tests.lockstep.pretended import Pretended

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
        largest = max(largest, len(cluster.following.belief))
    return largest


@pytest.mark.parametrize("parameters", [KRAFT_4, KRAFT_3, ZK], ids=["kraft-4", "kraft-3.9", "zk-3.9"])
@pytest.mark.parametrize("seed", range(8))
def test_a_right_cluster_is_followed(parameters: Parameters, seed: int) -> None:
    assert walk(parameters, parameters, seed) > 0
