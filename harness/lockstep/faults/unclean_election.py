"""A leader elected from outside the ISR, by order of the operator: records that only the last leader had are lost."""

from __future__ import annotations

from confluent_kafka import Producer

from lockstep.clients.wire.elections import Election, elect_leader
from lockstep.clients.wire.metadata import PartitionView
from lockstep.clients.wire.offsets import ask_epoch_end, ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.errors import ClusterError, FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.administration import administer
from lockstep.faults.support.membership import returned
from lockstep.faults.support.topics import OwnTopic
from lockstep.history.lines import ELECTED_UNCLEANLY
from lockstep.plan.targets import LeaderOf, WholeCluster
from lockstep.spec.cluster import ClusterSpec, Mode
from lockstep.wait import WaitTimeout, wait_until

SHRUNK_S = 60.0
WRITTEN_S = 15.0
ELECTED_S = 60.0
RECORDS = 20
NOT_YET = (OSError, ClusterError)


def _missing(spec: ClusterSpec, _backend: str) -> str | None:
    if spec.mode is Mode.COMBINED:
        return "needs controllers of their own: most combined nodes stopped are no quorum"
    return "needs two brokers" if spec.brokers < 2 else None


@fault(
    name="unclean-election",
    summary="Stop all followers, then their leader, and elect one that lacks what the leader had",
    targets=(LeaderOf, WholeCluster),
    missing=_missing,
    takes=3,
    beyond="a replica that was not in sync becomes the leader, and records are lost",
)
class UncleanElection:
    """Proven by the new leader, which was not in the ISR, and by its log, which is shorter than that of the last one.

    Without a partition it takes one of its own and writes to it; in one of the plan's, the plan's clients must write.
    """

    def __init__(self, cluster: Cluster, target: LeaderOf | WholeCluster) -> None:
        self._cluster = cluster
        self._own: OwnTopic | None = None
        if isinstance(target, LeaderOf):
            self._topic, self._partition = target.topic, target.partition
        else:
            self._own = OwnTopic(cluster, "unclean-election")
            self._topic, self._partition = self._own.name, 0
        self._stopped: list[Node] = []
        self._isr: tuple[int, ...] = ()
        self._log_end = 0
        self._epoch = -1
        self._elected = -1

    @property
    def resolved(self) -> str:
        return f"{self._topic}-{self._partition}"

    def inject(self) -> Proof:
        if self._own:
            self._own.prepare()
        before = self._cluster.leader(self._topic, self._partition)
        self._require_able(before)
        self._elected, *_ = followers = [id_ for id_ in before.replicas if id_ != before.leader]
        for id_ in followers:
            self._stop(id_)
        shared = self._alone(before.leader)
        self._write_or_wait(before.leader, shared)
        self._epoch = self._cluster.leader(self._topic, self._partition).leader_epoch
        self._log_end = self._end_of(before.leader)
        self._stop(before.leader)
        self._start_without_leader(self._elected)
        administer(
            self._cluster,
            lambda address, access: elect_leader(
                address, self._topic, self._partition, Election.UNCLEAN, access=access
            ),
            f"the unclean election of {self.resolved}",
        )
        return {
            ELECTED_UNCLEANLY: [self.resolved],
            "leader_before": before.leader,
            "leader_epoch_before": before.leader_epoch,
            "log_end_before": self._log_end,
            "isr_before_election": sorted(self._isr),
        }

    def bit(self) -> Proof:
        after = self._cluster.leader(self._topic, self._partition)
        if after.leader != self._elected or after.leader in self._isr:
            raise FaultError(f"{self.resolved} is led by {after.leader}, and its ISR was {sorted(self._isr)}")
        end = self._kept_by(after.leader)
        if end >= self._log_end:
            raise FaultError(f"no record was written to {self.resolved} while its leader was alone: nothing was lost")
        return {"leader_after": after.leader, "leader_epoch_after": after.leader_epoch, "log_end_after": end}

    def heal(self) -> Proof:
        """Start the brokers that the fault stopped and that are still down; lost records stay lost."""
        for node in self._stopped:
            if node.state() is NodeState.STOPPED:
                node.start()
        back = {node.name: returned(self._cluster, node)["back_after_ms"] for node in self._stopped}
        return {"back_after_ms": back} | (self._own.done() if self._own else {"undone": False, "why": "lost is lost"})

    def _require_able(self, before: PartitionView) -> None:
        if len(before.replicas) < 2:
            raise FaultError(f"{self.resolved} has one replica: there is no other to elect")
        for id_ in before.replicas:
            if not self._cluster.expected(id_):
                raise FaultError(f"{self._cluster.broker(id_).name} is {self._cluster.broker(id_).state()} already")

    def _stop(self, broker: int) -> None:
        node = self._cluster.broker(broker)
        self._stopped.append(node)
        node.stop()

    def _alone(self, leader: int) -> int:
        """The leader's LEO once it is alone in the ISR."""
        wait_until(
            lambda: self._cluster.leader(self._topic, self._partition).isr == (leader,),
            timeout_s=SHRUNK_S,
            what=f"only the leader to be in the ISR of {self.resolved}",
            interval_s=0.1,
        )
        return self._end_of(leader)

    def _write_or_wait(self, leader: int, shared: int) -> None:
        """Give the leader records that no follower has; without a producer there are none, and `bit` refuses."""
        if self._own:
            producer = Producer(self._cluster.access().librdkafka() | {"acks": "1"})
            for number in range(RECORDS):
                producer.produce(self._topic, str(number).encode(), partition=self._partition)
            producer.flush(WRITTEN_S)
        try:
            wait_until(
                lambda: self._end_of(leader) > shared,
                timeout_s=WRITTEN_S,
                what=f"a record in {self.resolved} that its followers lack",
                retry_on=NOT_YET,
            )
        except WaitTimeout:
            return

    def _start_without_leader(self, broker: int) -> None:
        """Start a replica that is not in the ISR, and note the ISR, which proves that its election is unclean."""
        self._cluster.broker(broker).start()
        self._cluster.wait_serving(broker)
        view = wait_until(
            lambda: self._cluster.ask(broker, (self._topic,)).partition(self._topic, self._partition),
            timeout_s=ELECTED_S,
            what=f"broker {broker} to know {self.resolved}",
            retry_on=NOT_YET,
        )
        assert view is not None
        self._isr = view.isr

    def _kept_by(self, broker: int) -> int:
        """Where the last leader's epoch ends in the new one's log, whatever was written to it since."""

        def ask() -> tuple[int]:
            address, access = self._cluster.direct(broker), self._cluster.access()
            return (ask_epoch_end(address, self._topic, self._partition, self._epoch, access=access),)

        (end,) = wait_until(
            ask, timeout_s=ELECTED_S, what=f"the new leader of {self.resolved} to answer", retry_on=NOT_YET
        )
        return end

    def _end_of(self, broker: int) -> int:
        return ask_log_end(self._cluster.direct(broker), self._topic, self._partition, access=self._cluster.access())
