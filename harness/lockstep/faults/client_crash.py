"""A producer that dies while it writes."""

from __future__ import annotations

from lockstep.clients.standalone import Write
from lockstep.clients.wire.offsets import ask_log_end
from lockstep.cluster.cluster import Cluster
from lockstep.errors import ClusterError, FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.topics import OwnTopic
from lockstep.plan.targets import WholeCluster
from lockstep.wait import wait_until

QUIET_S = 30.0
NOT_YET = (OSError, ClusterError)
ENOUGH = 20
"""Acknowledgements after which it is in the middle of its work."""


@fault(
    name="client-crash",
    summary="SIGKILL a producer of its own, on a topic of its own, while it writes",
    targets=(WholeCluster,),
)
class ClientCrash:
    """Proven by the process, which is gone, and by the log: it has all that was acknowledged, and grows no more."""

    def __init__(self, cluster: Cluster, target: WholeCluster) -> None:  # noqa: ARG002 - there is only one
        self._cluster = cluster
        self._topic = OwnTopic(cluster, "client-crash")
        self._client: ClientProcess | None = None
        self._end = -1

    @property
    def resolved(self) -> str:
        return f"{self._topic.name}-writer"

    def inject(self) -> Proof:
        self._topic.prepare()
        self._client = client = ClientProcess(self._cluster, self.resolved, Write(topic=self._topic.name))
        client.wait_event("acknowledged", "write", after=ENOUGH)
        client.kill()
        return {"client": client.identity}

    def bit(self) -> Proof:
        assert self._client is not None
        if self._client.alive():
            raise FaultError(f"{self._client.identity} still runs")
        last = max(event["offset"] for event in self._client.events("acknowledged"))
        end = wait_until(
            self._quiet_end, timeout_s=QUIET_S, what="the log end to stay where it is", interval_s=0.5, retry_on=NOT_YET
        )
        if end <= last:
            raise FaultError(f"offset {last} of {self._topic.name} was acknowledged, and its log ends at {end}")
        return {"alive": False, "last_acknowledged": last, "log_end": end, "written_unacknowledged": end - last - 1}

    def heal(self) -> Proof:
        """The client is not started again: nothing depends on it."""
        if self._client is not None:
            self._client.kill()
        return self._topic.done()

    def _quiet_end(self) -> int | None:
        """Where the log ends, if it ended there a moment ago as well."""
        before, self._end = self._end, self._log_end()
        return self._end if self._end == before else None

    def _log_end(self) -> int:
        leader = self._cluster.leader(self._topic.name, 0).leader
        return ask_log_end(self._cluster.direct(leader), self._topic.name, 0, access=self._cluster.access())
