"""The parts that a state of the replication machine consists of, and where each stands.

One partition, brokers with the ids from 0 on, all of them replicas. Part of it is no Kafka: what the search has spent
of its bounds, and a witness, who remembers what was committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple, TypeAlias

from lockstep_model.controller import Controller
from lockstep_model.errors import Error
from lockstep_model.parameters import Mode, Parameters
from lockstep_model.partition.produce import DelayedProduce
from lockstep_model.partition.replica import UNKNOWN, Replica, learn
from lockstep_model.partition.replica_fetch import ReplicaFetch, ReplicaFetchResponse, answer, request
from lockstep_model.registration import AlterPartition, BrokerId, BrokerRegistration, Brokers, Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far the search goes. A state beyond them is not reached, everything within them is."""

    brokers: int = 3
    in_sync: int = 3
    """How many of them are in the ISR at first; the others have yet to fetch."""
    leader: int = 0
    """Who leads at first; broker 0 is the preferred leader."""
    records: int = 1
    leader_epochs: int = 1
    """The highest leader epoch; the first leader has 0."""
    partition_epochs: int = 3
    fencings: int = 1
    """How often the session of a running broker may end."""
    shutdowns: int = 0
    kills: int = 0
    """With SIGKILL, which loses nothing but the last high watermarks."""
    power_losses: int = 0
    """With which each broker loses any part of the end of its log."""
    last_replica_falls: bool = False
    """Whether power losses may leave nobody in the ISR whose log was never cut, which without eligible leader replicas
    Kafka does not promise to survive."""
    delays: int = 1
    """How many fetches may be under way while other things happen. All others are sent, answered and taken at once."""
    preferred_elections: int = 0
    batches: bool = False
    """Whether KRaft brokers may take several changes for one, as they do with what they read at once (MetadataLoader);
    LeaderAndIsr requests can always be overtaken by later ones."""
    prompt: bool = True
    """Metadata tells a leader what the answer to its AlterPartition did before it asks for another ISR. Where it does
    not, a KRaft leader forgets what it asked for, and may commit what a member of the ISR lacks (Partition.makeLeader).
    """


class Metadata(NamedTuple):
    """What the controller decided, and how far brokers know of it."""

    log: tuple[Controller, ...]
    """From what the broker knows that is furthest behind up to what the controller knows."""
    known: tuple[int | None, ...]
    """Which of these each broker knows; None while it does not run."""
    cut: Brokers = frozenset()
    """Not Kafka's: whose logs were cut since they last joined the ISR."""
    untold: Brokers = frozenset()
    """ZooKeeper mode: who has just started, and waits for its first LeaderAndIsr, with what it knows or later."""

    @property
    def controller(self) -> Controller:
        return self.log[-1]


class Broker(NamedTuple):
    """A broker's process with its replica; without a process, its disk."""

    replica: Replica
    running: bool = True
    clean: bool = False
    """It was shut down cleanly, and says so when it registers (KIP-966)."""
    leaving: bool = False
    """It runs and asks to shut down, again and again until it may go."""
    waiting: tuple[tuple[int, DelayedProduce], ...] = ()
    """The values whose producers wait for an answer with acks=all."""


class AlterPartitionResponse(NamedTuple):
    """The controller's answer to an AlterPartition, on its way to the leader."""

    request: AlterPartition
    answer: Registration | Error


class Witness(NamedTuple):
    """Who sees whatever any leader ever let be read."""

    committed: tuple[int, ...] = ()
    """The values at the offsets from 0 up to the highest high watermark of any leader."""
    acknowledged: frozenset[int] = frozenset()
    """The values whose producers were told that they are committed (acks=all)."""


class SpentBounds(NamedTuple):
    """How much of the bounds is used."""

    records: int = 0
    fencings: int = 0
    shutdowns: int = 0
    kills: int = 0
    power_losses: int = 0
    delays: int = 0
    preferred_elections: int = 0


InFlightAlterPartition: TypeAlias = AlterPartition | AlterPartitionResponse | None
"""One leader's AlterPartition: on its way to the controller, or back. A leader has one at a time
(AlterPartitionManager); one of an earlier incarnation may still be under way."""
InFlightFetch: TypeAlias = ReplicaFetch | ReplicaFetchResponse | None
"""One fetcher's request on its way to the leader, or the answer on its way back. A broker has a fetcher for each other
broker, so that an old leader's answer and a new leader's can be under way at once."""


class ReplicationLayout:
    """Where the parts stand in a state."""

    METADATA = 0
    SPENT = 1
    WITNESS = 2

    def __init__(self, brokers: int) -> None:
        self.brokers = range(brokers)

    def broker(self, broker: BrokerId) -> int:
        return 3 + broker

    def altering(self, broker: BrokerId) -> int:
        return 3 + len(self.brokers) + broker

    def fetching(self, follower: BrokerId, leader: BrokerId) -> int:
        return 3 + (2 + follower) * len(self.brokers) + leader

    @property
    def pairs(self) -> list[tuple[BrokerId, BrokerId]]:
        """Every two brokers, the first as the follower."""
        return list(permutations(self.brokers, 2))

    def groups(self, leader: BrokerId) -> list[tuple[BrokerId, ...]]:
        """Every choice of some of a broker's followers."""
        followers = [broker for broker in self.brokers if broker != leader]
        return [group for size in self.brokers for group in combinations(followers, size) if group]


def initial(parameters: Parameters, bounds: Bounds) -> tuple[object, ...]:
    """All brokers run and know who leads, and those in the ISR have fetched; nothing was written."""
    ids = tuple(range(bounds.brokers))
    partition = Registration(replicas=ids, isr=frozenset(range(bounds.in_sync)), leader=bounds.leader)
    registered = tuple((broker, BrokerRegistration(epoch=broker)) for broker in ids)
    replicas = [learn(parameters, Replica(broker, broker_epoch=broker), partition, registered) for broker in ids]
    for follower in replicas[: bounds.in_sync]:
        fetch = request(follower)
        if fetch is not None:
            replicas[bounds.leader], _ = answer(parameters, replicas[bounds.leader], fetch)
    metadata = Metadata(log=(Controller(partition, registered),), known=(0,) * bounds.brokers)
    slots = [None] * (bounds.brokers + bounds.brokers**2)
    return (metadata, SpentBounds(), Witness(), *(Broker(timeless(replica)) for replica in replicas), *slots)


def timeless(leader: Replica) -> Replica:
    """Without when followers last fetched.

    Whose time has passed is caught up again only at the leader's end. Who would be so because it reached the end of its
    fetch before is one whose time has not passed yet.
    """
    leadership = leader.leadership
    if leadership is None or not any(progress.fetched for _, progress in leadership.followers):
        return leader
    followers = tuple((b, known._replace(fetched=False, leader_end=UNKNOWN)) for b, known in leadership.followers)
    return leader._replace(leadership=leadership._replace(followers=followers))


def decided(bounds: Bounds, metadata: Metadata, controller: Controller) -> Metadata | None:
    """The controller may know something new, which brokers have yet to learn; None if that is beyond the bounds."""
    partition, now = controller.partition, metadata.controller.partition
    if partition.leader_epoch > bounds.leader_epochs or partition.partition_epoch > bounds.partition_epochs:
        return None
    cut = metadata.cut - (partition.isr - now.isr)
    if not bounds.last_replica_falls and partition.isr and partition.isr <= cut:
        return None
    news = () if controller == metadata.controller else (controller,)
    return tidied(metadata._replace(log=(*metadata.log, *news), cut=cut))


def knowing(metadata: Metadata, broker: BrokerId, position: int | None, *, untold: bool = False) -> Metadata:
    """The same, where this broker knows so much of it, or will when it is told; None if it does not run."""
    known = (*metadata.known[:broker], position, *metadata.known[broker + 1 :])
    waiting = metadata.untold - {broker} | (frozenset({broker}) if untold else frozenset())
    return tidied(metadata._replace(known=known, untold=waiting))


def tidied(metadata: Metadata) -> Metadata:
    """Without what no broker needs any more.

    A broker that does not lead has no use for what leaves the leader and its epoch as they are: it is passed over.
    """
    log, untold = metadata.log, metadata.untold
    known = [
        seen if seen is None or broker in untold else _passed_over(log, broker, seen)
        for broker, seen in enumerate(metadata.known)
    ]
    first = min((seen for seen in known if seen is not None), default=len(log) - 1)
    return metadata._replace(log=log[first:], known=tuple(None if seen is None else seen - first for seen in known))


def _passed_over(log: tuple[Controller, ...], broker: BrokerId, seen: int) -> int:
    while seen + 1 < len(log) and not _matters(broker, log[seen], log[seen + 1]):
        seen += 1
    return seen


def _matters(broker: BrokerId, known: Controller, new: Controller) -> bool:
    """Whether a broker does anything when it learns of this."""
    return known.partition.leader == broker or known.partition.leader_epoch != new.partition.leader_epoch


def next_known(parameters: Parameters, bounds: Bounds, metadata: Metadata, broker: BrokerId) -> range:
    """What a broker may learn of next: the metadata log in its order, or any later LeaderAndIsr request."""
    seen = metadata.known[broker]
    if seen is None:
        return range(0)
    following = seen if broker in metadata.untold else seen + 1
    skips = bounds.batches or parameters.mode is Mode.ZK
    return range(following, len(metadata.log) if skips else min(following + 1, len(metadata.log)))
