"""Parts of a state of the replication machine, and the index of each.

One partition; broker ids begin at 0, and every broker is a replica. Two parts are not Kafka's: what the search has
spent of its bounds, and a witness that remembers the committed records.
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
    """Limits of the search: every state within them is reached, no other."""

    brokers: int = 3
    in_sync: int = 3
    """How many brokers are in the first ISR; the others have yet to fetch."""
    leader: int = 0
    """The first leader; broker 0 is the preferred leader."""
    records: int = 1
    leader_epochs: int = 1
    """The highest leader epoch; the first leader has 0."""
    partition_epochs: int = 3
    fencings: int = 1
    """How many times the session of a running broker may expire."""
    shutdowns: int = 0
    kills: int = 0
    """By SIGKILL, which loses nothing but high watermarks since the last checkpoint."""
    power_losses: int = 0
    """After which a broker lacks any part of the end of its log."""
    last_replica_falls: bool = False
    """Whether power losses may leave an ISR without a member whose log was never cut. Without ELR Kafka does not
    promise to survive that (KIP-966)."""
    delays: int = 1
    """How many fetches may be in flight while other steps happen. All other fetches are sent, answered and applied in
    one step."""
    preferred_elections: int = 0
    batches: bool = False
    """Whether a KRaft broker may apply several partition changes as one, as it does with records read together
    (MetadataLoader). LeaderAndIsr requests may always be overtaken by later ones."""
    prompt: bool = True
    """Metadata with the result of an AlterPartition reaches the leader before it sends the next one. Otherwise a KRaft
    leader drops its pending ISR and may commit records that an ISR member lacks (Partition.makeLeader)."""


class Metadata(NamedTuple):
    """The controller's decisions, and how far each broker has applied them."""

    log: tuple[Controller, ...]
    """From the decision that the slowest broker has applied to the controller's present state."""
    known: tuple[int | None, ...]
    """Index in `log` of the decision that each broker has applied; None while its process does not run."""
    cut: Brokers = frozenset()
    """Not Kafka's: brokers whose logs were cut since they last joined the ISR."""
    untold: Brokers = frozenset()
    """ZooKeeper mode: started brokers that await their first LeaderAndIsr request, of the known state or a later
    one."""

    @property
    def controller(self) -> Controller:
        return self.log[-1]


class Broker(NamedTuple):
    """A broker process with its replica; without a process, its log directory."""

    replica: Replica
    running: bool = True
    clean: bool = False
    """The broker was shut down cleanly; it registers with its previous broker epoch (KIP-966)."""
    leaving: bool = False
    """The broker is in controlled shutdown, and repeats its request until the controller grants it."""
    waiting: tuple[tuple[int, DelayedProduce], ...] = ()
    """Values whose acks=all response is delayed (DelayedProduce)."""


class AlterPartitionResponse(NamedTuple):
    """AlterPartition response in flight to the leader, with its request (KIP-497)."""

    request: AlterPartition
    answer: Registration | Error


class Witness(NamedTuple):
    """Observer of all leaders: every record that was below a leader's high watermark, hence readable."""

    committed: tuple[int, ...] = ()
    """Values at the offsets from 0 to the highest high watermark that any leader had."""
    acknowledged: frozenset[int] = frozenset()
    """Values that were acknowledged with acks=all."""


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
"""One leader's AlterPartition request in flight, or its response. A leader has one at a time (AlterPartitionManager);
one of its earlier incarnation may also be in flight."""
InFlightFetch: TypeAlias = ReplicaFetch | ReplicaFetchResponse | None
"""One fetcher's request in flight, or its response. A broker has a fetcher per leader (ReplicaFetcherManager), so that
responses of an old and a new leader may be in flight at once."""


class ReplicationLayout:
    """The index of each part in a state: metadata, spent bounds, witness, brokers, AlterPartition, fetches."""

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
        """All pairs of a follower and a leader."""
        return list(permutations(self.brokers, 2))

    def groups(self, leader: BrokerId) -> list[tuple[BrokerId, ...]]:
        """All non-empty sets of a leader's followers."""
        followers = [broker for broker in self.brokers if broker != leader]
        return [group for size in self.brokers for group in combinations(followers, size) if group]


def initial(parameters: Parameters, bounds: Bounds) -> tuple[object, ...]:
    """The first state: all brokers run and know the leader, the ISR has fetched, the log is empty."""
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
    """The replica without its followers' fetch times (Replica.updateFetchStateOrThrow).

    Time has no duration here. A follower that lagged for too long is caught up again only at the leader's LEO. A
    follower that reached the LEO of its previous Fetch is one whose lag time has not passed yet.
    """
    leadership = leader.leadership
    if leadership is None or not any(progress.fetched for _, progress in leadership.followers):
        return leader
    followers = tuple((b, known._replace(fetched=False, leader_end=UNKNOWN)) for b, known in leadership.followers)
    return leader._replace(leadership=leadership._replace(followers=followers))


def decided(bounds: Bounds, metadata: Metadata, controller: Controller) -> Metadata | None:
    """Metadata with a new controller state, which brokers have yet to apply; None if it is beyond the bounds."""
    partition, now = controller.partition, metadata.controller.partition
    if partition.leader_epoch > bounds.leader_epochs or partition.partition_epoch > bounds.partition_epochs:
        return None
    cut = metadata.cut - (partition.isr - now.isr)
    if not bounds.last_replica_falls and partition.isr and partition.isr <= cut:
        return None
    news = () if controller == metadata.controller else (controller,)
    return tidied(metadata._replace(log=(*metadata.log, *news), cut=cut))


def knowing(metadata: Metadata, broker: BrokerId, position: int | None, *, untold: bool = False) -> Metadata:
    """Metadata after this broker has applied the decision at `position`, or awaits it; None: it does not run."""
    known = (*metadata.known[:broker], position, *metadata.known[broker + 1 :])
    waiting = metadata.untold - {broker} | (frozenset({broker}) if untold else frozenset())
    return tidied(metadata._replace(known=known, untold=waiting))


def tidied(metadata: Metadata) -> Metadata:
    """Metadata without decisions that no broker needs any more.

    A broker that does not lead skips decisions that keep leader and leader epoch.
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
    """Whether applying this decision changes anything on the broker."""
    return known.partition.leader == broker or known.partition.leader_epoch != new.partition.leader_epoch


def next_known(parameters: Parameters, bounds: Bounds, metadata: Metadata, broker: BrokerId) -> range:
    """Decisions that a broker may apply next: the next one of the metadata log, or any later LeaderAndIsr request."""
    seen = metadata.known[broker]
    if seen is None:
        return range(0)
    following = seen if broker in metadata.untold else seen + 1
    skips = bounds.batches or parameters.mode is Mode.ZK
    return range(following, len(metadata.log) if skips else min(following + 1, len(metadata.log)))
