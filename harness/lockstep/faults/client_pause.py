"""A member of a consumer group that stands still for longer than its session."""

from __future__ import annotations

from lockstep.cluster.cluster import Cluster
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.groups import Group, GroupSettings, shares
from lockstep.plan.targets import WholeCluster


@fault(
    name="client-pause",
    summary="SIGSTOP one of two members of a group of its own until its session is lost; healed by SIGCONT",
    targets=(WholeCluster,),
    settings=GroupSettings,
)
class ClientPause:
    """Proven by the group's coordinator: the other member has all partitions, and after the pause they share again."""

    def __init__(self, cluster: Cluster, target: WholeCluster, settings: GroupSettings) -> None:  # noqa: ARG002
        self._group = Group(cluster, "client-pause", settings)
        self._pair: tuple[ClientProcess, ClientProcess] | None = None

    @property
    def resolved(self) -> str:
        return f"{self._group.name}-first"

    def inject(self) -> Proof:
        self._group.prepare()
        self._pair = paused, other = self._group.member("first"), self._group.member("second")
        before = shares(self._group.wait_owned_by(paused, other))
        paused.pause()
        return {"paused": paused.identity} | {f"{name}_before": value for name, value in before.items()}

    def bit(self) -> Proof:
        assert self._pair is not None
        _, other = self._pair
        after = shares(self._group.wait_owned_by(other))
        return {f"{name}_after": value for name, value in after.items()}

    def heal(self) -> Proof:
        """Also if the pause was never injected: then the consumers are ended and the topic is deleted."""
        if self._pair is None:
            return self._group.end()
        return self._group.reunited(*self._pair)
