"""Real clusters of both kinds, and the ways to their brokers that the tests of single requests take."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from kio.schema.errors import ErrorCode

from lockstep.clients.wire.connection import Connection
from lockstep.clients.wire.coordinators import KeyType, ask_coordinator, ask_transaction
from lockstep.clients.wire.elections import Election, elect_leader
from lockstep.clients.wire.features import features
from lockstep.clients.wire.fetch import fetch
from lockstep.clients.wire.groups import offset_fetch
from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.reassignments import is_moving, reassign
from lockstep.clients.wire.records import Batch, Producer
from lockstep.clients.wire.refusals import Refused, RefusedForNow
from lockstep.clients.wire.transactions import init_producer_id
from lockstep.cluster.cluster import Cluster
from lockstep.network.conditions import Cut
from lockstep.network.topology import Link
from lockstep.pytest_plugin import Clusters
from lockstep.spec.cluster import Listener, Mode
from lockstep.wait import wait_until

PATIENCE_S = 60.0
RACKS = ("east", "west", "north")
OVERRIDES = {
    "replica.lag.time.max.ms": "30000",  # who is cut off stays in the ISR for longer than any test takes
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


ONLY_KRAFT = pytest.mark.parametrize("mode", [Mode.KRAFT], indirect=True, ids=str)
ONLY_ZK = pytest.mark.parametrize("mode", [Mode.ZK], indirect=True, ids=str)


class Wire:
    """Topics of one test, and its connections to exactly the brokers that it means."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._open = ExitStack()
        with self.to(cluster.broker_ids[0]) as connection:
            self.transaction_version = features(connection).finalized.get("transaction.version", 0)

    def close(self) -> None:
        self._open.close()

    def topic(self, *, partitions: int = 1, replication: int = 3, **config: str) -> str:
        name = unique("wire")
        self.cluster.create_topic(name, partitions=partitions, replication=replication, config=config)
        return name

    def view(self, topic: str) -> PartitionView:
        return self.cluster.leader(topic, 0)

    def to(self, broker_id: int) -> Connection:
        return self._open.enter_context(Connection(self.cluster.direct(broker_id), self.cluster.access()))

    def leader(self, topic: str) -> Connection:
        return self.to(self.view(topic).leader)

    def follower(self, topic: str) -> Connection:
        view = self.view(topic)
        return self.to(next(id_ for id_ in view.replicas if id_ != view.leader))

    def coordinator(self, key_type: KeyType, key: str) -> Connection:
        """The way to a coordinator that has read its log."""
        anybody = self.cluster.direct(self.cluster.broker_ids[0])
        found = wait_until(
            lambda: ask_coordinator(anybody, key_type, key, access=self.cluster.access()),
            timeout_s=PATIENCE_S,
            what=f"{key} to have a coordinator",
            retry_on=(RefusedForNow,),
        )
        connection = self.to(found)

        def loaded() -> bool:
            if key_type is KeyType.TRANSACTION:
                return self._knows_transactions(found, key)
            return offset_fetch(connection, key, "any", 0).answer().error is ErrorCode.none

        wait_until(loaded, timeout_s=PATIENCE_S, what=f"the coordinator of {key} to have read its log")
        return connection

    def wait_ended(self, transactional_id: str) -> None:
        """All markers of its transaction are written, and the next may begin."""
        anybody, access = self.cluster.direct(self.cluster.broker_ids[0]), self.cluster.access()
        found = self.cluster.direct(ask_coordinator(anybody, KeyType.TRANSACTION, transactional_id, access=access))
        wait_until(
            lambda: ask_transaction(found, transactional_id, access=access).state.startswith("Complete"),
            timeout_s=PATIENCE_S,
            what=f"the end of {transactional_id}'s transaction",
        )

    def elect_another(self, topic: str) -> PartitionView:
        """Have the leader changed while everybody is in sync, so that there is an epoch before the present one."""
        before = self.view(topic)
        controller, access = self.cluster.direct(self.cluster.ask(before.leader).controller), self.cluster.access()
        reassign(controller, topic, 0, before.replicas[::-1], access=access)
        wait_until(
            lambda: not is_moving(controller, topic, 0, access=access), timeout_s=PATIENCE_S, what=f"{topic} to move"
        )
        elect_leader(controller, topic, 0, Election.PREFERRED, access=access)
        wait_until(
            lambda: self.view(topic).leader == before.replicas[-1], timeout_s=PATIENCE_S, what=f"{topic}'s new leader"
        )
        elected = self.view(topic)
        for replica in elected.replicas:
            self._wait_for_epoch(self.to(replica), elected)
        return elected

    def _wait_for_epoch(self, replica: Connection, elected: PartitionView) -> None:
        """Whoever follows learns later of it than whoever tells of it."""
        epoch = elected.leader_epoch
        wait_until(
            lambda: fetch(replica, elected.topic, 0, 0, current_leader_epoch=epoch).answer().error is ErrorCode.none,
            timeout_s=PATIENCE_S,
            what=f"a replica to know of epoch {epoch}",
        )

    @contextmanager
    def followers_cut_off(self, topic: str) -> Iterator[None]:
        view = self.view(topic)
        links = [
            Link(
                source=self.cluster.broker(follower).name,
                destination=self.cluster.broker(view.leader).name,
                listener=Listener.REPL,
            )
            for follower in view.replicas
            if follower != view.leader
        ]
        try:
            for link in links:
                self.cluster.links.impose(link, Cut())
            yield
        finally:
            for link in links:
                self.cluster.links.mend(link)

    def _knows_transactions(self, broker_id: int, transactional_id: str) -> bool:
        try:
            ask_transaction(self.cluster.direct(broker_id), transactional_id, access=self.cluster.access())
        except RefusedForNow:
            return False
        except Refused as refused:
            return refused.code is ErrorCode.transactional_id_not_found
        return True


def new_producer(connection: Connection, transactional_id: str | None = None) -> Producer:
    """A broker that has no ids yet asks the controller for some, and says meanwhile that it loads."""

    def initialized() -> Producer | None:
        answer = init_producer_id(connection, transactional_id).answer(PATIENCE_S)
        assert answer.error in (ErrorCode.none, ErrorCode.coordinator_load_in_progress)
        return answer.producer if answer.error is ErrorCode.none else None

    producer = wait_until(initialized, timeout_s=PATIENCE_S, what="a producer id")
    assert producer is not None
    return producer


def unique(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex[:8]}"


def one(value: bytes = b"a") -> Batch:
    """A batch of a plain producer."""
    return Batch(values=(value,))


@pytest.fixture(scope="module", params=[Mode.KRAFT, Mode.ZK], ids=str)
def mode(request: pytest.FixtureRequest) -> Mode:
    assert isinstance(request.param, Mode)
    return request.param


@pytest.fixture
def wire(mode: Mode, lockstep_clusters: Clusters) -> Iterator[Wire]:
    made = Wire(lockstep_clusters.get(mode=mode, racks=RACKS, overrides=OVERRIDES))
    try:
        yield made
    finally:
        made.close()
