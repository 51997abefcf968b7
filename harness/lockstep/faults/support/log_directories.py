"""Where a broker keeps a log, whether its log directories are online, and bringing it back after one was not."""

from __future__ import annotations

from pathlib import PurePath

from lockstep.clients.wire.log_dirs import ask_log_dirs
from lockstep.cluster.cluster import Cluster
from lockstep.cluster.node import Node, NodeState
from lockstep.cluster.storage.segments import PartitionLog
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof
from lockstep.faults.support.membership import returned
from lockstep.wait import WaitTimeout, wait_until

ONLINE_S = 30.0


def log_of(cluster: Cluster, node: Node, partition: str) -> PartitionLog:
    """A partition's log, in whichever directory the broker keeps it."""
    for directory in cluster.log_directories(node.spec):
        if (directory / partition).is_dir():
            return PartitionLog(directory / partition)
    raise FaultError(f"{node.name} has no log of {partition}")


def offline(cluster: Cluster, node: Node) -> list[str]:
    """The names of those that the broker itself says are not; raises `OSError` when it does not answer."""
    told = ask_log_dirs(node.direct, cluster.access())
    return sorted(PurePath(path).name for path, online in told.items() if not online)


def start_over(cluster: Cluster, node: Node) -> Proof:
    """Stop a broker, if it runs, and start it: only so does a log directory come online again. Proves that all are."""
    if node.state() is NodeState.PAUSED:
        node.resume()
    if node.state() is NodeState.RUNNING:
        try:
            node.stop()
        except WaitTimeout:
            node.kill()
    node.start()
    proof = returned(cluster, node)
    wait_until(
        lambda: not offline(cluster, node),
        timeout_s=ONLINE_S,
        what=f"every log directory of {node.name} to be online",
        retry_on=(OSError,),
    )
    return proof | {"offline": []}
