"""One transactional id, used by more than one process of a fault's own."""

from __future__ import annotations

from lockstep.clients.standalone import Transact
from lockstep.clients.wire.coordinators import KeyType, TransactionView, ask_coordinator, ask_transaction
from lockstep.cluster.cluster import Cluster
from lockstep.faults.fault import Proof
from lockstep.faults.support.administration import administer
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.topics import OwnTopic


class TransactionalId:
    """A transactional id and a topic that only these processes use."""

    def __init__(self, cluster: Cluster, fault: str) -> None:
        self.topic = OwnTopic(cluster, fault)
        self._cluster = cluster
        self._clients: list[ClientProcess] = []

    @property
    def name(self) -> str:
        return self.topic.name

    def producer(self, name: str, *, insists: bool = False) -> ClientProcess:
        """Start one more process that uses the id."""
        task = Transact(topic=self.topic.name, transactional_id=self.name, insists=insists)
        client = ClientProcess(self._cluster, f"{self.name}-{name}", task)
        self._clients.append(client)
        return client

    def view(self) -> TransactionView:
        """The transactional id as its coordinator describes it."""
        coordinator = administer(
            self._cluster,
            lambda address, access: ask_coordinator(address, KeyType.TRANSACTION, self.name, access=access),
            f"{self.name} to have a coordinator",
        )
        return administer(
            self._cluster,
            lambda _, access: ask_transaction(self._cluster.direct(coordinator), self.name, access=access),
            f"the coordinator of {self.name} to answer",
        )

    def end(self) -> Proof:
        """End every process, and delete the topic."""
        for client in self._clients:
            client.kill()
        return {"ended": [client.identity for client in self._clients]} | self.topic.done()
