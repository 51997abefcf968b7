"""A leader that no follower can fetch from, while its clients and the controller notice nothing."""

from __future__ import annotations

import time

from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import NodeState
from lockstep.errors import ClusterError, FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.link_conditions import Imposition
from lockstep.network.conditions import Cut
from lockstep.network.topology import Link
from lockstep.plan.targets import LeaderOf
from lockstep.spec.cluster import Listener
from lockstep.wait import wait_until

BIT_S = 15.0
STANDSTILL_S = 1.0
"""Several times what a follower waits for news (replica.fetch.wait.max.ms): one that only waits is not cut off."""
CAUGHT_UP_S = 90.0
NOT_YET = (OSError, ClusterError)
"""Errors of a broker that starts up, or does not know yet whether it leads or follows."""


@fault(
    name="replication-cut",
    summary="Cut every follower off from a partition's leader, and nothing else",
    targets=(LeaderOf,),
    takes=1,  # the leader: it serves, and nothing that it takes is committed
)
class ReplicationCut:
    """Proven by the ends of the logs: the leader is ahead, and its followers stand still."""

    def __init__(self, cluster: Cluster, target: LeaderOf) -> None:
        self._cluster = cluster
        self._target = target
        self._before: PartitionView = cluster.leader(target.topic, target.partition)
        self._followers = tuple(id_ for id_ in self._before.replicas if id_ != self._before.leader)
        self._links = [
            Link(source=cluster.broker(id_).name, destination=self.resolved, listener=Listener.REPL)
            for id_ in self._followers
        ]
        self._imposition = Imposition(cluster.links, dict.fromkeys(self._links, Cut()))

    @property
    def resolved(self) -> str:
        return self._cluster.broker(self._before.leader).name

    def inject(self) -> Proof:
        self._imposition.begin()
        return {"cut": [str(link) for link in self._links]}

    def bit(self) -> Proof:
        """Needs a producer: on an idle partition nothing shows whether followers fetch."""
        still, since = self._log_ends(self._before.replicas), time.monotonic()

        def apart() -> dict[int, int] | None:
            nonlocal still, since
            now = self._log_ends(self._before.replicas)
            if any(now[id_] != still[id_] for id_ in self._followers):
                still, since = now, time.monotonic()  # what was already on its way has arrived
            ahead = now[self._before.leader] > max(now[id_] for id_ in self._followers)
            return now if ahead and time.monotonic() - since >= STANDSTILL_S else None

        now = wait_until(
            apart,
            timeout_s=BIT_S,
            what=f"the leader of {self._partition} to be ahead of followers that stand still",
            interval_s=0.1,
            retry_on=NOT_YET,
        )
        assert now is not None
        return {
            "partition": self._partition,
            "leader_log_end": now[self._before.leader],
            "follower_log_ends": {self._cluster.broker(id_).name: now[id_] for id_ in self._followers},
            "stood_still_ms": int(STANDSTILL_S * 1000),
            "isr": self._isr(),
        }

    def _isr(self) -> list[int]:
        """The same leader still leads; its ISR is what it was, or less once the lag time has passed."""
        view = self._cluster.leader(self._target.topic, self._target.partition)
        same = (view.leader, view.leader_epoch) == (self._before.leader, self._before.leader_epoch)
        if not same or not set(view.isr) <= set(self._before.isr):
            raise FaultError(
                f"{self._partition} changed under the cut: leader {self._before.leader} at epoch "
                f"{self._before.leader_epoch} with ISR {self._before.isr}, and then {view.leader} at epoch "
                f"{view.leader_epoch} with ISR {view.isr}"
            )
        return sorted(view.isr)

    def heal(self) -> Proof:
        """Also if the leader died meanwhile: then the followers follow the new leader, and are in sync with it."""
        mended_ns = time.monotonic_ns()
        self._imposition.end()
        leader, end = wait_until(
            self._leader_end, timeout_s=CAUGHT_UP_S, what=f"the leader of {self._partition}", retry_on=NOT_YET
        )
        ends = wait_until(
            lambda: self._caught_up(end),
            timeout_s=CAUGHT_UP_S,
            what=f"the followers of {self._partition} to catch up with its leader at {end}",
            interval_s=0.1,
            retry_on=NOT_YET,
        )
        return {
            "mended": [str(link) for link in self._links],
            "leader": leader,
            "caught_up_with": end,
            "in_sync": sorted(ends),
            "caught_up_after_ms": (time.monotonic_ns() - mended_ns) // 1_000_000,
        }

    @property
    def _partition(self) -> str:
        return f"{self._target.topic}-{self._target.partition}"

    def _log_ends(self, brokers: tuple[int, ...]) -> dict[int, int]:
        return {id_: self._log_end(id_) for id_ in brokers}

    def _log_end(self, broker: int) -> int:
        return ask_log_end(
            self._cluster.direct(broker), self._target.topic, self._target.partition, access=self._cluster.access()
        )

    def _leader_end(self) -> tuple[int, int]:
        leader = self._cluster.leader(self._target.topic, self._target.partition).leader
        return leader, self._log_end(leader)

    def _caught_up(self, end: int) -> dict[str, int]:
        """The running replicas' log ends, once all of them are in the ISR and have what the leader had at the mend."""
        view = self._cluster.leader(self._target.topic, self._target.partition)
        running = [id_ for id_ in view.replicas if self._cluster.broker(id_).state() is NodeState.RUNNING]
        ends = {self._cluster.broker(id_).name: self._log_end(id_) for id_ in running}
        return ends if set(running) <= set(view.isr) and min(ends.values()) >= end else {}
