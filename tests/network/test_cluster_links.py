"""Every kind of link in every condition, on real clusters: what others see of it, and how it ends.

Conditions are imposed on different links at once where they do not disturb each other; each test then tells about one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from lockstep.cluster.cluster import Cluster
from lockstep.network.conditions import BlackHole, Condition, Cut, OneWay, Reset
from lockstep.network.topology import Link
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener, Mode
from tests.network.effects import (
    CONDITIONS,
    NARROW,
    SLOW,
    Outcomes,
    broker_is_missed,
    client_notices,
    news_takes,
    replication_outcomes,
    together,
)

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("fault-cluster")]

every_condition = pytest.mark.parametrize("condition", CONDITIONS, ids=str)


@pytest.fixture(scope="module")
def kraft(lockstep_clusters: Clusters) -> Iterator[Cluster]:
    cluster = lockstep_clusters.get()
    cluster.wait_all_in_sync()
    yield cluster
    cluster.wait_all_in_sync()


@pytest.fixture(scope="module")
def zk(lockstep_clusters: Clusters) -> Iterator[Cluster]:
    cluster = lockstep_clusters.get(kafka="3.9.2", mode=Mode.ZK)
    yield cluster
    cluster.wait_all_in_sync()


@pytest.fixture(scope="module")
def replication(kraft: Cluster) -> Outcomes:
    return replication_outcomes(kraft)


@every_condition
def test_node_to_node(replication: Outcomes, condition: Condition) -> None:
    replication[condition].result()


@pytest.fixture(scope="module")
def control(kraft: Cluster) -> Outcomes:
    """Brokers 1 and 2 in turn; broker 3 tells what it hears of them."""
    first, second = (
        Link(source=f"broker-{id_}", destination="controller-100", listener=Listener.CONTROLLER) for id_ in (1, 2)
    )
    return (
        together({Cut(): _missed(kraft, first, Cut(), 3), BlackHole(): _missed(kraft, second, BlackHole(), 3)})
        | together({OneWay(): _missed(kraft, first, OneWay(), 3), Reset(): _missed(kraft, second, Reset(), 3)})
        | together(
            {
                SLOW: partial(news_takes, kraft, first, SLOW, teller=3, hearer=1, least_s=0.2),
                NARROW: partial(news_takes, kraft, second, NARROW, teller=3, hearer=2, least_s=0.3),
            }
        )
    )


@every_condition
def test_node_to_controller(control: Outcomes, condition: Condition) -> None:
    control[condition].result()


@pytest.fixture(scope="module")
def sessions(zk: Cluster) -> Outcomes:
    """The two brokers that are not the controller lose their sessions; a slow controller slows everybody's news."""
    controller = zk.ask(1).controller
    first, second, third = (
        Link(source=f"broker-{id_}", destination="zookeeper-1", listener=Listener.ZOOKEEPER)
        for id_ in (*(id_ for id_ in zk.broker_ids if id_ != controller), controller)
    )
    told = partial(news_takes, zk, third, teller=controller, hearer=controller)
    return (
        together({Cut(): _missed(zk, first, Cut(), controller), OneWay(): _missed(zk, second, OneWay(), controller)})
        | together(
            {
                BlackHole(): _missed(zk, first, BlackHole(), controller),
                Reset(): _missed(zk, second, Reset(), controller),
            }
        )
        | together({SLOW: partial(told, SLOW, least_s=0.4)})
        | together({NARROW: partial(told, NARROW, least_s=0.3)})
    )


@every_condition
def test_node_to_zookeeper(sessions: Outcomes, condition: Condition) -> None:
    sessions[condition].result()


@pytest.fixture(scope="module")
def written(kraft: Cluster) -> str:
    topic = "links-clients"
    kraft.create_topic(topic, partitions=1, replication=3, config={})
    return topic


@every_condition
def test_client_to_broker(kraft: Cluster, written: str, condition: Condition) -> None:
    client_notices(kraft, Listener.CLIENT, written, condition)


@pytest.mark.parametrize(
    "condition",
    [Cut(), OneWay(), NARROW, *(pytest.param(other, marks=pytest.mark.long) for other in (BlackHole(), Reset(), SLOW))],
    ids=str,
)
def test_client_to_broker_on_the_other_side(kraft: Cluster, written: str, condition: Condition) -> None:
    client_notices(kraft, Listener.CLIENT_B, written, condition)


def _missed(cluster: Cluster, link: Link, condition: Condition, witness: int) -> partial[None]:
    return partial(broker_is_missed, cluster, link, condition, witness)
