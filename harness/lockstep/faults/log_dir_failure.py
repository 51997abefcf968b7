"""A disk that fails: one log directory of a broker goes offline, and the broker goes on with the others."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.cluster.storage.segments import partition_logs
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.log_directories import offline, start_over
from lockstep.faults.support.roles import node_of
from lockstep.plan.targets import FollowerOf, LeaderOf, OneBroker, Target
from lockstep.recovery.undo import RemoveDirectory, relative
from lockstep.spec.cluster import ClusterSpec
from lockstep.wait import wait_until

IN_THE_WAY = "replication-offset-checkpoint.tmp"
"""The file that a broker writes before each checkpoint of its high watermarks: a directory there is an I/O error."""
FREE_S = 5.0
BIT_S = 30.0


def _missing(spec: ClusterSpec, _: str) -> str | None:
    return None if spec.log_dirs > 1 else "needs brokers with two log directories: --log-dirs 2"


@fault(
    name="log-dir-failure",
    summary="Have a broker's last log directory fail; healed by a restart without what is in its way",
    targets=(LeaderOf, FollowerOf, OneBroker),
    missing=_missing,
    takes=1,
)
class LogDirFailure:
    """Proven by the broker, which says that the directory is offline, and by the ISRs that it has left.

    It is the last directory, since a KRaft broker whose metadata are on the failing one halts.
    """

    def __init__(self, cluster: Cluster, target: Target) -> None:
        self._cluster = cluster
        self._node: Node = node_of(cluster, target)
        self._directory = cluster.log_directories(self._node.spec)[-1]
        self._block = self._directory / IN_THE_WAY
        self.undo = (RemoveDirectory(path=relative(self._block, cluster.ledger)),)
        self._partitions: set[str] = set()

    @property
    def resolved(self) -> str:
        return self._node.name

    def inject(self) -> Proof:
        if self._node.state() is not NodeState.RUNNING:
            raise FaultError(f"{self._node.name} is {self._node.state()}, and would not notice")
        if self._block.is_dir():
            raise FaultError(f"{self._directory.name} of {self._node.name} fails already")
        self._partitions = {log.name for log in partition_logs(self._directory)}
        if not self._partitions:
            raise FaultError(f"{self._directory.name} of {self._node.name} holds no partition that could miss it")
        wait_until(self._blocked, timeout_s=FREE_S, what=f"{IN_THE_WAY} not to be in use", retry_on=(FileExistsError,))
        return {"failing": self._directory.name, "holds": sorted(self._partitions)}

    def bit(self) -> Proof:
        wait_until(
            lambda: self._directory.name in offline(self._cluster, self._node),
            timeout_s=BIT_S,
            what=f"{self._node.name} to say that {self._directory.name} is offline",
            interval_s=0.1,
            retry_on=(OSError,),
        )
        left = wait_until(
            self._left_isr_of,
            timeout_s=BIT_S,
            what=f"{self._node.name} to leave the ISR of what {self._directory.name} holds",
            interval_s=0.1,
        )
        return {"offline": [self._directory.name], "left_isr_of": left, "state": self._node.state().value}

    def heal(self) -> Proof:
        if self._block.is_dir():
            self._block.rmdir()
        return start_over(self._cluster, self._node)

    def _blocked(self) -> bool:
        self._block.mkdir()
        return True

    def _left_isr_of(self) -> list[str]:
        """The partitions it has left, once every other broker sees that, of all that have another replica."""
        views = [view for id_, view in self._cluster.ask_all(None).items() if id_ != self._node.spec.id]
        known = [(f"{p.topic}-{p.partition}", p) for view in views for p in view.partitions if len(p.replicas) > 1]
        shared = [(name, p) for name, p in known if name in self._partitions]
        return [] if any(self._node.spec.id in p.isr for _, p in shared) else sorted({name for name, _ in shared})
