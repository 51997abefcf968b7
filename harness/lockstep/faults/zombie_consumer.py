"""A paused member of a consumer group that wakes up and commits offsets of partitions it has lost."""

from __future__ import annotations

from confluent_kafka import KafkaError

from lockstep.cluster.cluster import Cluster
from lockstep.errors import FaultError
from lockstep.faults.fault import Proof, fault
from lockstep.faults.support.client_process import ClientProcess
from lockstep.faults.support.groups import Group, GroupSettings, shares
from lockstep.plan.targets import WholeCluster

REFUSALS = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError.STALE_MEMBER_EPOCH,
    }
)


@fault(
    name="zombie-consumer",
    summary="Pause a member of a group of its own between reading and committing until it has lost its partitions",
    targets=(WholeCluster,),
    settings=GroupSettings,
)
class ZombieConsumer:
    """Proven by the coordinator, which gave its partitions to the other member, and by the commit that it refused."""

    def __init__(self, cluster: Cluster, target: WholeCluster, settings: GroupSettings) -> None:  # noqa: ARG002
        self._group = Group(cluster, "zombie-consumer", settings)
        self._go_on = cluster.directory / "clients" / f"{self._group.name}.go-on"
        self._pair: tuple[ClientProcess, ClientProcess] | None = None

    @property
    def resolved(self) -> str:
        return f"{self._group.name}-first"

    def inject(self) -> Proof:
        self._group.prepare()
        zombie = self._group.member("first", hold=str(self._go_on))
        held = zombie.wait_event("holds", "read its first record")
        other = self._group.member("second")
        self._pair = (zombie, other)
        zombie.pause()
        return {"paused": zombie.identity, "partition": held["partition"], "offset": held["offset"]}

    def bit(self) -> Proof:
        """Once the other member owns all partitions, wake the zombie: it commits the offsets it had read before."""
        assert self._pair is not None
        zombie, other = self._pair
        owned = shares(self._group.wait_owned_by(other))
        self._go_on.touch()
        zombie.resume()
        refused = zombie.wait_event("refused", "have its commit refused")
        first, *_ = zombie.events("refused", "committed")  # later ones it makes as a member that has joined again
        if first != refused or refused["code"] not in REFUSALS:
            raise FaultError(f"{zombie.identity} committed after it had lost its partitions: {refused['error']}")
        return owned | {"woke": zombie.identity, "error": refused["error"], "code": refused["code"]}

    def heal(self) -> Proof:
        """The zombie, awake again, rejoins the group as any member may; then both consumers are ended."""
        if self._pair is None:
            return self._group.end()
        self._go_on.touch()
        return self._group.reunited(*self._pair)
