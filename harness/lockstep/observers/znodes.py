"""What the controller of a ZooKeeper-mode cluster decides about one partition, by the znodes that it writes.

They have no history: a poll sees the last of what was written since the one before. The version of the partition's
state tells how many times it was written, so how much was missed is known. Whom the controller itself has noticed to be
gone, and who is shutting down, is in its memory only and not seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from harness.cluster.zookeeper import Znode, znodes
from harness.errors import ClusterError
from harness.lockstep.observers.decisions import ControllerObserver, Decision
from harness.network.topology import Address
from reference_model.controller import Controller
from reference_model.registration import BrokerId, BrokerRegistration, Registration

BROKERS, CONTROLLER_EPOCH = "/brokers/ids", "/controller_epoch"


class Seen(NamedTuple):
    """The znodes that matter, as they were at one moment."""

    controller_epoch: int = 0
    topic: Znode | None = None
    """Where its partitions are."""
    state: Znode | None = None
    """Of the partition."""
    brokers: tuple[tuple[BrokerId, Znode], ...] = ()


class ZnodeObserver(ControllerObserver):
    """Follows one partition by its znodes, in one session that is kept."""

    def __init__(self, servers: tuple[Address, ...], topic: str, partition: int) -> None:
        self._topic = f"/brokers/topics/{topic}"
        self._partition = str(partition)
        self._state = f"{self._topic}/partitions/{partition}/state"
        self._seen = Seen()
        self._controller = Controller()
        self._asked_ns = time.monotonic_ns()
        self._answered = False
        with ExitStack() as stack:
            self._session = stack.enter_context(znodes(*servers))
            self._stack = stack.pop_all()

    @property
    def current(self) -> Controller:
        return self._controller

    @property
    def answered(self) -> bool:
        return self._answered

    def poll(self) -> list[Decision]:
        asked_ns = time.monotonic_ns()
        try:
            seen, position = self._session.at_rest(self._read)
        except ClusterError:
            return []
        before, self._seen = self._seen, seen
        controller = self._after(seen)
        changed, self._controller = controller != self._controller, controller
        after_ns, self._asked_ns, self._answered = self._asked_ns, asked_ns, True
        if not changed:
            return []
        return [
            Decision(
                position=position,
                controller=controller,
                causes=tuple(self._causes(before, seen)),
                hidden=_hidden(before.state, seen.state),
                after_ns=after_ns,
                before_ns=time.monotonic_ns(),
            )
        ]

    def close(self) -> None:
        self._stack.close()

    def _read(self) -> Seen:
        epoch = self._session.get(CONTROLLER_EPOCH)
        brokers = [(int(id_), self._session.get(f"{BROKERS}/{id_}")) for id_ in self._session.children(BROKERS)]
        return Seen(
            controller_epoch=0 if epoch is None else int(epoch.data),
            topic=self._session.get(self._topic),
            state=self._session.get(self._state),
            brokers=tuple(sorted((id_, znode) for id_, znode in brokers if znode is not None)),
        )

    def _after(self, seen: Seen) -> Controller:
        """What the controller knows by these znodes, and that it knew of the brokers whose znodes are gone."""
        there = dict(seen.brokers)
        controller = self._controller._replace(epoch=seen.controller_epoch, partition=self._registration(seen))
        for broker, znode in there.items():
            controller = controller.with_broker(broker, BrokerRegistration(epoch=znode.czxid))
        for broker, _ in controller.brokers:
            controller = controller.marked(broker, fenced=broker not in there)
        return controller

    def _registration(self, seen: Seen) -> Registration:
        if seen.topic is None or seen.state is None:
            return Controller().partition
        topic, state = seen.topic.json(), seen.state.json()
        return Registration(
            replicas=tuple(topic["partitions"][self._partition]),
            isr=frozenset(state["isr"]),
            leader=state["leader"],
            leader_epoch=state["leader_epoch"],
            partition_epoch=seen.state.version,
            recovering=bool(state.get("leader_recovery_state", 0)),
            adding=self._moving(topic, "adding_replicas"),
            removing=self._moving(topic, "removing_replicas"),
        )

    def _moving(self, topic: dict[str, Any], which: str) -> frozenset[BrokerId]:
        return frozenset(topic.get(which, {}).get(self._partition, ()))

    def _causes(self, before: Seen, seen: Seen) -> Iterator[str]:
        if seen.controller_epoch != before.controller_epoch:
            yield f"{CONTROLLER_EPOCH} is {seen.controller_epoch}"
        for broker, _ in sorted(set(before.brokers) - set(seen.brokers)):
            yield f"{BROKERS}/{broker} is gone"
        for broker, znode in sorted(set(seen.brokers) - set(before.brokers)):
            yield f"{BROKERS}/{broker} is new: czxid={znode.czxid}"
        for path, old, new in ((self._topic, before.topic, seen.topic), (self._state, before.state, seen.state)):
            if new != old:
                yield f"{path} is gone" if new is None else f"{path} version={new.version}: {new.data.decode()}"


def _hidden(before: Znode | None, now: Znode | None) -> int:
    """How many versions of a znode were skipped; what was written to one that is gone since is not known."""
    if now is None:
        return 0
    seen = before.version if before is not None and before.czxid == now.czxid else -1
    return max(now.version - seen - 1, 0)
