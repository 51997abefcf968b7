"""Observer for ZooKeeper mode: the controller's decisions about one partition, from the znodes that it writes.

Every write is observed separately, since the ensemble's transaction logs have them all. The controller's own view of
which brokers are live or shutting down is in its memory only, and is not observed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstep.cluster.zookeeper import Znode
from lockstep.stepper.observers.decisions import ControllerObserver, Decision
from lockstep.stepper.observers.zookeeper_log import Closed, Removed, Transaction, TransactionLog, Written
from lockstep_model.controller import Controller
from lockstep_model.registration import BrokerId, BrokerRegistration, Registration

BROKERS, CONTROLLER, CONTROLLER_EPOCH = "/brokers/ids/", "/controller", "/controller_epoch"


class Tree:
    """The znodes after the transactions so far, with the sessions of the ephemeral ones."""

    def __init__(self) -> None:
        self.znodes: dict[str, Znode] = {}
        self._sessions: dict[str, int] = {}

    def follow(self, transaction: Transaction) -> None:
        for change in transaction.changes:
            match change:
                case Written(path=path):
                    known = self.znodes.get(path)
                    created = transaction.zxid if known is None else known.czxid
                    self.znodes[path] = Znode(data=change.data, version=change.version, czxid=created)
                    if known is None:
                        self._sessions[path] = change.session
                case Removed(path=path):
                    self._remove(path)
                case Closed(session=session):
                    for path in [path for path, owner in self._sessions.items() if owner == session]:
                        self._remove(path)

    def _remove(self, path: str) -> None:
        self.znodes.pop(path, None)
        self._sessions.pop(path, None)


class ZnodeObserver(ControllerObserver):
    """Observes one partition through the transaction logs of the ensemble. All servers log the same transactions."""

    def __init__(self, servers: tuple[Path, ...], topic: str, partition: int) -> None:
        self._topic = f"/brokers/topics/{topic}"
        self._partition = str(partition)
        self._state = f"{self._topic}/partitions/{partition}/state"
        self._logs = tuple(map(TransactionLog, servers))
        self._tree = Tree()
        self._position = 0
        self._controller = Controller()
        self._asked_ns = time.monotonic_ns()

    @property
    def current(self) -> Controller:
        return self._controller

    @property
    def answered(self) -> bool:
        return self._position > 0

    @property
    def broker(self) -> int | None:
        znode = self._tree.znodes.get(CONTROLLER)
        return None if znode is None else int(znode.json()["brokerid"])

    def poll(self) -> list[Decision]:
        after_ns, self._asked_ns = self._asked_ns, time.monotonic_ns()
        read = {transaction.zxid: transaction for log in self._logs for transaction in log.read()}
        decisions = []
        for zxid in sorted(zxid for zxid in read if zxid > self._position):
            self._position = zxid
            before = dict(self._tree.znodes)
            self._tree.follow(read[zxid])
            controller = self._after()
            if controller != self._controller:
                self._controller = controller
                decisions.append(
                    Decision(
                        position=zxid,
                        controller=controller,
                        causes=tuple(self._causes(before)),
                        after_ns=after_ns,
                        before_ns=time.monotonic_ns(),
                    )
                )
        return decisions

    def close(self) -> None:
        """Does nothing: log files are closed after each poll."""

    def _after(self) -> Controller:
        """The controller's state by these znodes. A broker whose znode is gone is kept as fenced."""
        epoch = self._tree.znodes.get(CONTROLLER_EPOCH)
        there = _brokers(self._tree.znodes)
        controller = self._controller._replace(
            epoch=0 if epoch is None else int(epoch.data), partition=self._registration()
        )
        for broker, znode in there.items():
            controller = controller.with_broker(broker, BrokerRegistration(epoch=znode.czxid))
        for broker, _ in controller.brokers:
            controller = controller.marked(broker, fenced=broker not in there)
        return controller

    def _registration(self) -> Registration:
        assigned, written = self._tree.znodes.get(self._topic), self._tree.znodes.get(self._state)
        if assigned is None or written is None:
            return Controller().partition
        topic, state = assigned.json(), written.json()
        return Registration(
            replicas=tuple(topic["partitions"][self._partition]),
            isr=frozenset(state["isr"]),
            leader=state["leader"],
            leader_epoch=state["leader_epoch"],
            partition_epoch=written.version,
            recovering=bool(state.get("leader_recovery_state", 0)),
            adding=self._moving(topic, "adding_replicas"),
            removing=self._moving(topic, "removing_replicas"),
        )

    def _moving(self, topic: dict[str, Any], which: str) -> frozenset[BrokerId]:
        return frozenset(topic.get(which, {}).get(self._partition, ()))

    def _causes(self, before: dict[str, Znode]) -> Iterator[str]:
        now = self._tree.znodes
        for path in (CONTROLLER_EPOCH, self._topic, self._state):
            if now.get(path) != before.get(path):
                znode = now.get(path)
                yield f"{path} is gone" if znode is None else f"{path} version={znode.version}: {znode.data.decode()}"
        for broker in sorted(_brokers(before).keys() - _brokers(now).keys()):
            yield f"{BROKERS}{broker} is gone"
        for broker in sorted(_brokers(now).keys() - _brokers(before).keys()):
            yield f"{BROKERS}{broker} is new: czxid={now[f'{BROKERS}{broker}'].czxid}"


def _brokers(znodes: dict[str, Znode]) -> dict[BrokerId, Znode]:
    return {int(path.removeprefix(BROKERS)): znode for path, znode in znodes.items() if path.startswith(BROKERS)}
